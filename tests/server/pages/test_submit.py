"""The page on which jobs are submitted."""

import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from contract.words import stage
from server.conftest import DOUBLE, World
from spinney.commands.control import Control
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.web.pages.page_responses import FLASH_COOKIE

HTML = {"Accept": "text/html"}
PART = HTML | {"HX-Request": "true", "X-CSRF-Token": "of-the-page"}
CHOSEN = ("file", ("", b""))
"""What a browser sends where no file was chosen."""


def form_key(client: TestClient, type_: str) -> str:
    page = client.get(f"/submit?type={type_}", headers=HTML)
    assert page.status_code == 200, page.text[:300]
    match = re.search(r'name="once" value="([^"]+)"', page.text)
    assert match
    return match[1]


def send(
    client: TestClient, *, files: Any = None, headers: Any = None, once: str | None = None, **fields: str
) -> Any:
    """The form of ``double``, as a browser sends it without scripts, or with them (``headers``)."""
    data = {"csrf": "", "once": once or form_key(client, "double"), "type": "double", "p.n": "1", **fields}
    return client.post("/submit", data=data, files=files or [CHOSEN], headers=headers or HTML)


def jobs(world: World) -> list[Any]:
    control: Control = world.control()
    return control.queries.jobs(Filter())


@pytest.mark.parametrize("path", ["/submit?type=slowly", "/make-schedule?type=slowly"])
def test_given_a_type_whose_stage_names_a_queue_then_forms_show_it_and_what_fields_are_about(
    world: World, path: str
) -> None:
    world.store.register([replace(DOUBLE, name="slowly", stages=(stage("slowly", queue="slow"),))], [])

    text = world.client("operator").get(path, headers=HTML).text

    assert 'placeholder="slow"' in text
    assert "How many. <span" in text


@pytest.mark.parametrize("headers", [HTML, PART], ids=["without scripts", "with scripts"])
def test_given_a_form_when_sent_then_the_job_is_there_as_it_says(
    world: World, headers: dict[str, str]
) -> None:
    answer = send(
        world.client("submitter"),
        headers=headers,
        **{
            "p.n": "21",
            "p.name": "Zoë",
            "queue": "slow",
            "priority": "7",
            "collection": "lab",
            "key": "k-1",
        },
    )

    (job,) = jobs(world)
    where = answer.headers.get("location") or answer.headers["hx-redirect"]
    assert (answer.status_code, where) == (204 if headers is PART else 303, f"/jobs/{job.id}")
    assert FLASH_COOKIE in answer.headers["set-cookie"]
    assert (job.params, job.queue, job.priority, job.collection, job.key, job.submitter) == (
        {"n": 21, "name": "Zoë"},
        "slow",
        7,
        "lab",
        "k-1",
        "submitter",
    )


@pytest.mark.parametrize("headers", [HTML, PART], ids=["without scripts", "with scripts"])
def test_given_files_when_sent_then_they_are_in_the_folder_and_the_job_may_start(
    world: World, headers: dict[str, str]
) -> None:
    files = [("file", ("page 1.tif", b"one")), ("file", ("page-2.tif", b"x" * 100_000))]

    send(world.client("submitter"), files=files, headers=headers)

    (job,) = jobs(world)
    folder = world.folder(job.id)
    assert (folder / "page 1.tif").read_bytes() == b"one"
    assert (folder / "page-2.tif").stat().st_size == 100_000
    assert job.state is State.PENDING


def test_given_a_form_that_is_sent_twice_when_it_is_the_same_then_there_is_one_job(world: World) -> None:
    client = world.client("submitter")
    once = form_key(client, "double")
    files = [("file", ("a.txt", b"one"))]

    answers = [send(client, once=once, files=files), send(client, once=once, files=files, headers=PART)]
    other = send(client, once=once, files=[("file", ("a.txt", b"two"))])

    (job,) = jobs(world)
    assert [a.headers.get("location") or a.headers["hx-redirect"] for a in answers] == [f"/jobs/{job.id}"] * 2
    assert other.status_code == 422  # the key was used for another form, and is replaced
    assert once not in other.text


