"""Uploads to inboxes: one job an upload over every crash, and what is abandoned is removed."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contract.words import kind
from long_tests import LONG
from new_store import new_store, new_store_on_server
from spinney.commands.control import Control
from spinney.features.inboxes.commands import PauseInbox, PutInbox, RemoveInbox
from spinney.features.inboxes.uploads import InboxUploads
from spinney.features.jobs.commands import CancelJob
from spinney.folders import folders, upload_folder, upload_pieces, upload_steps
from spinney.folders.upload_folder import OpenUpload, UploadFolder
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import (
    BadParameters,
    Forbidden,
    NoSuch,
    Refused,
    SpinneyError,
    StoreUnavailable,
    StoreUnusable,
    UsageError,
)
from spinney.model.jobs import Filter, Job
from spinney.model.settings.inboxes import ArrivalOutcome, Upload
from spinney.model.states import State
from spinney.model.types import INTERNAL
from spinney.store.parts import Store
from spinney.store.sql import open_store

NOW_US = 1_700_000_000_000_000
BYTES = b"0123456789"


@dataclass
class House:
    """A store with its folder root, and inboxes."""

    place: Path
    url: str
    store: Store

    def __post_init__(self) -> None:
        self.root = self.place / "root"
        folders.write_token(self.root, self.store.facts()["folder_token"])
        schema = {"type": "object", "properties": {"file": {"type": "string"}}}
        numbered = {"type": "object", "properties": {"file": {"type": "string", "maxLength": 4}}}
        self.store.register(
            [
                kind("read", "work", schema=schema),
                kind("short", "work", schema=numbered),
                kind("inner", "work", submit=INTERNAL),
            ],
            (),
        )

    def control(self, by: str = "bob", rights: Rights = ALL_RIGHTS, store: Store | None = None) -> Control:
        return Control(
            store=store or self.store, clock=lambda: NOW_US, wake_nodes=lambda: None, by=by, rights=rights
        )

    def inbox(self, name: str = "in", **fields: Any) -> str:
        fields = {"folder": f"/srv/{name}", "type": "read"} | fields
        PutInbox(name=name, replace=True, **fields).put(self.control("ann"), internal=True)
        return name

    def uploads(self, *args: Any, **options: Any) -> InboxUploads:
        return self.control(*args, **options).part(InboxUploads)

    def begin(self, inbox: str = "in", by: str = "bob", rights: Rights = ALL_RIGHTS, **fields: Any) -> Upload:
        upload_fields = {"name": "a.zip", "size": len(BYTES)} | fields
        return self.uploads(by, rights).begin(self.root, Upload(id="", by="", inbox=inbox, **upload_fields))

    def write(self, upload: Upload, data: bytes) -> Upload:
        """Some bytes, and all that follows when they are the last."""
        uploads = self.uploads(upload.by)
        opened = uploads.open(self.root, upload.inbox, upload.id, upload.received)
        assert isinstance(opened, OpenUpload)
        with opened:
            opened.write(data)
            return uploads.finish(opened) if opened.seal() else opened.upload

    def find(self, upload: Upload) -> Upload:
        return self.uploads(upload.by).find(self.root, upload.inbox, upload.id)

    def sweep(self, later_s: float = 0.0) -> int:
        do = partial(upload_steps.call, self.store)
        return upload_steps.sweep(do, self.root, now_us=NOW_US, now_s=time.time() + later_s)

    def file(self, job_id: int | None) -> Path:
        return folders.path(self.root, job_id or 0) / "a.zip"

    def jobs(self) -> list[Job]:
        return list(self.store.jobs(Filter(), limit=10_000))

    def open_uploads(self) -> list[str]:
        place = self.root / upload_folder.UPLOADS / "open"
        return sorted(entry.name for entry in place.iterdir()) if place.exists() else []


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    url = new_store(tmp_path / "spinney.db")
    with closing(open_store(url)) as store:
        yield House(tmp_path, url, store)


# --- the way of an upload --------------------------------------------------------------------------


def test_an_upload_in_pieces_becomes_one_job_of_its_uploader(house: House) -> None:
    house.inbox(options={"submitter": "carl", "collection": "birds"})
    upload = house.write(house.begin(), BYTES[:4])
    assert (upload.received, upload.job_id) == (4, None)

    again = house.begin()
    assert (again.id, again.received) == (upload.id, 4)
    done = house.write(again, BYTES[4:])

    (job,) = house.jobs()
    assert (job.id, job.state, job.submitter, job.collection) == (done.job_id, State.PENDING, "bob", "birds")
    assert job.params == {"file": "a.zip"}
    assert house.file(job.id).read_bytes() == BYTES
    facts = house.store.get_data(job.id)["inbox"]
    assert (facts["owner"], facts["size"], facts["sha256"]) == ("bob", 10, done.sha256)
    (arrival,) = house.store.inboxes.arrivals("in")
    assert (arrival.outcome, arrival.job_id, arrival.name) == (ArrivalOutcome.TAKEN, job.id, "a.zip")
    assert house.store.inboxes.unfinished("in") == []
    assert house.find(upload).job_id == job.id
    assert house.open_uploads() == []


def test_the_last_request_repeated_has_the_same_answer(house: House) -> None:
    house.inbox()
    upload = house.begin(size=0)
    done = house.write(upload, b"")
    assert house.uploads("bob").open(house.root, "in", upload.id, 0) == done
    assert len(house.jobs()) == 1


@pytest.mark.parametrize(
    "other",
    [{"by": "eve"}, {"name": "b.zip"}, {"size": 11}, {"modified": "2"}, {"announced": "0" * 64}],
    ids=lambda other: next(iter(other)),
)
def test_another_file_or_user_begins_anew(house: House, other: dict[str, Any]) -> None:
    house.inbox()
    assert house.begin(modified="1").id == house.begin(modified="1").id
    assert house.begin(**{"modified": "1"} | other).id != house.begin(modified="1").id


def test_bytes_that_came_before_are_refused_with_their_job_or_accepted(house: House) -> None:
    house.inbox()
    first = house.write(house.begin(), BYTES)

    again = house.begin(name="b.zip")
    with pytest.raises(Refused, match=rf"as 'a.zip' of bob, and became job {first.job_id}"):
        house.write(again, BYTES)
    assert house.find(again).job_id == first.job_id
    with pytest.raises(Refused, match="came before"):
        house.uploads("bob").open(house.root, "in", again.id, 10)
    with pytest.raises(Refused, match="came before"):
        house.begin(announced=first.sha256)
    assert [a.outcome for a in house.store.inboxes.arrivals("in")] == [
        ArrivalOutcome.REJECTED,
        ArrivalOutcome.TAKEN,
    ]

    house.inbox(duplicates="accept")
    assert house.write(house.begin(name="c.zip", announced=first.sha256), BYTES).job_id != first.job_id
    assert len(house.jobs()) == 2


def test_bytes_other_than_announced_make_no_job(house: House) -> None:
    house.inbox()
    upload = house.begin(announced="0" * 64)
    with pytest.raises(Refused, match="SHA-256"):
        house.write(upload, BYTES)
    assert house.jobs() == []
    assert "SHA-256" in (house.find(upload).reason or "")


def test_bytes_come_in_their_order_and_not_more_than_announced(house: House) -> None:
    house.inbox()
    upload = house.write(house.begin(), BYTES[:4])
    with pytest.raises(Refused, match="4 bytes"):
        house.write(replace(upload, received=5), BYTES[5:])
    with pytest.raises(UsageError, match="more bytes"):
        house.write(upload, BYTES)
    assert house.find(upload).received == 4
    with UploadFolder(house.root).locked(upload.id, "bob"), pytest.raises(StoreUnavailable):  # type: ignore[union-attr]
        house.write(upload, BYTES[4:])
    assert house.write(upload, BYTES[4:]).job_id is not None


def test_an_inbox_that_takes_nothing_now_gets_the_upload_later(house: House) -> None:
    house.inbox()
    upload = house.write(house.begin(), BYTES[:4])
    house.control("ann").do(PauseInbox(name="in", paused=True))
    with pytest.raises(Refused, match="paused"):
        house.begin(name="b.zip")
    with pytest.raises(Refused, match="paused"):
        house.write(upload, BYTES[4:])
    house.control("ann").do(PauseInbox(name="in", paused=False))
    assert house.write(house.find(upload), b"").job_id is not None


def test_an_upload_whose_job_was_cancelled_is_done(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.inbox()
    with monkeypatch.context() as dying:
        dying.setattr(OpenUpload, "place", _dies)
        with pytest.raises(StoreUnusable):
            house.write(house.begin(), BYTES)
    (job,) = house.jobs()
    assert job.state is State.HELD
    house.control().do(CancelJob(job=job.id))
    assert house.sweep() == 1
    assert not house.file(job.id).exists()
    assert house.open_uploads() == []


def _dies(self: OpenUpload, job_id: int) -> None:
    raise StoreUnusable("the disk is gone; mount it again")


def test_an_open_upload_is_withdrawn_with_its_bytes_and_one_that_has_its_job_is_not(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.inbox()
    upload = house.write(house.begin(), BYTES[:4])
    assert [opened.id for opened in house.uploads().opened(house.root, "in")] == [upload.id]
    assert house.uploads("eve").opened(house.root, "in") == []
    with UploadFolder(house.root).locked(upload.id, "bob"), pytest.raises(StoreUnavailable):  # type: ignore[union-attr]
        house.uploads().withdraw(house.root, "in", upload.id)
    house.uploads().withdraw(house.root, "in", upload.id)
    assert house.open_uploads() == []
    with pytest.raises(NoSuch):
        house.uploads().withdraw(house.root, "in", upload.id)

    with monkeypatch.context() as dying:
        dying.setattr(OpenUpload, "place", _dies)
        with pytest.raises(StoreUnusable):
            house.write(upload := house.begin(), BYTES)
    with pytest.raises(Refused, match="is becoming a job"):
        house.uploads().withdraw(house.root, "in", upload.id)
    house.sweep()
    (job,) = house.jobs()
    with pytest.raises(Refused, match=f"it became job {job.id}; cancel"):
        house.uploads().withdraw(house.root, "in", upload.id)
    assert house.file(job.id).read_bytes() == BYTES


# --- who, and what ---------------------------------------------------------------------------------

SUBMITTER = Rights(role=Role.SUBMITTER)
LAB = Rights(role=Role.SUBMITTER, within=AccessScope(collections=("lab",)))


@pytest.mark.parametrize(
    ("rights", "fields", "refusal"),
    [
        (SUBMITTER, {}, None),
        (LAB, {}, None),
        (LAB, {"options": {"collection": "lab"}}, None),
        (LAB, {"options": {"collection": "birds"}}, NoSuch),
        (Rights(role=Role.VIEWER), {}, Forbidden),
        (SUBMITTER, {"type": "inner"}, Forbidden),
        (Rights(role=Role.OPERATOR), {"type": "inner"}, None),
        (Rights(role=Role.SUBMITTER, priorities=(40, 60)), {"options": {"priority": 10}}, Forbidden),
        (ALL_RIGHTS, {"type": "short"}, BadParameters),
        (ALL_RIGHTS, {"paused": True}, Refused),
    ],
)
def test_who_may_submit_the_jobs_may_upload(
    house: House, rights: Rights, fields: dict[str, Any], refusal: type[SpinneyError] | None
) -> None:
    house.inbox(**fields)
    if refusal is None:
        assert house.begin(rights=rights).received == 0
        return
    with pytest.raises(refusal):
        house.begin(rights=rights)
    assert house.open_uploads() == []


def test_the_job_of_somebody_with_limits_comes_within_them(house: House) -> None:
    house.inbox()
    upload, uploads = house.begin(rights=LAB), house.uploads("bob", LAB)
    with uploads.open(house.root, "in", upload.id, 0) as opened:  # type: ignore[union-attr]
        opened.write(BYTES)
        assert opened.seal()
        done = uploads.finish(opened)
    assert house.store.job(done.job_id or 0).collection == "lab"


def test_nobody_learns_of_a_job_out_of_sight(house: House) -> None:
    house.inbox()
    done = house.write(house.begin(by="carl", name="secret.zip"), BYTES)
    with pytest.raises(Refused, match="may not see") as refused:
        house.begin(rights=LAB, announced=done.sha256)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "../a", "a/b", "-rf", ".spinney", "a\n", "x" * 256, ".."])
def test_what_is_no_name_of_a_file_is_refused(house: House, name: str) -> None:
    house.inbox()
    with pytest.raises(UsageError):
        house.begin(name=name)


@pytest.mark.parametrize("upload_id", ["", "..", "../open", "0" * 16, "x" * 16])
def test_nobody_reaches_what_is_not_an_upload_of_his(house: House, upload_id: str) -> None:
    house.inbox()
    house.inbox("other", folder="/srv/other")
    upload = house.begin()
    for by, inbox, upload_number in (
        ("bob", "in", upload_id),
        ("eve", "in", upload.id),
        ("bob", "other", upload.id),
    ):
        with pytest.raises(NoSuch):
            house.uploads(by).find(house.root, inbox, upload_number)
        with pytest.raises(NoSuch):
            house.uploads(by).open(house.root, inbox, upload_number, 0)
    with pytest.raises(NoSuch):
        house.begin("nothing")


def test_one_user_has_so_many_uploads_open(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.inbox()
    monkeypatch.setattr(upload_folder, "OPEN_MOST", 2)
    first = house.begin(name="a")
    house.begin(name="b")
    with pytest.raises(Refused, match="2 uploads open"):
        house.begin(name="c")
    assert house.begin(name="a").id == first.id
    assert house.begin(by="eve", name="c").id


# --- housekeeping ----------------------------------------------------------------------------------


def test_what_nobody_goes_on_with_is_removed_and_answers_are_forgotten(house: House) -> None:
    house.inbox()
    half = house.write(house.begin(), BYTES[:4])
    house.control("ann").do(RemoveInbox(name="in"))
    (house.root / upload_folder.UPLOADS / "open" / ("0" * 16)).mkdir()

    house.sweep(upload_steps.KEEP_S - 60)
    assert house.find(half).received == 4
    house.sweep(upload_steps.KEEP_S + 60)

    assert house.open_uploads() == []
    assert "upload it again" in (house.find(half).reason or "")
    house.sweep(upload_steps.ANSWER_S + 60)
    with pytest.raises(NoSuch):
        house.find(half)


def test_an_upload_that_cannot_be_finished_keeps_no_other(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given three uploads whose process died before their files were in place, when the folder of one job cannot be
    made, then the others are finished, and that one when it can."""
    house.inbox(duplicates="accept")
    with monkeypatch.context() as dying:
        dying.setattr(OpenUpload, "place", _dies)
        for name in ("a.zip", "b.zip", "c.zip"):
            with pytest.raises(StoreUnusable):
                house.write(house.begin(name=name), BYTES)
    first = house.store.inboxes.of_upload(UploadFolder(house.root).opened_by("bob")[0])
    assert first is not None
    in_the_way = folders.path(house.root, first.job_id or 0)
    in_the_way.parent.mkdir(parents=True)
    in_the_way.touch()

    assert house.sweep() == 2
    assert len(house.open_uploads()) == 1
    (line,) = caplog.messages
    assert line.startswith(f"the upload of {first.name!r} to inbox in waits: cannot make the folder")
    in_the_way.unlink()
    assert house.sweep() == 1
    assert house.open_uploads() == []


