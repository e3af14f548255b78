"""The pages, on a service whose first upload failed for one receiver and whose second one passed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from server.conftest import RIGHTS, Askers
from spinney.server.application import Parts, make
from spinney.store.sql import open_store
from spinney.web.settings import ServerSettings
from spinney.web.store_pool import StorePool
from waiting import until

from .service import SERIALS, TAGS, Service, archive, raw_files

BROWSER = {"accept": "text/html"}
RECEIVERS = [f"SG-{serial}" for serial in SERIALS]


def _identity(stores: StorePool, settings: ServerSettings) -> Askers:
    return Askers(RIGHTS)


@pytest.fixture
def uploads(service: Service, tmp_path: Path) -> tuple[int, int]:
    """Two uploads of the same archive: the first met a table of tags that cannot be read."""
    card = archive(raw_files(tmp_path / "raw", pieces=2), tmp_path / "card.zip")
    service.write_tags(0)
    service.start_node()
    first = service.upload(card)
    assert service.ended(first) == "failed"
    service.write_tags(len(TAGS))
    second = service.upload(card)
    assert service.ended(second) == "completed", service.spinney("tree", second)
    return int(first), int(second)


@pytest.fixture
def client(
    service: Service, uploads: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    """A browser in which an operator is signed in."""
    monkeypatch.chdir(service.place)
    app = make(
        Parts(
            settings=ServerSettings(),
            open_store=lambda: open_store(f"sqlite:///{service.place}/spinney.db"),
            folders=service.place / "spinney.folders",
            run_dir=None,
            identity=_identity,
        )
    )
    headers = {"X-Asker": "operator", **BROWSER}
    with TestClient(app, "http://localhost", headers=headers, follow_redirects=False) as made:
        yield made


def read(client: TestClient, path: str, status: int = 200, asker: str = "operator") -> str:
    page = client.get(f"/apps/receivers{path}", headers={"X-Asker": asker})
    assert page.status_code == status, page.text
    return page.text


def test_what_the_pages_show_and_start_and_what_limited_rights_hide(
    client: TestClient, service: Service, uploads: tuple[int, int], tmp_path: Path
) -> None:
    first, second = uploads
    overview = read(client, "")
    for part in (*RECEIVERS, f"/apps/receivers/uploads/{first}", "gulls"):
        assert part in overview

    failed = read(client, f"/uploads/{first}")
    assert "2 receivers, 5 files put aside, failed: SG-" in failed
    assert "/postmortem" in failed
    assert "bad_files.txt" in failed
    assert re.search(r"<p class=\"break\">Its subjob \d+ failed\.</p>", failed)
    causes = read(client, "/failures")
    assert "SG-7F5ERPI46977" in causes
    assert "#" not in causes[causes.index('data-label="Cause"') :].partition("</td>")[0]
    assert "Frames" not in read(client, f"/uploads/{second}")
    assert read(client, f"/uploads/{second + 1}", 404)

    receiver = read(client, f"/receivers/{RECEIVERS[0]}")
    assert 'class="f-completed"' in receiver  # a run
    assert 'class="f-waiting"' in receiver  # a file
    detections = [
        json.loads(line)
        for line in service.spinney("list", "--json", "--type", "receivers.detect").splitlines()
    ]
    wrote = [job["id"] for job in detections if job["root_id"] == second]
    assert any(f"/jobs/{job}" in receiver for job in wrote)
    assert read(client, "/receivers/SG-NOBODY", 404)

    start = f"/apps/receivers/receivers/{RECEIVERS[0]}/jobs"
    for fields, type_ in (({}, "receivers.export"), ({"first": "3"}, "receivers.rerun")):
        assert client.post(start, data=fields, headers={"X-Asker": "submitter"}).status_code == 403
        answer = client.post(start, data=fields)
        assert answer.status_code == 303, answer.text
        (job,) = (
            json.loads(line) for line in service.spinney("list", "--json", "--type", type_).splitlines()
        )
        assert service.ended(str(job["id"])) == "completed"

    assert (
        client.post(f"/apps/receivers/uploads/{second}/project", data={"project": "terns"}).status_code == 303
    )
    assert service.show(str(second))["job"]["collection"] == "terns"
    assert "terns" in read(client, f"/uploads/{second}")
    service.spinney("receivers", "move", str(second), "gulls")
    assert service.show(str(second))["job"]["collection"] == "gulls"

    # People with limited rights see their uploads only.
    assert RECEIVERS[0] not in read(client, "", asker="limited")
    for path in ("/failures", f"/receivers/{RECEIVERS[0]}"):
        read(client, path, 403, "limited")
    service.spinney("inbox", "add", "cards", str(tmp_path / "raw"), "receivers.upload")
    upload = "/inboxes/cards/upload"
    assert upload in read(client, "", asker="submitter")
    assert client.get(upload, headers={"X-Asker": "submitter"}).status_code == 200
    assert upload not in read(client, "", asker="viewer")
    service.spinney(
        "inbox", "add", "terns", str(tmp_path / "tern"), "receivers.upload", "--collection", "terns"
    )
    assert "/inboxes/terns/upload" in read(client, "", asker="submitter")
    assert "/inboxes/terns/upload" not in read(client, "", asker="limited")
    assert upload in read(client, "", asker="limited")
    read(client, f"/uploads/{first}", 404, "limited")


def test_the_page_of_a_receiver_links_only_jobs_that_are_kept(
    client: TestClient, service: Service, uploads: tuple[int, int]
) -> None:
    def linked() -> list[str]:
        page = read(client, f"/receivers/{RECEIVERS[1]}")
        assert f"#{job}<" in page
        return re.findall(r'href="/jobs/(\d+)"', page)

    job = uploads[1] + 1
    assert linked() == [str(job)]

    # Its job has a page that says that it is deleted, until retention removes it for good.
    service.spinney("delete", str(uploads[1]), "--reason", "wrong card", "--yes")
    assert linked() == [str(job)]
    service.spinney("keep", "*", "deleted", "1s")
    until(lambda: service.spinney("keep", "--sweep") and service.call("show", str(job)).returncode == 1)

    assert linked() == []


def test_an_upload_without_a_raw_file_and_one_that_failed_say_so(
    client: TestClient, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("no raw file")
    done = service.upload(tmp_path / "notes.txt")
    assert service.ended(done) == "completed"
    assert "No raw file of a receiver was in it" in read(client, f"/uploads/{done}")

    (tmp_path / "notes.txt").unlink()
    service.spinney("rerun", done)
    assert service.ended(done) == "failed"
    page = read(client, f"/uploads/{done}")
    assert "There is no file or folder" in page
    assert "It has ended before its files were sorted by receiver" in page

    service.spinney("hold", "--type", "receivers.import", "--reason", "ask Ann.")
    held = service.upload(tmp_path)
    assert re.search(r"<p class=\"break\">[^<]*: ask Ann\.</p>", read(client, f"/uploads/{held}"))
