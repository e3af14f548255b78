"""Failures by cause, as pages."""

import re

from server.conftest import World
from spinney.model.outcomes import Outcome

HTML = {"Accept": "text/html"}
TRACE = (
    'Traceback (most recent call last):\n  File "/srv/jobs.py", line 7, in work\n    <b>open</b>()\n'
    "ValueError: no <i>profile"
)


def fail(world: World, n: int, *, type_: str = "one", message: str = "no <i>profile", **fields: str) -> str:
    """So many jobs; the fingerprint of their failure."""
    ids = world.site.submit(type_, n=n, **fields)
    for _ in ids:
        lease = world.site.claim_one()
        error = {"type": "ValueError", "message": message, "traceback": TRACE}
        world.site.record(lease, Outcome.ERROR, message=message, error=error, retryable=False)
    return next(g.fingerprint for g in world.store.failures.groups(limit=100).items if g.message == message)


def get(world: World, path: str, principal: str = "operator", status: int = 200) -> str:
    answer = world.client(principal).get(path, headers=HTML)
    assert answer.status_code == status, answer.text[:500]
    return str(answer.text)


def test_given_failures_when_listed_then_the_largest_cause_comes_first_and_types_narrow_it(
    world: World,
) -> None:
    small = fail(world, 1, type_="three", message="no room")
    large = fail(world, 3)

    text = get(world, "/failures")

    assert list(dict.fromkeys(re.findall(r'href="/failures/(\w+)"', text))) == [large, small]
    assert "no &lt;i&gt;profile" in text
    assert "<i>profile" not in text
    assert set(re.findall(r'href="/failures/(\w+)"', get(world, "/failures?type=three"))) == {small}
    assert "No failed jobs of this type" in get(world, "/failures?type=batch")


def test_given_a_cause_that_one_job_has_in_all_or_in_a_batch_then_that_job_s_message_is_shown(
    world: World,
) -> None:
    batch = world.submit("batch")
    lease = world.site.run(batch)
    (child,) = world.site.spawn(lease, "one")
    world.site.pass_(lease)
    world.site.fail(world.site.run(child), message="row 12 is empty")
    assert "row 12 is empty" in get(world, "/failures")

    world.site.fail(world.site.run(world.submit("one")), message="row 13 is empty")

    text = get(world, "/failures")
    assert "row # is empty" in text
    assert "# stands for a number or an identifier" in text
    assert "row # is empty" not in get(world, f"/batches/{batch}")


def test_given_a_type_of_which_only_a_batch_failed_then_the_empty_list_leads_to_it(world: World) -> None:
    batch = world.submit("batch")
    lease = world.site.run(batch)
    child = world.site.spawn(lease, "one")
    world.site.pass_(lease)
    world.site.drain(failing=child)
    assert world.store.job(batch).state == "failed"

    text = get(world, "/failures?type=batch")

    assert "1 job failed because of other jobs: " in text
    assert 'href="/jobs?state=failed&amp;state=orphaned&amp;type=batch">show it</a>' in text


def test_given_a_cause_when_opened_then_its_jobs_and_frames_are_there_and_all_can_be_retried(
    world: World,
) -> None:
    mark = fail(world, 12)

    text = get(world, f"/failures/{mark[:6]}")

    assert "<title>ValueError in one · Spinney</title>" in text
    assert "12 jobs failed with this exception" in text
    assert "/srv/jobs.py" in text
    assert "&lt;b&gt;open" in text
    assert len(re.findall(r'<tr id="job-', text)) == 12
    assert f"/jobs/verbs?verb=retry&amp;all=1&amp;failure={mark}" in text
    assert (
        len(
            re.findall(r"id=\d+", next(iter(re.findall(r'href="/jobs/verbs\?verb=retry&amp;id=[^"]+', text))))
        )
        == 10
    )


def test_given_messages_that_differ_in_numbers_when_the_cause_is_opened_then_one_is_shown_whole(
    world: World,
) -> None:
    for row in (12, 13):
        lease = world.site.run(world.submit("one"))
        world.site.record(lease, Outcome.TIMEOUT, message=f"row {row} took too long", retryable=False)
    (group,) = world.store.failures.groups(limit=1).items

    text = get(world, f"/failures/{group.fingerprint}")

    assert "row #" not in text
    assert '<p class="said break">row 13 took too long</p>' in text


def test_given_a_cause_that_is_no_more_when_opened_then_the_page_says_so(world: World) -> None:
    mark = fail(world, 1)
    for job in world.site.ids():
        world.site.retry(job)

    assert "No failed jobs with this cause" in get(world, f"/failures/{mark}")
    get(world, "/failures/abc", status=404)
    get(world, "/failures/nohex", status=404)


def test_given_a_viewer_or_limits_when_looking_then_nothing_can_be_done_and_nothing_else_is_seen(
    world: World,
) -> None:
    mark = fail(world, 2, collection="other")

    assert "/jobs/verbs" not in get(world, f"/failures/{mark}", "viewer") + get(world, "/failures", "viewer")
    assert mark not in get(world, "/failures", "limited")
    assert "/srv/jobs.py" not in get(world, f"/failures/{mark}", "limited")


def test_given_a_traceback_that_ends_with_the_message_then_the_page_does_not_say_it_again(
    world: World,
) -> None:
    (job,) = world.site.submit("one")
    chain = f"{TRACE}\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACE}"
    error = {"type": "ValueError", "message": "no <i>profile", "traceback": chain}
    world.site.record(
        world.site.claim_one(), Outcome.ERROR, message="no <i>profile", error=error, retryable=False
    )

    text = get(world, f"/jobs/{job}")

    assert '<p class="said break">no &lt;i&gt;profile</p>' in text
    assert text.count("ValueError: no &lt;i&gt;profile") == 1  # that of the first exception
    assert "During handling of the above exception" in text
