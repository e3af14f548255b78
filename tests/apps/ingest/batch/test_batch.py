"""A batch: taken in, judged, divided into objects, reported."""

import hashlib
import io
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.objects.scene import BID, Service, about
from apps.ingest.signals import failure
from reports.mail_server import Behaviour, mail_server
from spinney.apps.ingest import application
from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder
from spinney.apps.ingest.manifests import About, PayloadKind, Row, write, write_json
from spinney.define.job import Child
from spinney.model.states import State
from spinney.testing import StageHarness, StageResult

BOOK = [
    Row(url=f"http://example.org/{n}", name=f"{n}.txt", about=About(local_ids=(f"m{n}",))) for n in range(3)
]


def checkm(rows: Iterable[Row], kind: PayloadKind) -> bytes:
    out = io.BytesIO()
    write(rows, kind, out)
    return out.getvalue()


class Batch:
    """A batch that has been handed in."""

    def __init__(
        self,
        service: Service,
        content: bytes,
        kind: PayloadKind = PayloadKind.SINGLE_FILE_BATCH_MANIFEST,
        name: str = "m.checkm",
        **order: Any,
    ) -> None:
        self.incoming = service.settings.incoming / BID
        self.incoming.mkdir(parents=True)
        (self.incoming / name).write_bytes(content)
        fields = {"bid": BID, "profile": "maps", "kind": kind, "name": name, "submitter": "ann", **order}
        self.order = BatchOrder.model_validate(fields).model_dump(mode="json")
        self.data: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.root = service.folder / "jobs"
        self.root.mkdir()

    def run(self, stage: str, children: Iterable[Child] = ()) -> StageResult:
        harness = StageHarness(data=self.data, results=self.results, children=children, folder=self.root)
        ran = harness.run(application.batches, stage, order=self.order)
        self.data, self.results, self.folder = harness.data, harness.results, harness.job_folder
        return ran

    def report(self, number: int) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(
            (self.folder / f"reports/{number:04d}/report.json").read_bytes()
        )
        return document


def objects_of(ran: StageResult) -> list[ObjectOrder]:
    return [ObjectOrder.model_validate(one.params["order"]) for one in ran.spawned]


def ended(orders_: Iterable[ObjectOrder], *states: State) -> list[Child]:
    """Objects as a batch sees them when they have settled."""
    return [
        Child(
            id=100 + n,
            type="ingest.object",
            state=state,
            stage=None if state is State.COMPLETED else "downloading",
            code=None,
            message=None if state is State.COMPLETED else "it broke",
            warnings=0,
            params={"order": order.model_dump(mode="json")},
        )
        for n, (order, state) in enumerate(zip(orders_, states, strict=True))
    ]


def test_what_a_manifest_is_read_with_a_word_about_is_a_warning_and_in_the_report(service: Service) -> None:
    rows = [Row(url="http://example.org/1", name=name) for name in ("p.tif", "P.tif")]
    batch = Batch(service, checkm(rows, PayloadKind.OBJECT_MANIFEST), PayloadKind.OBJECT_MANIFEST)

    ran = batch.run("processing")
    batch.run("reporting", ended(objects_of(ran), State.COMPLETED))

    assert ran.outcome == "warning"
    assert ran.message.startswith("manifest 'm.checkm', line 7: the name 'P.tif' is that on line 6 but for")
    assert ran.value["objects"] == 1
    (warning,) = batch.report(1)["warnings"]
    assert warning.startswith("line 7: the name 'P.tif'")
    for name in ("report.txt", "report.html"):
        assert "line 6 but for" in (batch.folder / "reports/0001" / name).read_text()


# --- taken in ---------------------------------------------------------------------------------


