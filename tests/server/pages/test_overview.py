"""What needs attention comes first."""

from dataclasses import replace

from server.conftest import World
from spinney.features.holds.commands import LayHold
from spinney.features.nodes.commands import DrainNode
from spinney.features.queues.page import notes
from spinney.features.stats.action_needed import BATCHES, OLD_HOLD_US, Overview, needs
from spinney.features.stats.page import queue_lines, read
from spinney.model.attempts.failure_groups import Failure, FailureGroups
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Scope
from spinney.web.request_context import now_us
from spinney.web.stats_cache import StatsCache


def looked(world: World) -> Overview:
    return read(world.control(), StatsCache())


def titles(overview: Overview) -> list[str]:
    return [need.title for need in needs(overview)]


def test_given_nothing_is_wrong_then_nothing_needs_a_hand(world: World) -> None:
    world.site.drain()

    assert titles(looked(world)) == []


def test_given_pending_jobs_and_no_node_then_that_is_said_once(world: World) -> None:
    world.submit("one")
    world.submit("one", queue="slow")

    needed = list(needs(looked(world)))

    assert [need.title for need in needed] == ["No node is running"]
    assert "2 pending jobs wait" in needed[0].more


def test_given_pending_jobs_and_a_drained_node_then_the_drain_is_named_and_not_what_follows_of_it(
    world: World,
) -> None:
    node = world.site.here.name
    world.submit("one", queue="slow")
    world.control().do(DrainNode(node=node, reason="a new kernel"))

    (need,) = needs(looked(world))

    assert need.title == f"Node {node} is drained"
    assert "1 pending job waits until it is resumed (by" in need.more
    assert need.more.endswith(": a new kernel)")
    (slow,) = [queue for queue in looked(world).queues if queue.queue == "slow"]
    assert list(notes(slow)) == ["No node takes new jobs; start one with 'spinney node', or resume one."]


def test_given_pending_jobs_and_a_node_that_is_about_to_end_then_nobody_is_told_to_resume_it(
    world: World,
) -> None:
    world.submit("one", queue="slow")
    world.site.store.update_node(world.site.here.id, state="draining", now_us=now_us())

    (need,) = needs(looked(world))

    assert need.title == "All nodes are about to end"
    assert need.more == "1 pending job waits for one: start it with 'spinney node'"


def test_given_a_queue_that_is_closed_and_a_type_nobody_knows_then_each_is_told(world: World) -> None:
    assert world.site.here.name  # a node is at work
    world.submit("one", queue="slow")
    overview = looked(world)
    (slow,) = [queue for queue in overview.queues if queue.queue == "slow"]

    closed = replace(slow, unknown=(), unserved=(), nodes=("oak",), in_force=replace(slow.in_force, limit=0))
    assert titles(replace(overview, queues=[closed])) == ["Queue slow: its limit is 0"]
    unknown = replace(slow, unknown=("one",))
    assert titles(replace(overview, queues=[unknown])) == ["Queue slow: no active node knows one"]


def test_given_a_failed_batch_then_it_is_told_and_its_causes_with_numbers(world: World) -> None:
    batch = world.submit("batch")
    lease = world.site.run(batch)
    world.site.spawn(lease, "one", n=2)
    world.site.pass_(lease)
    single = world.submit("one")
    world.site.drain(failing=[n + batch for n in range(1, 4)])
    assert world.store.job(single).state == "failed"

    overview = looked(world)
    assert titles(overview) == [f"#{batch} batch failed", "3 jobs failed in one.work"]
    first = next(needs(overview))
    assert (first.more, first.path) == ("2 × error in one.work", f"/batches/{batch}")


def test_given_a_batch_whose_causes_share_exception_and_stage_then_their_messages_tell_them_apart(
    world: World,
) -> None:
    batch = world.submit("batch")
    lease = world.site.run(batch)
    children = world.site.spawn(lease, "one", n=3)
    world.site.pass_(lease)
    failures = (
        ("ValueError", "the header of the archive is damaged, from its first byte to its last"),
        ("ValueError", "a member lies outside"),
        ("KeyError", "name"),
    )
    for child, (exception, message) in zip(children, failures, strict=True):
        world.site.fail(world.site.run(child), message=message, error={"type": exception, "message": message})
    world.site.drain()

    more = next(needs(looked(world))).more

    assert "1 × ValueError in one.work (the header of the archive is damaged, from its…)" in more
    assert "1 × ValueError in one.work (a member lies outside)" in more
    assert "1 × KeyError in one.work" in more
    assert "(name)" not in more


