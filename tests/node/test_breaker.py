"""The circuit breaker on a real node: a service that is down stops the jobs that would call it."""

from node_fixtures import Cluster, cluster, now_us

import job_verbs
from long_tests import long_alone
from spinney.model.jobs import Filter
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.wakeup.local import wake_local_nodes
from waiting import until

JOBS = 120
K = 5
"""As ``calls_out`` has it."""
__all__ = ["cluster"]


def laid(cluster: Cluster) -> Hold | None:
    return next(iter(cluster.store.holds.all()), None)


def at_rest(cluster: Cluster) -> bool:
    """Nothing runs, and what waited is held."""
    counts = cluster.counts()
    return not any(counts.get(state) for state in ("pending", "claimed", "running", "scheduled"))


def lift(cluster: Cluster, hold: Hold) -> None:
    cluster.store.holds.lift(hold.id, Actor(by="ann", call="c", reason="it is up again"), now_us=now_us())
    wake_local_nodes(cluster.run_dir)


def test_a_service_that_is_down_stops_its_jobs_and_a_release_lets_them_go_on(cluster: Cluster) -> None:
    cluster.node()
    flag = cluster.file("up")
    ids = cluster.submit("calls_out", *[{"flag": str(flag)}] * JOBS)
    other = cluster.submit("wait_for", {"file": str(cluster.file("go")), "note_in": str(cluster.file("pid"))})

    hold = until(lambda: laid(cluster), "the breaker trips")
    cluster.file("go").touch()
    assert cluster.settled(other)[0].state is State.COMPLETED, "other types go on under the hold"
    until(lambda: at_rest(cluster), "the rest is held")

    assert (hold.scope, hold.name, hold.automatic) == (Scope.TYPE, "calls_out", True)
    assert f"{K} jobs in a row: ConnectionError: refused by #" in hold.reason
    failed = [j.id for j in cluster.store.jobs(Filter(type="calls_out", states=(State.FAILED,)), limit=JOBS)]
    assert K <= len(failed) < JOBS / 2
    (group,) = cluster.store.failures.groups().items
    assert group.jobs == len(failed)
    assert cluster.counts()["held"] == JOBS - len(failed)

    flag.touch()
    lift(cluster, hold)
    left = [i for i in ids if i not in failed]
    assert {j.state for j in cluster.settled(left)} == {State.COMPLETED}
    assert laid(cluster) is None

    for job_id in failed:
        job_verbs.retry(cluster.store, job_id, stage=None, by="ann", now_us=now_us())
    wake_local_nodes(cluster.run_dir)
    assert {j.state for j in cluster.settled(failed)} == {State.COMPLETED}
    assert cluster.store.failures.groups().causes == 0


@long_alone
def test_a_service_that_is_still_down_trips_it_again(cluster: Cluster) -> None:
    cluster.node()
    ids = cluster.submit("calls_out", *[{"flag": str(cluster.file("up"))}] * JOBS)
    first = until(lambda: laid(cluster), "the breaker trips")
    until(lambda: at_rest(cluster), "the rest is held")
    before = cluster.counts()["failed"]

    lift(cluster, first)

    second = until(lambda: laid(cluster), "it trips again")
    until(lambda: at_rest(cluster), "the rest is held again")
    assert second.id != first.id
    assert before + K <= cluster.counts()["failed"] < len(ids)