def test_every_row_becomes_an_object(service: Service) -> None:
    batch = Batch(service, checkm(BOOK, PayloadKind.SINGLE_FILE_BATCH_MANIFEST), update=True)
    ran = batch.run("processing")
    assert (ran.outcome, ran.value) == ("ok", {"objects": 3, "priority": 15})
    objects = objects_of(ran)
    assert [one.jid for one in objects] == [orders.jid(BID, n) for n in (1, 2, 3)]
    assert [(one.payload.url, one.about.local_ids, one.update) for one in objects] == [
        (row.url, row.about.local_ids, True) for row in BOOK
    ]
    assert {one.order["priority"] for one in ran.spawned} == {15}
    assert {(one.order["collection"], one.order["submitter"]) for one in ran.spawned} == {("maps", "ann")}


def test_a_batch_that_is_divided_shows_how_far_it_is(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.apps.ingest.batches.stages._AT_ONCE", 2)

    ran = Batch(service, checkm(BOOK, PayloadKind.SINGLE_FILE_BATCH_MANIFEST)).run("processing")

    assert ran.harness.progress == [(2 / 3, "2 of 3 objects"), (1, "3 of 3 objects")]


def test_the_profiles_priority_counts_where_there_is_one(service: Service) -> None:
    service.profile(priority=42)
    assert Batch(service, b"x", PayloadKind.FILE, "x").run("processing").value == {
        "objects": 1,
        "priority": 42,
    }


@pytest.mark.parametrize(
    ("kind", "of_rows"),
    [
        (PayloadKind.SINGLE_FILE_BATCH_MANIFEST, PayloadKind.FILE),
        (PayloadKind.CONTAINER_BATCH_MANIFEST, PayloadKind.CONTAINER),
        (PayloadKind.BATCH_MANIFEST, PayloadKind.OBJECT_MANIFEST),
    ],
)
def test_the_kind_of_the_rows_is_that_of_the_manifest(
    service: Service, kind: PayloadKind, of_rows: PayloadKind
) -> None:
    assert {
        one.payload.kind for one in objects_of(Batch(service, checkm(BOOK, kind), kind).run("processing"))
    } == {of_rows}


def test_files_that_a_manifest_lists_itself_lie_in_the_batchs_folder(service: Service) -> None:
    out = io.BytesIO()
    files = (Row(url="http://example.org/a", name="a|b"), Row(url="http://example.org/b", name="b"))
    write_json([Row(url="", name="one", files=files)], PayloadKind.BATCH_MANIFEST, out)
    batch = Batch(service, out.getvalue(), PayloadKind.BATCH_MANIFEST)
    [entry] = objects_of(batch.run("processing"))
    assert entry.payload.url is None
    assert entry.payload.held == f"objects/{orders.jid(BID, 1)}.json"
    deposit = service.object(payload=entry.payload.model_dump(exclude_defaults=True))
    held = deposit.harness.job_folder.parent / f"{2:012d}" / entry.payload.held
    held.parent.mkdir(parents=True)
    held.write_bytes((batch.folder / entry.payload.held).read_bytes())
    assert deposit.run("estimating").value["files"] == 2


def test_cut_off_anywhere_the_payload_is_taken_once(service: Service) -> None:
    batch = Batch(service, b"map", PayloadKind.FILE, "x")
    folder = StageHarness(folder=batch.root).job_folder
    # Given an attempt that died between copying and naming,
    (folder / "payload").mkdir()
    (folder / "payload.new").write_bytes(b"ma")
    assert batch.run("processing").outcome == "ok"
    assert (folder / "payload/x").read_bytes() == b"map"
    assert not batch.incoming.exists()
    # and one that died behind it.
    batch.incoming.mkdir()
    (batch.incoming / "x").write_bytes(b"map")
    assert batch.run("processing").outcome == "ok"
    assert not batch.incoming.exists()
    assert sorted(path.name for path in folder.iterdir()) == ["payload"]


def test_a_name_as_long_as_a_name_may_be(service: Service) -> None:
    assert Batch(service, b"map", PayloadKind.FILE, "x" * 255).run("processing").outcome == "ok"


def test_the_digest_of_a_single_payload_goes_with_it(service: Service) -> None:
    digest = {"algorithm": "sha256", "value": hashlib.sha256(b"map").hexdigest()}
    [entry] = objects_of(Batch(service, b"map", PayloadKind.FILE, "x", digest=digest).run("processing"))
    assert entry.payload.digest is not None
    assert entry.payload.digest.value == digest["value"]


def test_objects_are_handed_over_a_thousand_at_a_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = (Row(url=f"http://example.org/{n}", name="x") for n in range(2500))
    batch = Batch(service, checkm(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST))
    sizes: list[int] = []
    texts = type(application.objects).texts
    monkeypatch.setattr(
        type(application.objects), "texts", lambda self, some: sizes.append(len(some)) or texts(self, some)
    )
    assert len(batch.run("processing").spawned) == 2500
    assert max(sizes) <= 1000


# --- refused ----------------------------------------------------------------------------------

BROKEN = checkm(BOOK, PayloadKind.SINGLE_FILE_BATCH_MANIFEST).replace(
    b"http://example.org/1", b"gopher://example.org/1"
)


def test_a_manifest_that_cannot_be_read_fails_the_batch_with_the_line_and_is_told(service: Service) -> None:
    service.write(
        mail={"host": "localhost", "sender": "archive@example.org", "admins": ["staff@example.org"]}
    )
    batch = Batch(service, BROKEN)
    ran = batch.run("processing")
    assert not failure(ran).retryable
    assert ran.message.startswith("manifest 'm.checkm', line 7: ")
    assert ran.spawned == []
    report = batch.report(1)
    assert (report["state"], report["fault"]) == ("failed", ran.message)
    [mail] = ran.submitted
    assert (mail.key, mail.params["to"]) == (f"{BID}.report-1", ["staff@example.org"])
    assert "line 7" in mail.params["text"]


NAMED = ["Ann <ann@example.org>", "bob@example.org", "staff@example.org"]


def test_whom_the_depositor_named_is_told_apart_from_whom_the_profile_names(service: Service) -> None:
    service.write(
        mail={"host": "localhost", "sender": "archive@example.org", "admins": ["staff@example.org"]}
    )
    service.profile(report={"batch": ["Ann B. <ann@example.org>"]})
    batch = Batch(service, checkm(BOOK, PayloadKind.SINGLE_FILE_BATCH_MANIFEST), notify=NAMED)
    objects = objects_of(batch.run("processing"))
    for number in (1, 2):
        one, other = batch.run("reporting", ended(objects, *[State.COMPLETED] * 3)).submitted
        assert (one.params["to"], one.params["cc"]) == (["Ann B. <ann@example.org>"], ["staff@example.org"])
        assert (other.params["to"], other.params["cc"]) == (["bob@example.org"], [])
        assert other.params["text"] == one.params["text"]
        assert other.params["message_id"].startswith(f"<{BID}.report-{number}.notified@")
        batch.run("sent")
    assert other.params["in_reply_to"].startswith(f"<{BID}.report-1.notified@")


def test_whom_the_depositor_named_is_told_that_the_payload_was_refused(service: Service) -> None:
    service.write(
        mail={"host": "localhost", "sender": "archive@example.org", "admins": ["staff@example.org"]}
    )
    first, second = Batch(service, BROKEN, notify=NAMED[:1]).run("processing").submitted
    assert (first.key, second.key) == (f"{BID}.report-1", f"{BID}.report-1.notified")
    assert second.params["to"] == NAMED[:1]


def test_sent_back_and_refused_again_it_is_told_again(service: Service) -> None:
    batch = Batch(service, BROKEN)
    batch.run("processing")
    ran = batch.run("processing")
    assert ran.message.startswith("manifest 'm.checkm', line 7: ")
    assert batch.report(2)["number"] == 2


def test_cut_off_while_it_told_it_tells_the_same_again(service: Service) -> None:
    batch = Batch(service, BROKEN)
    first = batch.run("processing")
    report = batch.report(1)
    batch.data.pop("sent")
    assert batch.run("processing").submitted == first.submitted
    assert batch.report(1) == report


@pytest.mark.parametrize(
    ("content", "name", "order", "sentence"),
    [
        (b"map", "x", {"digest": {"algorithm": "md5", "value": "0" * 32}}, "'x' has the md5"),
        (b"no manifest", "m", {"kind": "batch-manifest"}, "manifest 'm', line 1: this is no manifest"),
        (b"", "m", {"kind": "object-manifest"}, "manifest 'm', line 1: "),
        (
            checkm(BOOK, PayloadKind.BATCH_MANIFEST),
            "m",
            {"kind": "object-manifest"},
            "is of kind batch-manifest and was submitted as object-manifest",
        ),
        (
            b'{"profile": "batch-manifest", "objects": [{"url": "http://x.org/a", "title": "\\ud800"}]}',
            "m",
            {"kind": "batch-manifest"},
            "half a character",
        ),
    ],
)
def test_what_may_not_enter_fails_at_once(
    service: Service, content: bytes, name: str, order: dict[str, Any], sentence: str
) -> None:
    ran = Batch(service, content, **{"kind": PayloadKind.FILE, "name": name, **order}).run("processing")
    assert not failure(ran).retryable
    assert sentence in ran.message


def test_a_payload_that_is_gone(service: Service) -> None:
    batch = Batch(service, b"map", PayloadKind.FILE, "x")
    (batch.incoming / "x").unlink()
    ran = batch.run("processing")
    assert ran.message == f"the payload 'x' is no longer in {batch.incoming}; submit it again"


def test_a_link_in_the_place_of_a_payload_is_not_followed(service: Service, tmp_path: Path) -> None:
    batch = Batch(service, b"map", PayloadKind.FILE, "x")
    (tmp_path / "secret").write_bytes(b"secret")
    (batch.incoming / "x").unlink()
    (batch.incoming / "x").symlink_to(tmp_path / "secret")
    assert batch.run("processing").outcome == "error"


# --- reported ---------------------------------------------------------------------------------


def test_what_failed_is_reported_and_what_was_mended_is_an_update(service: Service) -> None:
    service.write(
        mail={"host": "localhost", "sender": "archive@example.org"}, public_url="https://example.org/"
    )
    service.profile(report={"batch": ["ann@example.org"], "kind": "attached"})
    batch = Batch(service, checkm(BOOK, PayloadKind.SINGLE_FILE_BATCH_MANIFEST))
    objects = objects_of(batch.run("processing"))
    one = ended(objects, State.COMPLETED, State.FAILED, State.COMPLETED)
    first = batch.run("reporting", one)
    assert (first.outcome, first.message) == ("warning", "1 of 3 objects failed")
    assert first.value == {"number": 1, "state": "failed", "objects": 3, "failed": 1}
    [mail] = first.submitted
    assert mail.params["message_id"].startswith(f"<{BID}.report-1@")
    # Cut off before it is recorded, it tells the same again,
    again = batch.run("reporting", one)
    assert [one.params for one in again.submitted] == [mail.params]
    # and once it is, what has changed since.
    assert batch.run("sent").outcome == "ok"
    mended = batch.run("reporting", ended(objects, *[State.COMPLETED] * 3))
    assert mended.value == {"number": 2, "state": "completed", "objects": 3, "failed": 0}
    assert batch.report(2)["changes"]["mended"] == ["m1"]
    assert mended.submitted[0].params["message_id"] != mail.params["message_id"]


def test_a_report_that_waits_for_its_mail_server_outlives_its_batch(service: Service) -> None:
    service.write(mail={"host": "localhost", "port": 1, "sender": "archive@example.org", "security": "none"})
    service.profile(report={"batch": ["ann@example.org"], "kind": "attached"})
    batch = Batch(service, b"x", PayloadKind.FILE, "x")
    objects = objects_of(batch.run("processing"))
    [mail] = batch.run("reporting", ended(objects, State.FAILED)).submitted
    shutil.rmtree(batch.folder)  # as when it is deleted

    waiting = StageHarness(folder=batch.root).run(application.outbox.mail, **mail.params)
    assert (waiting.outcome, "mail server" in waiting.message) == ("defer", True), waiting.message
    assert (service.settings.outgoing / f"{BID}.report-1" / "job").read_text() == f"{mail.id}\n"
    behaviour = Behaviour()
    with mail_server(behaviour) as port:
        service.write(mail=service.document["mail"] | {"port": port})
        assert StageHarness(folder=batch.root).run(application.outbox.mail, **mail.params).outcome == "ok"
    [received] = behaviour.received
    assert [part.get_filename() for part in received.mail.iter_attachments()] == [
        "completed.json",
        "failed.json",
    ]


def test_a_report_names_stage_message_and_what_passed(service: Service) -> None:
    batch = Batch(service, checkm(BOOK, PayloadKind.SINGLE_FILE_BATCH_MANIFEST))
    objects = objects_of(batch.run("processing"))
    batch.run("reporting", ended(objects, State.COMPLETED, State.FAILED, State.CANCELLED))
    report = batch.report(1)
    [failed] = report["failed"]
    assert (failed["stage"], failed["passed"], failed["message"]) == (
        "downloading",
        "provisioning",
        "it broke",
    )
    assert report["completed"][0]["passed"] == "notify"
    assert report["totals"]["cancelled"] == 1


def test_a_report_tells_when_the_batch_was_accepted_however_long_it_was_held(service: Service) -> None:
    batch = Batch(service, b"x", PayloadKind.FILE, "x", accepted="2026-01-02T03:04:05Z")
    batch.run("reporting", ended(objects_of(batch.run("processing")), State.COMPLETED))
    assert batch.report(1)["accepted"] == "2026-01-02T03:04:05+00:00"


def test_a_report_tells_what_was_deposited(service: Service) -> None:
    batch = Batch(service, checkm(BOOK[:1], PayloadKind.SINGLE_FILE_BATCH_MANIFEST))
    objects = objects_of(batch.run("processing"))
    done = service.of_file(b"map", jid=objects[0].jid).deposit()
    batch.run("reporting", ended(objects, State.COMPLETED))
    [completed] = batch.report(1)["completed"]
    assert (completed["ark"], completed["files"], completed["bytes"], completed["system_files"]) == (
        done["ark"],
        1,
        3,
        2,
    )
    system = sum(
        file.size_bytes for file in service.storage.files(done["ark"]) if file.path.startswith("system/")
    )
    totals = batch.report(1)["totals"]
    assert completed["system_bytes"] == totals["system_bytes"] == system
    assert (totals["files"], totals["bytes"], totals["system_files"]) == (1, 3, 2)
    for name in ("report.txt", "report.html"):
        assert f"2 files, {system:,} bytes" in (batch.folder / "reports/0001" / name).read_text()


def test_a_report_tells_where_nothing_changed(service: Service) -> None:
    service.write(mail={"host": "localhost", "sender": "archive@example.org"})
    service.profile(report={"batch": ["ann@example.org"]})
    description = about(local_ids=("m0",))
    ark = service.of_file(b"map", number=2, about=description).deposit()["ark"]
    batch = Batch(service, checkm(BOOK[:1], PayloadKind.SINGLE_FILE_BATCH_MANIFEST))
    objects = objects_of(batch.run("processing"))
    deposit = service.of_file(b"map", jid=objects[0].jid, about=description)
    deposit.deposit()
    shutil.copytree(deposit.folder.parent / f"{2:012d}", batch.folder, dirs_exist_ok=True)
    children = ended(objects, State.COMPLETED)

    ran = batch.run("reporting", children)

    report = batch.report(1)
    [completed] = report["completed"]
    assert (completed["ark"], completed["version"], completed["unchanged"], completed["files"]) == (
        ark,
        1,
        True,
        0,
    )
    assert (report["totals"]["completed"], report["totals"]["unchanged"]) == (1, 1)
    mail = ran.submitted[0].params
    assert mail["subject"] == f"{BID}: completed (1 object, 1 unchanged)"
    for text in (mail["text"], mail["html"]):
        assert f"nothing changed: {ark} had all of this as version 1" in text
    # Sent back when there is something new, it has brought a version.
    service.web.put("/1/a.txt", b"another map")
    deposit.deposit()
    shutil.rmtree(batch.folder / "unchanged")
    shutil.copytree(deposit.folder.parent / f"{2:012d}", batch.folder, dirs_exist_ok=True)
    batch.run("reporting", children)
    [completed] = batch.report(1)["completed"]
    assert (completed["version"], completed["unchanged"], completed["files"]) == (2, False, 1)


def test_nobody_is_told_where_nobody_wishes(service: Service) -> None:
    service.write(
        mail={"host": "localhost", "sender": "archive@example.org", "admins": ["staff@example.org"]}
    )
    service.profile(report={"kind": "suppressed"})
    batch = Batch(service, b"x", PayloadKind.FILE, "x")
    objects = objects_of(batch.run("processing"))
    assert batch.run("reporting", ended(objects, State.COMPLETED)).submitted == []
    assert batch.report(1)["state"] == "completed"


# --- away -------------------------------------------------------------------------------------


def test_a_home_that_is_not_mounted_lets_the_batch_wait_and_lifts_no_hold(service: Service) -> None:
    service.write(profiles=str(service.folder / "home/profiles"), home="disk")
    service.prepare()
    batch = Batch(service, b"map", PayloadKind.FILE, "x")
    held_batches.hold(service.settings, BID, "a curator looks first")
    (service.folder / "disk").rename(service.folder / "elsewhere")
    ran = batch.run("processing")
    assert (ran.outcome, "mount the disk" in ran.message) == ("defer", True), ran.message
    (service.folder / "elsewhere").rename(service.folder / "disk")
    assert batch.run("processing").outcome == "hold"
    held_batches.unhold(service.settings, BID)
    assert batch.run("processing").outcome == "ok"


def test_a_batch_whose_profile_was_deleted_reports_once_it_is_back(service: Service) -> None:
    batch = Batch(service, b"map", PayloadKind.FILE, "x")
    made = objects_of(batch.run("processing"))
    profile = service.folder / "home/profiles/maps.toml"
    text = profile.read_text()
    profile.unlink()
    assert batch.run("reporting", ended(made, State.COMPLETED)).outcome == "defer"
    profile.write_text(text)
    assert batch.run("reporting", ended(made, State.COMPLETED)).outcome == "ok"


# --- signed URLs ------------------------------------------------------------------------------


def test_what_may_be_a_signature_is_in_no_parameters_and_the_file_is_fetched_by_it(service: Service) -> None:
    signed = [service.web.put(f"/{n}?X-Signature=hush{n}&x=?", b"map") for n in range(2)]
    urls = [signed[0], service.web.put("/plain", b"map"), signed[1]]
    rows = [Row(url=url, name="a.txt") for url in urls]
    batch = Batch(service, checkm(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST))
    ran = batch.run("processing")
    assert not [one for one in ran.spawned if "hush" in json.dumps(one.params)]
    # However often it is read,
    assert [one.params for one in batch.run("processing").spawned] == [one.params for one in ran.spawned]
    for number, (order, url) in enumerate(zip(objects_of(ran), urls, strict=True), 1):
        deposit = service.object(number, payload=order.payload.model_dump(exclude_defaults=True))
        parent = deposit.harness.job_folder.parent / f"{2:012d}"
        parent.mkdir()
        (parent / "queries").write_bytes((batch.folder / "queries").read_bytes())
        assert deposit.to("downloading").outcome == "ok"
        assert service.web.request_count(url.removeprefix(f"http://{service.web.host}")) == 1


def test_a_signature_that_is_gone_is_said_to_be(service: Service) -> None:
    deposit = service.object(payload={"kind": "file", "url": service.web.url("/a"), "query": 0, "name": "a"})
    ran = deposit.run("estimating")
    assert not failure(ran).retryable
    assert "submit the batch again" in ran.message