def test_given_a_cause_of_one_job_then_its_own_message_is_told_and_of_several_what_they_have_in_common(
    world: World,
) -> None:
    def fail(job: int, message: str) -> None:
        error = {"type": "ValueError", "message": message}
        world.site.fail(world.site.run(job), message=f"ValueError: {message}", error=error)

    for size in (17, 18):
        fail(world.submit("one"), f"the file has {size} rows")
    fail(world.submit("one"), "row 12 of 40 is empty")

    assert [need.more for need in needs(looked(world))] == [
        "ValueError: the file has # rows",
        "ValueError: row 12 of 40 is empty",
    ]


def test_given_more_failed_batches_than_are_listed_then_their_number_is_told_whatever_else_failed_since(
    world: World,
) -> None:
    batches, failing = [], []
    for _ in range(BATCHES + 2):
        batches.append(world.submit("batch"))
        lease = world.site.run(batches[-1])
        failing += world.site.spawn(lease, "one", n=2)
        world.site.pass_(lease)
        world.site.drain(failing=failing)
    world.site.drain(failing=[world.submit("one") for _ in range(25)])

    overview = looked(world)

    assert [batch.job.id for batch in overview.failed] == batches[:1:-1]
    (more,) = [need for need in needs(overview) if need.id == "more-failed"]
    assert (more.title, more.path) == ("2 more failed batches", "/batches?state=failed&state=orphaned")


def test_given_jobs_whose_worker_died_and_others_held_by_a_stage_then_their_numbers_are_told(
    world: World,
) -> None:
    ids = world.site.submit("one", n=3)
    leases = world.site.claim_by_job()
    for job in ids[:2]:
        world.site.record(
            leases[job], Outcome.DIED, message="its worker was killed by SIGKILL", retryable=False
        )
    world.site.record(leases[ids[2]], Outcome.HOLD, message="compare the owners")

    needed = list(needs(looked(world)))

    assert [need.title for need in needed] == ["2 jobs died in one.work", "1 job held by its own stage"]
    assert needed[0].more == "its worker was killed by SIGKILL"


def test_given_a_hold_then_jobs_held_by_their_own_stages_still_need_a_hand(world: World) -> None:
    (own, _) = world.site.submit("one", n=2)
    world.site.record(world.site.claim_by_job()[own], Outcome.HOLD, message="compare the owners")
    world.control().do(LayHold(scope=Scope.QUEUE, name="slow", reason="move"))
    world.submit("one", queue="slow")

    shown = looked(world)

    assert shown.stats.states["held"] == 2
    assert titles(shown) == ["1 job held by its own stage"]


def test_given_poison_and_an_old_hold_then_both_are_told(world: World) -> None:
    hold = world.control().do(LayHold(scope=Scope.QUEUE, name="slow", reason="move"))
    overview = looked(world)
    group = Failure(
        fingerprint="ab",
        type="one",
        stage="work",
        exception="poison",
        message="",
        first_us=0,
        last_us=0,
        jobs=3,
    )
    overview = replace(overview, failures=FailureGroups(jobs=3, causes=1, consequences=0, items=[group]))

    assert titles(overview) == ["3 poison jobs in one.work"]
    old = replace(hold, since_us=overview.stats.at_us - OLD_HOLD_US - 1)
    assert titles(replace(overview, holds=[old])) == ["3 poison jobs in one.work", "Hold on queue slow"]


def test_given_a_hold_on_everything_then_it_is_told_at_once(world: World) -> None:
    world.control("ann").do(LayHold(scope=Scope.EVERYTHING, reason="a move"))

    (need,) = needs(looked(world))

    assert (need.title, need.more) == ("Hold on everything", "By ann: a move")


def test_given_queues_then_those_at_work_are_listed_the_busiest_first(world: World) -> None:
    world.site.submit("one", n=3)
    world.submit("one", queue="slow")
    world.site.claim(slots=1)

    assert [line.stats.queue for line in queue_lines(looked(world).stats, ())] == ["default", "slow"]