# --- crashes ---------------------------------------------------------------------------------------

_CALLS = ("rename", "replace", "unlink", "mkdir", "fsync")
_VERBS = ("accept_upload", "release")


def dies_at(number: int, house: House, file: Path, name: str, calls: Sequence[str]) -> bool:
    """Upload in another process, which is killed at this point: before or after one of these calls that change the
    disk, or one that changes the store. Returns whether there was such a point."""
    house.store.close()  # which the next use opens again: a child cannot use what was open at the fork
    child = os.fork()
    if child == 0:
        try:
            store, points = open_store(house.url), iter(range(1, 10_000))

            def between(call: Callable[..., Any]) -> Callable[..., Any]:
                def checked(*args: Any, **kwargs: Any) -> Any:
                    for done in (False, True):
                        if next(points) == number:
                            os.kill(os.getpid(), signal.SIGKILL)
                        if not done:
                            answer = call(*args, **kwargs)
                    return answer

                return checked

            for call in calls:
                setattr(os, call, between(getattr(os, call)))
            for verb in _VERBS:
                setattr(store.inboxes, verb, between(getattr(store.inboxes, verb)))
            uploads = house.uploads(store=store)
            for upload in uploads.send_file(house.root, name, file):
                assert upload.received <= upload.size
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
@pytest.mark.parametrize("next_", ["uploader", "sweep"])
def test_whoever_dies_wherever_an_upload_makes_one_job_or_goes_on(
    tmp_path: Path, where: str, next_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_pieces, "PIECE_BYTES", 4)
    is_file = where == "sqlite"
    url = new_store(tmp_path / "spinney.db") if is_file else new_store_on_server()
    calls = _CALLS if is_file or LONG else ()  # the disk is changed in the same way whatever the store is
    file, number, dies = tmp_path / "a.zip", 0, True
    file.write_bytes(BYTES)
    with closing(open_store(url)) as store:
        house = House(tmp_path, url, store)
        while dies:
            # Given an upload whose process dies at the next point
            number += 1
            name = house.inbox(f"in-{number}")
            dies = dies_at(number, house, file, name, calls)
            # When the uploader comes again, or first a sweep of a node or server
            if next_ == "sweep":
                house.sweep()
            jobs = [a.job_id for a in store.inboxes.arrivals(name)]
            if not jobs or next_ == "uploader":
                with pytest.raises(Refused, match=f"became job {jobs[0]}") if jobs else nullcontext():
                    list(house.uploads().send_file(house.root, name, file))
            house.sweep()
            # Then there is one job with the whole file, that may begin
            taken = [a for a in store.inboxes.arrivals(name) if a.outcome is ArrivalOutcome.TAKEN]
            (job_id,) = [a.job_id for a in taken]
            assert store.job(job_id or 0).state is State.PENDING
            assert house.file(job_id).read_bytes() == BYTES
            house.sweep(upload_steps.KEEP_S + 60)
            assert house.open_uploads() == []
            house.control("ann").do(RemoveInbox(name=name))
    assert number > (20 if calls else 4)
