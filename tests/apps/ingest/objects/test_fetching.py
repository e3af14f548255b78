"""Estimating, room, and downloading: what is asked, what is promised, and what goes wrong."""

import io
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from apps.ingest.objects.scene import Deposit, Service, payload, zipped
from apps.ingest.signals import deferral, failure
from apps.ingest.web import cut, status, stuck
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.apps.ingest.objects.downloading import host_lock
from spinney.define.job import Job, LockTaken
from spinney.model.errors import UsageError
from spinney.model.values import names
from spinney.testing import StageHarness

# --- estimating -------------------------------------------------------------------------------


def test_the_space_needed_is_the_sum_and_what_is_unknown_is_named(service: Service) -> None:
    deposit = service.of_files({"a": b"1234", "b": b"12"})
    service.web.pages["/files/b"].always = status(405)
    ran = deposit.run("estimating")
    assert ran.outcome == "warning"
    assert ran.value == {"files": 2, "bytes": 4, "unknown": 1}
    assert ran.message == "the size of 1 of 2 files is not known: 'b' has no length"


def test_only_sizes_that_nobody_gave_are_asked_for(service: Service) -> None:
    sized, unsized = service.web.put("/given", b"12345"), service.web.put("/unknown", b"12")
    manifest = _manifest_of(service, Row(url=sized, name="a", size_bytes=5), Row(url=unsized, name="b"))
    ran = service.object(payload=manifest).run("estimating")
    assert (service.web.request_count("/given", "HEAD"), service.web.request_count("/unknown", "HEAD")) == (
        0,
        1,
    )
    assert (ran.outcome, ran.value) == ("ok", {"files": 2, "bytes": 7, "unknown": 0})


def test_a_size_given_wrong_shows_in_the_download(service: Service) -> None:
    url = service.web.put("/x?Signature=hush", b"12345")
    deposit = service.object(payload=_manifest_of(service, Row(url=url, name="as was said", size_bytes=4)))
    ran = deposit.to("downloading")
    assert not failure(ran).retryable
    assert "'as was said' could not be fetched" in ran.message


def test_what_is_known_to_be_otherwise_than_was_said_is_named(service: Service) -> None:
    # Known as another row has no size, or as the file is on this machine.
    url = service.web.put("/x?Signature=hush", b"12345")
    root = service.folder / "deposits"
    root.mkdir()
    (root / "here").write_bytes(b"123")
    service.write(file_roots=[str(root)])
    rows = [
        Row(url=url, name="asked for"),
        Row(url=url, name="as it is", size_bytes=5),
        Row(url=url, name="as was said", size_bytes=4),
        Row(url=f"file://{root}/here", name="here", size_bytes=2),
    ]
    ran = service.object(payload=_manifest_of(service, *rows)).run("estimating")
    assert service.web.request_count("/x?Signature=hush", "HEAD") == 1
    assert (ran.outcome, ran.value) == ("warning", {"files": 4, "bytes": 16, "unknown": 0})
    assert ran.message == (
        "2 of 4 files do not have the given size: 'as was said' has 5 bytes at its server, not 4; "
        "'here' has 3 bytes at its server, not 2"
    )


def test_names_of_others_are_printable_in_messages(service: Service) -> None:
    url = service.web.put("/x?Signature=hush", b"1", always=status(405))
    ran = service.object(payload=payload(PayloadKind.FILE, url, "a\x1b[2Jb")).run("estimating")
    assert ran.message == r"the size of 1 of 1 files is not known: 'a\x1b[2Jb' has no length"


@pytest.mark.parametrize("stage", ["estimating", "downloading"])
def test_what_may_be_a_secret_in_a_url_is_in_no_message(service: Service, stage: str) -> None:
    url = service.web.url("/gone?Signature=hush")
    ran = service.object(payload=payload(PayloadKind.FILE, url, "a")).to(stage)
    assert "404" in ran.message
    assert "hush" not in ran.message


def test_sizes_that_no_number_can_hold_are_refused(service: Service) -> None:
    deposit = service.object(payload=_of_manifest(service, {"a": b"1", "b": b"2"}, size_bytes=2**63 - 1))
    ran = deposit.run("estimating")
    assert not failure(ran).retryable
    assert ran.message == f"the sizes of its files add up to {2**64 - 2} bytes; correct the sizes"


