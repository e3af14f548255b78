"""Batches from their submission to their reports, by the hands of staff, with a node at work."""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from reports.mail_server import Behaviour, mail_server
from spinney.model.jobs import Filter, Job
from spinney.model.states import State
from spinney.store.sql import open_store
from waiting import until

from ..web import Exchange
from .house import House

FILES = {f"page-{n}.txt": f"page {n}\n".encode() * 50 for n in range(3)}


def objects(house: House, bid: str) -> dict[str, dict[str, object]]:
    return {entry["name"]: entry for entry in house.lines("objects", bid)}


class Gate:
    """A page that is not served before ``opened``; ``reached`` when somebody has asked for it."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.set()

    def __call__(self, x: Exchange) -> None:
        if x.method == "GET":
            self.reached.set()
            self.opened.wait(60)
        x.well()


@contextmanager
def changed(house: House, text: str) -> Iterator[None]:
    """With this at the end of the settings."""
    file = house.folder / "ingest.toml"
    before = file.read_text()
    file.write_text(before.replace("[downloads]\n", f"{text}\n"))
    try:
        yield
    finally:
        file.write_text(before)


@contextmanager
def slots(house: House, number: int) -> Iterator[None]:
    """The node, which has joined, has so many."""
    house.shell.ok("slots", "n1", str(number))
    try:
        yield
    finally:
        house.shell.ok("slots", "n1", "1")


def settled_us(job: Job) -> int:
    assert job.settled_us is not None
    return job.settled_us


def jobs(house: House, **which: Any) -> list[Job]:
    with closing(open_store(f"sqlite:///{house.folder / 'spinney.db'}")) as store:
        return store.jobs(Filter(**which), limit=1000)


def test_a_batch_completes_and_all_of_it_can_be_seen(working: House) -> None:
    payload = working.manifest("atlas.checkm", FILES)

    bid = working.submit(payload, "--submitter", "ann")
    status = working.until(bid, "completed", "failed")

    assert (status["state"], status["objects"], status["kind"]) == (
        "completed",
        {"completed": 3},
        "single-file-batch-manifest",
    )
    assert (status["reports"], status["submitter"], status["collection"]) == (1, "ann", "maps")
    assert str(status["settled_us"]) not in working.ingest("status", bid), "people are told a date"
    page = objects(working, bid)["page-1.txt"]
    assert page["ark"].startswith("ark:/99999/fk4")
    assert (page["passed"], page["stage"], page["mode"], page["version"]) == ("notify", None, "add", 1)
    assert (page["needed_bytes"], page["unsized_files"], page["digest_type"]) == (350, 0, "sha256")
    assert page["retries"] == 0
    assert page["resource"] == "ingest-working:jobs"
    assert page["url"] == working.web.url("/atlas.checkm/page-1.txt")
    assert working.document("object", str(page["jid"])) == page
    assert working.document("object", str(page["job"])) == page
    assert working.incoming() == []


def test_what_is_stored_is_found(working: House) -> None:
    bid = working.submit(
        working.file("letter.txt", b"dear all\n"),
        "--kind",
        "file",
        "--local-id",
        "L-1",
        "--title",
        "A letter",
        "--creator",
        "Ann",
        "--date",
        "2020",
    )
    working.until(bid, "completed")

    (letter,) = working.lines("find", "--local-id", "L-1", "--collection", "maps")
    assert (letter["head"]["what"], letter["local_ids"], letter["head"]["batch_id"]) == (
        "A letter",
        ["L-1"],
        bid,
    )
    (file,) = working.lines("find", "--file-name", "letter.txt")
    assert (file["ark"], file["file"]["file"]["path"]) == (letter["ark"], "producer/letter.txt")
    digest = file["file"]["file"]["digests"]["sha256"]
    assert [entry["ark"] for entry in working.lines("find", "--digest", f"sha256:{digest}")] == [
        letter["ark"]
    ]
    plainer = letter["ark"].replace("ark:/", "ark:")
    assert [entry["ark"] for entry in working.lines("find", "--ark", plainer)] == [letter["ark"]]
    assert letter["ark"] in working.ingest("find", "--local-id", "L-1")
    assert "producer/letter.txt" in working.ingest("find", "--file-name", "letter.txt")
    assert working.lines("find", "--local-id", "L-2") == []


def test_what_failed_is_mended_and_reported_anew(working: House) -> None:
    payload = working.manifest("damaged.checkm", FILES)
    working.web.put("/damaged.checkm/page-1.txt", b"damaged")

    bid = working.submit(payload)
    status = working.until(bid, "completed", "failed", reports=1)

    assert (status["state"], status["failed_objects"], status["objects"]) == (
        "failed",
        1,
        {"completed": 2, "failed": 1},
    )
    (broken,) = working.lines("objects", bid, "--state", "failed")
    assert (broken["stage"], broken["passed"]) == ("downloading", "provisioning")
    assert [o["jid"] for o in working.lines("objects", bid, "--stage", "downloading")] == [broken["jid"]]
    assert [o["jid"] for o in working.lines("objects", bid, "--message", "page-1")] == [broken["jid"]]
    assert "1 failed" in working.ingest("report", bid)
    assert json.loads(working.ingest("report", bid, "--json"))["totals"]["failed"] == 1
    assert bid in [entry["batch"] for entry in working.lines("batches", "--state", "failed")]
    assert bid not in [entry["batch"] for entry in working.lines("batches", "--state", "completed")]
    assert working.ingest("requeue", bid, "--dry-run") == f"{bid}: 1 would be requeued\n"
    assert working.status(bid)["state"] == "failed", "a dry run changes nothing"

    working.web.put("/damaged.checkm/page-1.txt", FILES["page-1.txt"])
    assert working.ingest("requeue", bid, "--message", "no such text") == f"{bid}: nothing to requeue\n"
    later = working.shell.call("ingest", "requeue", bid, "--from", "recording")
    assert (later.returncode, later.stdout) == (1, f"{bid}: nothing to requeue\n")
    assert "recording" in later.stderr
    assert working.ingest("requeue", bid) == f"{bid}: 1 requeued\n"

    status = working.until(bid, "completed", reports=2)
    assert (status["failed_objects"], status["objects"]) == (0, {"completed": 3})
    assert "mended" in working.ingest("report", bid)
    assert "1 failed" in working.ingest("report", bid, "--number", "1")
    assert "<html" in working.ingest("report", bid, "--html")
    assert "its last report is number 2" in working.refused(1, "report", bid, "--number", "3")


def test_an_object_is_sent_back_to_an_earlier_stage(working: House) -> None:
    bid = working.submit(working.manifest("drill.checkm", FILES), "--fail-at", "processing")
    working.until(bid, "failed", reports=1)
    failed = working.lines("objects", bid, "--state", "failed")
    assert {entry["stage"] for entry in failed} == {"processing"}
    first = min(entry["job"] for entry in failed)

    assert working.ingest("requeue", str(first), "--from", "estimating") == "objects: 1 requeued\n"
    status = working.until(bid, "failed", reports=2)

    assert status["objects"] == {"completed": 1, "failed": 2}
    assert working.document("object", str(first))["retries"] == 1
    history = json.loads(working.shell.ok("show", str(first), "--json"))["attempts"]
    assert [a["stage"] for a in history].count("estimating") == 2
    now = working.document("report", bid, "--now")
    assert (now["number"], now["totals"]["completed"], len(now["failed"])) == (3, 1, 2)
    assert working.status(bid)["reports"] == 2, "it is told to nobody"
    assert "did you mean 'downloading'" in working.refused(2, "requeue", bid, "--from", "downloding")


def test_a_manifest_that_cannot_be_read_fails_its_batch_with_the_line(working: House) -> None:
    whole = Path(working.manifest("cut.checkm", FILES)).read_bytes()
    payload = working.file("cut.checkm", whole.replace(b"#%eof", b"#"))

    bid = working.submit(payload)
    status = working.until(bid, "failed")

    assert "line" in status["message"]
    assert "eof" in status["message"]
    assert "cut.checkm" in working.ingest("report", bid)
    now = working.document("report", bid, "--now")
    assert (now["state"], now["fault"]) == ("failed", status["message"])


def test_a_batch_that_its_profile_holds_waits_for_its_release(working: House) -> None:
    bid = working.submit(working.file("held.txt"), "--kind", "file", profile="slow")

    status = working.until(bid, "held")
    assert "somebody looks first" in status["message"]
    working.shell.ok("release", str(status["job"]))
    working.until(bid, "held")
    assert working.status(bid)["objects"] == {}, "the engine's own release does not let it through"

    assert working.ingest("release", "--batch", bid) == f"{bid} is released\n"
    working.until(bid, "completed")
    assert "is not held" in working.refused(1, "release", "--batch", bid)


def test_who_releases_a_batch_of_which_objects_are_held_is_told_how(working: House) -> None:
    working.shell.ok("hold", "--queue", "ingest-estimating", "--reason", "counting")
    bid = working.submit(working.file("held.txt"), "--kind", "file")
    job = working.until(bid, "held")["job"]

    refused = working.refused(1, "release", "--batch", bid)

    assert "is not held itself, but 1 of its objects are" in refused
    assert f"'spinney release --parent {job} --each' lets them continue" in refused
    working.shell.ok("release", "--queue", "ingest-estimating")
    working.until(bid, "completed")


def test_a_release_that_was_cut_off_is_asked_for_again(working: House) -> None:
    bid = working.submit(working.file("held.txt"), "--kind", "file", profile="slow")
    working.until(bid, "held")

    (working.folder / "home" / "held" / bid).unlink()  # as far as it came
    assert working.status(bid)["state"] == "held"
    working.ingest("release", "--batch", bid)

    working.until(bid, "completed")


def test_a_batch_that_waits_is_released_and_stays_under_a_hold_laid_meanwhile(working: House) -> None:
    bid = working.submit(working.file("held.txt"), "--kind", "file", profile="slow")
    working.until(bid, "held")
    working.ingest("hold", "slow", "--reason", "counting")

    assert "but stays under hold" in working.ingest("release", "--batch", bid)
    assert working.status(bid)["state"] == "held"
    working.ingest("release", "slow")

    working.until(bid, "completed")


def test_a_batch_of_a_held_collection_waits_for_that(working: House) -> None:
    working.ingest("hold", "swift", "--reason", "the disks are exchanged")
    bid = working.submit(working.file("swift.txt"), "--kind", "file", profile="swift")

    assert working.status(bid)["state"] == "held"
    assert "the disks are exchanged" in working.ingest("status", bid)
    assert "is released" in working.ingest("release", "swift")
    status = working.until(bid, "completed")
    assert status["profile"] == "swift"
    (entry,) = working.lines("objects", bid)
    assert (entry["priority"], entry["resource"]) == (7, "ingest-working:jobs")


def test_a_failed_batch_is_deleted_with_all_that_belongs_to_it(working: House) -> None:
    bid = working.submit(
        working.file("doomed.txt"), "--kind", "file", "--fail-at", "processing", profile="swift"
    )
    job = working.until(bid, "failed", reports=1)["job"]
    (entry,) = working.lines("objects", bid)
    places = [
        Path(entry["folder"]),
        *(working.folder / "spinney.folders").glob(f"**/{job:012d}"),
        *(working.folder / "spinney.folders").glob(f"**/{entry['job']:012d}"),
    ]
    assert len(places) >= 2
    assert all(place.is_dir() for place in places)

    assert working.ingest("delete", bid) == f"{bid} is deleted, with 1 object\n"

    assert [place for place in places if place.exists()] == []
    assert working.status(bid)["state"] == "deleted"
    assert "nothing left of it" in working.refused(1, "delete", bid)
    assert bid not in [each["batch"] for each in working.lines("batches")]


def test_completed_batches_are_swept_by_their_age_and_stay_archived(working: House) -> None:
    bid = working.submit(working.file("old.txt", b"unlike all others"), "--kind", "file", "--local-id", "O-1")
    working.until(bid, "completed")
    assert "--completed" in working.refused(1, "delete", bid)

    assert working.document("sweep", "--days", "1") == {"batches": [], "leftovers": []}
    assert bid in working.document("sweep", "--days", "0", "--dry-run")["batches"]
    assert working.status(bid)["state"] == "completed"
    assert bid in working.document("sweep", "--days", "0")["batches"]

    assert working.status(bid)["state"] == "deleted"
    assert len(working.lines("find", "--local-id", "O-1")) == 1


def test_what_completed_is_sent_back_when_the_archive_has_lost_it(working: House) -> None:
    bid = working.submit(working.file("lost.txt", b"lost"), "--kind", "file", "--local-id", "lost")
    working.until(bid, "completed", reports=1)
    (stored,) = working.lines("find", "--local-id", "lost", "--collection", "maps")
    (sidecar,) = (
        path
        for path in (working.folder / "archive").rglob("inventory.json")
        if path.parent.name != "v1" and stored["ark"].rpartition("/")[2] in str(path)
    )
    shutil.rmtree(sidecar.parent)

    jid = working.lines("objects", bid)[0]["jid"]
    named = working.shell.call("ingest", "requeue", jid)
    assert (named.returncode, "--completed" in named.stderr) == (1, True), named.stderr
    assert working.ingest("requeue", bid, "--dry-run") == f"{bid}: 0 would be requeued\n"
    assert working.ingest("requeue", bid, "--completed", "--dry-run") == f"{bid}: 1 would be requeued\n"
    assert working.ingest("requeue", jid, "--completed") == "objects: 1 requeued\n"

    status = working.until(bid, "completed", reports=2)
    assert status["objects"] == {"completed": 1}
    report = json.loads(working.ingest("report", bid, "--json"))
    assert (report["completed"][0]["version"], report["completed"][0]["ark"]) == (1, stored["ark"])
    assert not any(report["changes"].values())
    assert sidecar.exists()


@pytest.mark.parametrize("words", [("--wait",), ("--wait", "--fail-at", "recording")])
def test_who_waits_is_told_how_it_ended(working: House, words: tuple[str, ...]) -> None:
    result = working.shell.call(
        "ingest", "submit", working.file("waited.txt", b"wait"), "--kind", "file", "--profile", "maps", *words
    )

    assert result.returncode == (1 if "--fail-at" in words else 0), result.stderr
    assert result.stdout.startswith("bid-")
    last = result.stdout.splitlines()[-1]
    if "--fail-at" in words:
        assert re.fullmatch(r"object \d+ waited.txt failed: .*recording.*", last), last
    else:
        assert re.fullmatch(r"job \d+ ingest.batch completed", last), last


def test_what_is_short_and_waited_for_goes_ahead_of_many_objects(working: House) -> None:
    bid = working.submit(
        working.file("asked-for.txt", b"asked for"), "--kind", "file", "--local-id", "asked-for"
    )
    working.until(bid, "completed")
    (stored,) = working.lines("find", "--local-id", "asked-for", "--collection", "maps")
    many = {f"leaf-{n}.txt": f"leaf {n}".encode() for n in range(10)}
    payload, gate, mails = working.manifest("many.checkm", many), Gate(), Behaviour()
    for name in many:
        working.web.pages[f"/many.checkm/{name}"].always = gate
    cut = Path(working.manifest("torn.checkm", FILES)).read_bytes().replace(b"#%eof", b"#")
    with (
        gate,
        slots(working, 1),
        mail_server(mails) as port,
        changed(
            working,
            f'[mail]\nhost = "localhost"\nport = {port}\nsecurity = "none"\nsender = "a@example.org"\n[downloads]',
        ),
    ):
        # Given a slot that a batch of many objects has, and that is not free
        first = working.submit(payload)
        assert gate.reached.wait(30)
        # When others hand in, one of them something that cannot be read, and a reader asks
        second = working.submit(working.manifest("few.checkm", FILES))
        torn = working.submit(working.file("torn.checkm", cut))
        ticket = working.document("fetch", stored["ark"])
        assert (ticket["status"], "anticipated" in ticket) == ("queued", True)
        gate.opened.set()
        working.until(torn, "failed")
        job_numbers = [working.until(batch, "completed")["job"] for batch in (first, second)]

    # Then these were through before more than the one object that had the slot.
    leaves = [settled_us(job) for job in jobs(working, parent_id=job_numbers[0])]
    (read,) = (job.started_us for job in jobs(working, ids=(job_numbers[1],)))
    assert read is not None
    (reader,) = (settled_us(job) for job in jobs(working, ids=(ticket["job"],)))
    report = min(settled_us(job) for job in jobs(working, type="reports.mail", states=(State.COMPLETED,)))
    assert "torn.checkm" in mails.received[0].mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    for what in (read, reader, report):
        assert sum(leaf < what for leaf in leaves) <= 1


def test_free_connections_of_a_host_are_waited_for_without_a_slot(working: House) -> None:
    with Gate() as gate, changed(working, "[downloads]\nhost_limit = 1"):
        bids = []
        for name in ("one.checkm", "two.checkm"):
            payload = working.manifest(name, {"a.txt": name.encode()})
            working.web.pages[f"/{name}/a.txt"].always = gate
            bids.append(working.submit(payload))
        assert gate.reached.wait(30)

        def waiting() -> set[str | None]:
            parents = [working.status(bid)["job"] for bid in bids]
            return {job.waits_for for parent in parents for job in jobs(working, parent_id=parent)}

        with slots(working, 3):  # of which two may download
            until(lambda: waiting() == {None, f"lock:download:{working.web.host}"})
            other = working.submit(working.file("of-the-batch.txt", b"held by the batch"), "--kind", "file")
            working.until(other, "completed")
            assert waiting() == {None, f"lock:download:{working.web.host}"}
        gate.opened.set()
        for bid in bids:
            working.until(bid, "completed")