def test_given_what_does_not_fit_when_sent_then_it_is_told_at_its_field_and_the_rest_is_kept(
    world: World,
) -> None:
    answer = send(
        world.client("submitter"),
        **{
            "p.n": "many",
            "p.name": '"><b>',
            "p.pin": "s3cret-word",
            "priority": "200",
            "queue": "no queue",
            "at": "soon",
        },
    )

    text = answer.text
    assert answer.status_code == 422
    assert not jobs(world)
    assert re.search(r'<input id="p-n"[^>]* aria-invalid="true"', text)
    assert "must be a whole number, not &#39;many&#39;" in text
    for option in ("priority", "queue", "at"):
        assert re.search(rf'id="f-{option}" name="{option}"[^>]*?aria-invalid="true"', text, re.S), option
    assert 'value="&#34;&gt;&lt;b&gt;"' in text
    assert "s3cret-word" not in text


def test_given_a_queue_that_nobody_knows_when_sent_then_it_is_refused_with_the_nearest_name(
    world: World,
) -> None:
    answer = send(world.client("submitter"), queue="slwo", at="soon")

    assert answer.status_code == 422
    assert not jobs(world)
    assert "there is no queue &#39;slwo&#39; (did you mean &#39;slow&#39;?)" in answer.text
    assert '<a href="#f-at">Not before</a>' in answer.text


def test_given_a_refusal_when_sent_by_the_script_then_the_form_alone_comes_back_with_its_status(
    world: World,
) -> None:
    answer = send(world.client("submitter"), headers=PART, **{"p.n": ""})

    assert answer.status_code == 422
    assert answer.text.lstrip().startswith('<form id="submit"')


def test_given_a_key_that_is_taken_when_sent_then_the_form_says_so_and_has_a_new_key_of_its_own(
    world: World,
) -> None:
    client = world.client("submitter")
    send(client, key="same")
    once = form_key(client, "double")

    answer = send(client, once=once, key="same")

    assert answer.status_code == 409
    assert "is taken by job" in answer.text
    assert once not in answer.text


def test_given_a_path_that_leads_out_when_sent_as_a_file_then_nothing_is_submitted(world: World) -> None:
    answer = send(world.client("submitter"), files=[("file", ("../../evil", b"x"))], headers=PART)

    assert answer.headers["hx-redirect"] == "/submit"
    assert not jobs(world)
    assert not (world.folders.parent / "evil").exists()


def test_given_a_viewer_when_he_would_submit_then_he_is_refused(world: World) -> None:
    viewer = world.client("viewer")

    assert viewer.get("/submit", headers=HTML).status_code == 403
    assert send(viewer, once="k").status_code == 403
    assert not jobs(world)


def test_given_limits_when_submitting_then_what_is_outside_is_refused_and_what_is_left_out_is_filled_in(
    world: World,
) -> None:
    world.rights["lab"] = Rights(role=Role.SUBMITTER, within=AccessScope(collections=("lab",)))
    client = world.client("lab")

    assert '<option value="lab">' in client.get("/submit?type=double", headers=HTML).text
    assert send(client, collection="other").status_code == 403
    assert send(client).status_code == 303
    assert [job.collection for job in jobs(world)] == ["lab"]


def test_given_types_when_looked_for_then_those_of_that_name_or_description_are_listed(world: World) -> None:
    client = world.client("submitter")

    assert "/submit?type=three" in client.get("/submit", headers=HTML).text
    text = client.get("/submit?q=twice", headers=HTML).text
    assert "/submit?type=double" in text
    assert "/submit?type=three" not in text
    assert "No job type matches" in client.get("/submit?q=zzz", headers=HTML).text
    assert client.get("/submit?type=duoble", headers=HTML).status_code == 422