def test_a_size_that_was_given_counts_though_the_same_file_is_asked_for_elsewhere(service: Service) -> None:
    url = service.web.put("/x", b"12345")
    out = io.BytesIO()
    rows = [Row(url=url, name="as it is"), Row(url=url, name="as was said", size_bytes=4)]
    write(rows, PayloadKind.OBJECT_MANIFEST, out)
    manifest = service.web.put("/m.checkm", out.getvalue())
    deposit = service.object(payload=payload(PayloadKind.OBJECT_MANIFEST, manifest, "m.checkm"))
    assert deposit.run("estimating").value["bytes"] == 9
    refused = deposit.to("downloading", "provisioning")
    assert refused.outcome == "error"
    assert refused.message.startswith("'as was said' could not be fetched")


def test_a_media_type_that_could_not_be_recorded_is_refused_before_anything_is_fetched(
    service: Service,
) -> None:
    deposit = service.object(payload=_of_manifest(service, {"a": b"1"}, mime_type="image/" + "x" * 300))
    ran = deposit.run("estimating")
    assert ran.outcome == "error"
    assert "MIME type" in ran.message


def test_a_manifest_that_was_mended_where_it_lies_is_read_anew(service: Service) -> None:
    url = service.web.put("/m.checkm", b"#%checkm_0.7\nnonsense\n")
    deposit = service.object(payload=payload(PayloadKind.OBJECT_MANIFEST, url, "m.checkm"))
    refused = deposit.run("estimating")
    assert "manifest 'm.checkm', line 2" in refused.message
    service.manifest({"a": b"1"})
    assert deposit.run("estimating").outcome == "ok"


def test_a_manifest_that_cannot_be_had_is_named(service: Service) -> None:
    url = service.web.url("/none.checkm")
    ran = service.object(payload=payload(PayloadKind.OBJECT_MANIFEST, url, "m.checkm")).run("estimating")
    assert ran.outcome == "error"
    assert ran.message.startswith("the object manifest 'm.checkm' could not be fetched from http://127.0.0.1")


def test_a_heavy_object_goes_further_back(service: Service) -> None:
    url = service.web.url("/large")
    deposit = service.object(payload=payload(PayloadKind.FILE, url, "a", size_bytes=10**12))
    deposit.run("estimating")
    assert deposit.harness.priority == 5 + 15
    service.profile(priority=7)
    other = service.object(number=2, payload=payload(PayloadKind.FILE, url, "a", size_bytes=10**12))
    other.run("estimating")
    assert other.harness.priority is None


def _manifest_of(service: Service, *rows: Row) -> dict[str, Any]:
    out = io.BytesIO()
    write(rows, PayloadKind.OBJECT_MANIFEST, out)
    return payload(PayloadKind.OBJECT_MANIFEST, service.web.put("/m.checkm", out.getvalue()), "m.checkm")


def _of_manifest(service: Service, files: dict[str, bytes], **row: Any) -> dict[str, Any]:
    return payload(PayloadKind.OBJECT_MANIFEST, service.manifest(files, **row), "m.checkm")


# --- room -------------------------------------------------------------------------------------

Disks = Callable[[int, int], None]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, service: Service) -> Disks:
    """Says how full the disk is: the one of the machine that tests cannot be filled."""
    service.write(working={"limit": 0.7, "warning": 0.8})

    def is_now(used: int, room_bytes: int) -> None:
        free = room_bytes - used
        statistics = SimpleNamespace(f_blocks=room_bytes, f_bfree=free, f_bavail=free, f_frsize=1)
        monkeypatch.setattr(os, "statvfs", lambda _: statistics)

    return is_now


@pytest.mark.parametrize(
    ("used", "needed", "outcome", "sentence"),
    [
        (0, 70, "ok", ""),
        (60, 10, "ok", ""),
        (
            60,
            11,
            "defer",
            "11 bytes do not fit now: working storage is 60% full, the limit is 70%; make room",
        ),
        (71, 0, "defer", "working storage is 71% full, the limit is 70%; make room"),
        (
            81,
            0,
            "defer",
            "working storage is 81% full, the limit is 70%, above the warning mark of 80%; make room",
        ),
        (0, 71, "hold", "it needs 71 bytes, and working storage may hold 70 in all"),
    ],
)
def test_who_finds_no_room_waits(
    service: Service, disk: Disks, used: int, needed: int, outcome: str, sentence: str
) -> None:
    disk(used, 100)
    deposit = service.of_file(b"x" * needed)
    ran = deposit.to("provisioning")
    assert ran.outcome == outcome
    assert sentence in ran.message


