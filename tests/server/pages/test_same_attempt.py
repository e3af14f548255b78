"""After a retry the picture of a job, its failure and its output speak of the same attempt; verbs on a batch are in its
history."""

import re

from server.conftest import World
from server.pages.test_pages import HTML, get
from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome


def write(world: World, lease: Lease, text: str) -> None:
    own = world.folder(lease.job_id) / ".spinney"
    own.mkdir(exist_ok=True)
    (own / f"{lease.stage}.{lease.fence}.stdout").write_text(text)


def fail(world: World, job: int) -> Lease:
    lease = world.site.claim_by_job()[job]
    world.site.start(lease)
    error = {"type": "ValueError", "message": f"failed under fence {lease.fence}", "traceback": ""}
    world.site.record(lease, Outcome.ERROR, message="bad", error=error, retryable=False)
    return lease


def retry(world: World, job: int) -> None:
    answer = world.client("operator").post(f"/jobs/{job}/verb", data={"verb": "retry"}, headers=HTML)
    assert answer.status_code == 303


def test_given_a_second_failure_that_wrote_nothing_then_all_parts_speak_of_it(world: World) -> None:
    job = world.submit("one")
    write(world, fail(world, job), "from the first attempt")
    retry(world, job)
    second = fail(world, job)

    text = get(world.client("operator"), f"/jobs/{job}")
    output = get(world.client("operator"), f"/jobs/{job}/output")

    assert "failed, attempt 2" in text
    assert f"failed under fence {second.fence}" in text
    assert 'class="sub">attempt 2 on' in text
    assert re.findall(r'work <span class="sub">(attempt \d)', text) == ["attempt 2", "attempt 1"]
    assert re.findall(r">work, (attempt \d)</span></a>", output) == ["attempt 2", "attempt 1"]
    assert "Earlier failure" not in text
    assert f'title="fence {second.fence}">of work, attempt 2</span>' in output
    assert "from the first attempt" not in output


def test_given_an_attempt_at_work_after_a_failure_then_that_failure_is_called_earlier(world: World) -> None:
    job = world.submit("one")
    first = fail(world, job)
    write(world, first, "from the first attempt")
    retry(world, job)
    lease = world.site.claim_by_job()[job]
    world.site.start(lease)

    text = get(world.client("operator"), f"/jobs/{job}")
    output = get(world.client("operator"), f"/jobs/{job}/output")

    assert re.search(r"running, attempt 2 ", text)
    assert "Earlier failure: ValueError in work" in text
    assert f'href="/jobs/{job}/output?fence={first.fence}">Output of attempt 1</a>' in text
    assert f'title="fence {lease.fence}">of work, attempt 2</span>' in output


def test_given_a_failure_and_no_attempt_since_then_it_is_the_last_and_no_earlier_one(world: World) -> None:
    job = world.submit("one")
    fail(world, job)
    retry(world, job)

    text = get(world.client("operator"), f"/jobs/{job}")

    assert "Last failure: ValueError in work" in text
    assert "The job has not run since then" in text
    assert "Earlier failure" not in text


def test_given_verbs_on_all_below_a_batch_then_they_stand_in_its_history_once_a_call(world: World) -> None:
    batch = world.submit("batch")
    lease = world.site.claim_by_job()[batch]
    children = world.site.spawn(lease, "one", n=60)
    world.site.pass_(lease)
    world.site.drain(failing=children)
    client = world.client("operator")
    form = {
        "verb": "retry",
        "all": "1",
        "root": batch,
        "state": "failed",
        "type": "one",
        "expect": "60",
        "reason": "disk mended",
    }

    client.post("/jobs/verbs", data=form, headers=HTML)

    history = get(client, f"/jobs/{batch}/history")
    assert history.count("disk mended") == 1
    assert "<b>retry</b> by operator" in history
    assert "on 60 jobs" in history
    assert f'hx-get="/jobs/{batch}/history"' in get(client, f"/batches/{batch}")
    assert "disk mended" not in get(client, f"/jobs/{world.submit('one')}/history")


def test_given_a_retry_of_a_batch_then_its_history_has_the_subjobs_that_were_retried_in_its_place(
    world: World,
) -> None:
    batch = world.submit("batch")
    lease = world.site.claim_by_job()[batch]
    children = world.site.spawn(lease, "one", n=60)
    world.site.pass_(lease)
    world.site.drain(failing=children)
    other = world.submit("one")
    client = world.client("operator")
    assert "No operator has acted on this job or on any below it." in get(client, f"/jobs/{batch}/history")

    client.post(f"/jobs/{batch}/verb", data={"verb": "retry", "reason": "disk mended"}, headers=HTML)

    history = get(client, f"/jobs/{batch}/history")
    assert history.count("disk mended") == 1
    assert "on 60 jobs" in history
    own = get(client, f"/jobs/{children[0]}/history")
    assert "disk mended" in own
    assert "on 60 jobs" not in own
    assert "disk mended" not in get(client, f"/jobs/{other}/history")


def test_given_a_batch_of_which_many_subjobs_failed_then_its_page_has_their_number_and_leads_to_the_first(
    world: World,
) -> None:
    batch = world.submit("batch")
    lease = world.site.claim_by_job()[batch]
    children = world.site.spawn(lease, "one", n=3)
    world.site.pass_(lease)
    world.site.drain(failing=children)
    client = world.client("operator")

    page = get(client, f"/jobs/{batch}")

    link = f'<a class="id" href="/jobs/{children[0]}">#{children[0]}</a>'
    assert f"It failed: 3 of its subjobs failed, the first of them {link}." in page
    assert "Retries its 3 failed subjobs; the job goes on when they have ended." in page
    assert "3 jobs, 1 cause, and the batch itself" in get(client, f"/batches/{batch}")
    response = client.post(f"/jobs/{batch}/verb", data={"verb": "retry"}, headers=HTML)
    assert "3 jobs retried; 1 other job waits for them" in get(client, response.headers["location"])
