"""Files that are uploaded on a job's page: they are in its folder, and only who may put them there has the form."""

import pytest

from server.conftest import World
from server.pages.test_pages import HTML, get

FILES = [("file", ("mended.csv", b"a,b", "text/csv")), ("file", ("notes.txt", b"x", "text/plain"))]


def test_given_a_job_that_failed_when_files_are_uploaded_then_they_are_in_its_folder(world: World) -> None:
    job = world.submit("one", submitter="submitter")
    world.site.drain(failing=[job])
    client = world.client("submitter")
    assert f'action="/jobs/{job}/upload"' in get(client, f"/jobs/{job}/files")

    answer = client.post(f"/jobs/{job}/upload", files=FILES, headers=HTML)

    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
    assert (world.folder(job) / "mended.csv").read_bytes() == b"a,b"
    assert "2 files uploaded" in get(client, f"/jobs/{job}")
    assert "notes.txt" in get(client, f"/jobs/{job}/files")


@pytest.mark.parametrize("name", ["../outside.txt", ".spinney/params.json"])
def test_given_a_name_that_leads_elsewhere_then_it_is_refused(world: World, name: str) -> None:
    job = world.submit("one")

    answer = world.client("operator").post(
        f"/jobs/{job}/upload", files={"file": (name, b"x", "text/plain")}, headers=HTML
    )

    assert answer.status_code == 303
    assert 'class="refused"' in get(world.client("operator"), f"/jobs/{job}")
    assert [*world.folder(job).rglob("*.*")] == []


def test_given_a_job_at_work_or_somebody_elses_then_there_is_no_form_and_it_is_refused(world: World) -> None:
    job = world.submit("one", submitter="operator")
    assert "upload-file" not in get(world.client("submitter"), f"/jobs/{job}/files")
    assert world.client("submitter").post(f"/jobs/{job}/upload", files=FILES, headers=HTML).status_code == 403
    world.site.start(world.site.claim_by_job()[job])

    assert "upload-file" not in get(world.client("operator"), f"/jobs/{job}/files")
    answer = world.client("operator").post(f"/jobs/{job}/upload", files=FILES, headers=HTML)

    assert answer.status_code == 303
    assert 'class="refused"' in get(world.client("operator"), f"/jobs/{job}")
    assert not (world.folder(job) / "mended.csv").exists()