def test_who_has_another_area_does_not_sleep_with_the_others(service: Service, disk: Disks) -> None:
    disk(90, 100)
    assert deferral(service.of_file().to("provisioning")).lane
    service.write(areas={"fast": "fast"})
    assert not deferral(service.of_file(number=2).to("provisioning")).lane


def test_the_promise_falls_to_what_is_still_to_come(service: Service) -> None:
    archive = zipped({"a": b"x" * 100})
    deposit = service.of_container(archive)
    promised = []
    for stage in ("estimating", "provisioning", "downloading", "processing"):
        deposit.run(stage)
        promised.append(deposit.harness.amounts.get("ingest-working:jobs"))
    assert promised == [None, 2 * len(archive), len(archive), 0]


def test_a_container_larger_than_its_estimate_is_promised_the_space_to_unpack(service: Service) -> None:
    archive = zipped({"a": b"x" * 100})
    deposit = service.of_container(archive)
    service.web.pages["/1/a.zip"].first.append(status(405))
    assert deposit.to("downloading").outcome == "ok"
    assert deposit.harness.amounts["ingest-working:jobs"] == len(archive)


def test_a_container_of_unknown_size_keeps_the_space_to_unpack_that_it_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a container of unknown size that was downloaded, and waits for the space to unpack it,
    archive = zipped({"a": b"x" * 100})
    deposit = service.of_container(archive)
    service.web.pages["/1/a.zip"].first.append(status(405))
    deposit.to("provisioning")
    amounts: list[int] = []
    lock = Job.lock

    def lock_or_wait(self: Job, name: str, *args: Any, amount: int = 1, **options: Any) -> None:
        if name == "ingest-working:jobs":
            amounts.append(amount)
            if amounts == [0, len(archive)]:
                raise LockTaken(name, amount, options["capacity"])
        lock(self, name, *args, amount=amount, **options)

    monkeypatch.setattr(Job, "lock", lock_or_wait)
    assert deposit.run("downloading").outcome == "locked"
    # when it has got that space, then it keeps it from the first request on.
    assert deposit.run("downloading").outcome == "ok"
    assert amounts == [0, len(archive), len(archive), len(archive)]
    assert service.web.request_count("/1/a.zip", "GET") == 1


def test_who_is_sent_back_promises_anew_what_is_still_to_come(service: Service) -> None:
    service.write(downloads={"at_once": 1})
    deposit = service.of_files({"a": b"x" * 100, "b": b"y" * 10})
    deposit.to("provisioning")
    service.web.pages["/files/b"].always = status(404)
    assert deposit.run("downloading").outcome == "error"
    # When it is sent back, and what it had been promised is free since it failed,
    again = deposit.beside(host_lock(service.web.host))
    assert again.run("downloading").outcome == "locked"
    # then room is kept for the rest before anything is asked for.
    assert again.harness.amounts == {"ingest-working:jobs": 10}


def test_files_of_unknown_size_stop_at_the_warning_mark_and_go_on_later(
    service: Service, disk: Disks
) -> None:
    disk(60, 100)
    deposit = service.of_file(b"x" * 100)
    service.web.pages["/1/a.txt"].first.append(status(405))
    deposit.to("provisioning")
    disk(81, 100)
    service.web.pages["/1/a.txt"].first.append(stuck(50))
    ran = deposit.run("downloading")
    assert ran.outcome == "defer"
    assert "above the warning mark of 80%; the received bytes are kept" in ran.message
    disk(60, 100)
    assert deposit.run("downloading").outcome == "ok"


# --- downloading ------------------------------------------------------------------------------


def test_the_file_that_fails_is_named_with_its_cause(service: Service) -> None:
    url = service.web.put("/b.txt", b"bad")
    ran = service.object(payload=payload(PayloadKind.FILE, url, "b.txt", b"good")).to("downloading")
    assert not failure(ran).retryable
    assert ran.message.startswith(f"'b.txt' could not be fetched from {url}: its sha256 digest is ")


def test_a_break_is_mended_within_the_stage(service: Service) -> None:
    deposit = service.of_file(b"x" * 100_000)
    service.write(downloads={"tries": 2})
    service.web.pages["/1/a.txt"].first += [status(200, {"Content-Length": "100000"}), cut(70_000)]
    assert deposit.to("downloading").outcome == "ok"


def test_private_addresses_are_refused_unless_the_profile_has_the_host(service: Service) -> None:
    service.profile(hosts=[])
    ran = service.of_file().to("downloading")
    assert not failure(ran).retryable
    assert "127.0.0.1" in ran.message


def test_files_of_this_machine_only_below_the_roots(service: Service) -> None:
    root = service.folder / "deposits"
    root.mkdir()
    (root / "a").write_bytes(b"1")
    (service.folder / "secret").write_bytes(b"2")
    (root / "link").symlink_to("../secret")
    service.write(file_roots=["deposits"])
    for number, (name, outcome) in enumerate({"a": "ok", "link": "error", "../secret": "error"}.items()):
        url = f"file://{root}/{name}"
        ran = service.object(number, payload=payload(PayloadKind.FILE, url, "x")).to("downloading")
        assert ran.outcome == outcome, ran.message


def test_each_host_is_asked_under_its_lock(service: Service) -> None:
    deposit = service.of_files({f"{n}": b"1" for n in range(9)})
    deposit.to("provisioning")
    lock = host_lock(service.web.host)
    assert deposit.beside(lock).run("downloading").outcome == "locked"
    deposit.run("downloading")
    assert deposit.harness.amounts[lock] == 4


def test_an_operator_may_give_a_host_less_than_an_object_would_take(service: Service) -> None:
    deposit = service.of_files({f"{n}": b"1" for n in range(9)})
    deposit.to("provisioning")

    class Few(StageHarness):
        """A lock of which operators have left two."""

        def _answer_take_lock(self, name: str, until: str, amount: int, capacity: int | None) -> bool:
            if name.startswith("download:") and amount > 2:
                raise UsageError("it has a capacity of 2, so that nobody can take more")
            return super()._answer_take_lock(name, until, amount, capacity)

    harness = Few(
        data=deposit.harness.data, parent_data={}, results=deposit.harness.results, folder=deposit.root
    )
    assert Deposit(order=deposit.order, harness=harness, root=deposit.root).run("downloading").outcome == "ok"
    assert harness.amounts[host_lock(service.web.host)] == 2


@pytest.mark.parametrize("host", ["example.org", "[::1]:8080", "a..b", "x" * 253, "ex*mple"])
def test_a_lock_can_be_called_after_any_host(host: str) -> None:
    assert names.lock_name(host_lock(host)) == host_lock(host)


def test_a_url_too_long_to_be_asked_fails_at_once(service: Service) -> None:
    url = service.web.url("/" + "x" * 8100)
    ran = service.object(payload=payload(PayloadKind.FILE, url, "x", size_bytes=1)).to("downloading")
    assert not failure(ran).retryable
    assert "is longer than 8000 characters" in ran.message


def test_who_is_cancelled_while_it_downloads_ends(service: Service) -> None:
    deposit = service.of_file(b"x" * 100)
    deposit.to("provisioning")
    service.web.pages["/1/a.txt"].always = stuck(50)
    assert deposit.beside(cancelled=True).run("downloading").outcome == "cancelled"


def test_who_is_cancelled_while_it_unpacks_leaves_nothing_half(service: Service) -> None:
    deposit = service.of_container(zipped({"a": b"1"}))
    deposit.to("downloading")
    assert deposit.beside(cancelled=True).run("processing").outcome == "cancelled"
    assert not (deposit.folder / "unpacked.jsonl").exists()
    assert not (deposit.folder / "content-1").exists()


def test_a_completed_object_that_is_sent_back_too_late_is_told_from_where(service: Service) -> None:
    deposit = service.of_file()
    deposit.deposit()
    ran = deposit.run("processing")
    assert ran.message == (
        "fetched.jsonl is no longer in the working folder; requeue this object from its stage 'downloading'"
    )
    assert deposit.to("notify").outcome == "ok"


# --- requeued from an earlier stage -------------------------------------------------------------


@pytest.mark.parametrize("first", ["estimating", "provisioning", "downloading"])
def test_an_object_whose_download_passed_is_fetched_anew_when_it_is_requeued_from_there(
    service: Service, first: str
) -> None:
    # Given a container without a digest that was cut off at its server, which processing refuses,
    whole = zipped({"a": b"x" * 1000})
    deposit = service.of_container(whole[:500])
    assert failure(deposit.to("processing")).message
    # when the server has the whole container, and an operator requeues the object from an earlier stage,
    service.web.put("/1/a.zip", whole)
    # then the whole container is fetched.
    assert deposit.to("processing", first).outcome == "ok"
    assert service.stored(deposit.harness.results["processing"]["ark"]) == {"a": b"x" * 1000}


def test_a_download_that_has_not_passed_goes_on_when_it_is_requeued(service: Service) -> None:
    deposit = service.of_files({"a": b"1", "b": b"2"})
    deposit.to("provisioning")
    service.web.pages["/files/b"].always = status(404)
    service.write(downloads={"at_once": 1})
    assert deposit.run("downloading").outcome == "error"
    service.web.pages["/files/b"].always = None
    assert deposit.run("downloading").outcome == "ok"
    assert service.web.request_count("/files/a", "GET") == 1


def test_a_download_whose_end_was_not_recorded_fetches_nothing_again(service: Service) -> None:
    # Given a download of files without digests that was interrupted after its last write,
    deposit = service.of_files({"a": b"1", "b": b"2"})
    deposit.to("downloading")
    del deposit.harness.results["downloading"]
    # when it runs again, then no file is fetched again.
    assert deposit.run("downloading").outcome == "ok"
    assert service.web.request_count("/files/a", "GET") == 1
    assert deposit.run("processing").outcome == "ok"


def test_a_corrected_manifest_may_have_a_folder_where_a_file_was(service: Service) -> None:
    # Given an object of which the file 'scans' was fetched, and another file is missing,
    deposit = service.of_files({"scans": b"1", "z": b"2"})
    service.web.pages["/files/z"].always = status(404)
    service.write(downloads={"at_once": 1})
    assert deposit.to("downloading").outcome == "error"
    # when the manifest names a file below 'scans' instead,
    service.manifest({"scans/f": b"1"}, path="/1.checkm")
    # then it is fetched once the object is requeued from the stage that reads the manifest.
    assert deposit.to("downloading", "estimating").outcome == "ok"


@pytest.fixture
def filling_disk(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    """A disk of 100 bytes, of which payloads in the folders of jobs use what they have now."""
    service.write(working={"limit": 0.7, "warning": 0.8}, downloads={"at_once": 1})

    def measured(_: object) -> SimpleNamespace:
        payloads = service.folder.glob("jobs-1/**/payload/*")
        free = 100 - sum(path.stat().st_size for path in payloads)
        return SimpleNamespace(f_blocks=100, f_bfree=free, f_bavail=free, f_frsize=1)

    monkeypatch.setattr(os, "statvfs", measured)


@pytest.mark.usefixtures("filling_disk")
@pytest.mark.parametrize("first", ["estimating", "provisioning"])
def test_an_object_does_not_wait_for_space_that_its_first_download_takes(
    service: Service, first: str
) -> None:
    deposit = service.of_file(b"x" * 40)
    deposit.to("downloading")
    assert deposit.to("downloading", first).outcome == "ok"


@pytest.mark.usefixtures("filling_disk")
def test_files_that_are_kept_do_not_count_twice_as_space(service: Service) -> None:
    deposit = service.of_files({"a": b"x" * 40, "b": b"y" * 10})
    deposit.to("provisioning")
    service.web.pages["/files/b"].always = status(404)
    assert deposit.run("downloading").outcome == "error"
    ran = deposit.run("provisioning")
    assert (ran.outcome, ran.value["bytes"]) == ("ok", 50)
    assert deposit.harness.amounts["ingest-working:jobs"] == 10


# --- drills -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["estimating", "downloading", "notify"])
def test_a_drill_fails_once_and_only_in_test_mode(service: Service, stage: str) -> None:
    assert service.of_file(number=1, fail_at=stage).to(stage).outcome == "ok"
    service.write(test_mode=True)
    deposit = service.of_file(number=2, fail_at=stage)
    failed = deposit.to(stage)
    assert not failure(failed).retryable
    assert failed.message == f"a failure at {stage} was ordered with --fail-at; requeue it"
    assert deposit.run(stage).outcome == "ok"
