"""An object's way through its stages, with real servers, a real archive and a real inventory."""

import hashlib
import io
import tarfile
import zipfile

import pytest

from apps.ingest.objects.scene import BID, Deposit, Service, about, payload, tarred, zipped
from apps.ingest.signals import failure
from containers.test_names import without_case
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.manifests import PayloadKind
from spinney.files.digests import digest


def test_an_object_is_fetched_named_stored_and_recorded(service: Service) -> None:
    deposit = service.of_files(
        {"a.txt": b"one", "b/c.txt": b"two"}, about=about(local_ids=("map 7",), title="Maps")
    )
    done = deposit.deposit()
    assert done["ark"].startswith("ark:/99999/fk4")
    assert service.stored(done["ark"]) == {"a.txt": b"one", "b/c.txt": b"two"}
    with service.inventory as inventory:
        record = inventory.object(done["ark"])
        assert record is not None
        assert (record.collection, record.owner, record.local_ids) == ("maps", "maps", ["map 7"])
        assert [(v.version, v.batch_id, v.what) for v in record.versions] == [(1, BID, "Maps")]
        digest = hashlib.sha256(b"two").hexdigest()
        assert [f.file.file.path for f in inventory.find(digest=f"sha256:{digest}") if f.file] == [
            "producer/b/c.txt"
        ]


def test_nothing_is_left_in_the_working_folder(service: Service) -> None:
    deposit = service.of_container(zipped({"a": b"1"}))
    deposit.deposit()
    assert list(deposit.folder.rglob("*")) == []


@pytest.mark.parametrize("is_container", [False, True])
def test_names_that_differ_in_case_only_are_kept_apart_and_told_of(
    service: Service, is_container: bool
) -> None:
    files = {"a/p.tif": b"1", "a/P.tif": b"2"} | (
        {"caf\u00e9": b"3", "cafe\u0301": b"4"} if is_container else {}
    )
    deposit = service.of_container(zipped(files)) if is_container else service.of_files(files)

    ran = deposit.to("processing") if is_container else deposit.run("estimating")
    deposit.to("recording", "recording" if is_container else "provisioning")

    assert ran.outcome == "warning"
    assert "upper and lower case" in ran.message
    assert "P.tif'" in ran.message
    assert service.stored(deposit.harness.results["processing"]["ark"]) == files


def test_a_working_disk_that_takes_two_names_for_one_is_told_of(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    deposit = service.of_files({"p.tif": b"1", "P.tif": b"2"})
    deposit.to("provisioning")
    without_case(monkeypatch)

    ran = deposit.run("downloading")

    assert not failure(ran).retryable
    assert "'p.tif' and 'P.tif' are one file on the disk of" in ran.message


def recorded_dates(service: Service, deposit: Deposit, version: int) -> dict[str, str | None]:
    with service.inventory as inventory:
        files = inventory.files(deposit.harness.results["processing"]["ark"], version)
        return {f.path.removeprefix("producer/"): f.modified for f in files if f.path.startswith("producer/")}


def test_when_files_were_last_changed_is_kept_and_carried_on(service: Service) -> None:
    local = about(local_ids=("m",))
    first = service.of_files({"a": b"1", "b": b"2", "c": b"3"}, modified="4 May 2026", about=local)
    first.deposit()
    assert recorded_dates(service, first, 1) == dict.fromkeys("abc", "4 May 2026")

    update = service.of_files({"b": b"2", "c": b"4"}, 2, update=True, about=local)
    update.deposit()
    assert recorded_dates(service, update, 2) == {"a": "4 May 2026", "b": "4 May 2026", "c": None}


@pytest.mark.parametrize(
    ("name", "date"), [("a.zip", "2001-02-03T04:05:06"), ("a.tgz", "2001-02-03T04:05:06+00:00")]
)
def test_members_of_containers_keep_their_dates(service: Service, name: str, date: str) -> None:
    out = io.BytesIO()
    if name == "a.zip":
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(zipfile.ZipInfo("x", (2001, 2, 3, 4, 5, 6)), b"1")
            archive.writestr(zipfile.ZipInfo("none"), b"1")
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for member, when in (("x", 981173106), ("none", 0)):
                info = tarfile.TarInfo(member)
                info.mtime = when
                tar.addfile(info)
    deposit = service.of_container(out.getvalue(), name=name)

    deposit.deposit()

    assert recorded_dates(service, deposit, 1) == {"x": date, "none": None}


def test_an_area_of_its_own_is_used_and_left_empty(service: Service) -> None:
    service.write(areas={"fast": "fast"})
    service.prepare()
    service.profile(area="fast")
    deposit = service.of_file()
    deposit.deposit("recording")
    area = service.folder / "fast" / orders.jid(BID, 1)
    assert (area / "payload/a.txt").read_bytes() == b"map"
    assert "ingest-working:jobs" in deposit.harness.locks
    deposit.run("notify")
    assert list((service.folder / "fast").iterdir()) == []


def test_every_stage_may_run_again_and_makes_nothing_twice(service: Service) -> None:
    deposit = service.of_container(tarred([("a.txt", b"1"), ("d/b.txt", b"2")]), name="a.tgz")
    done = deposit.deposit("recording")
    for stage in ("estimating", "provisioning", "downloading", "processing", "recording"):
        assert deposit.run(stage).outcome == "ok", stage
    assert deposit.harness.results["processing"] == done
    assert [v.number for v in service.storage.versions(done["ark"])] == [1]


def test_a_complete_download_that_is_requeued_fetches_what_is_missing_or_wrong(service: Service) -> None:
    map_digest = digest("sha256", hashlib.sha256(b"map").hexdigest())
    url = service.manifest(dict.fromkeys(("good", "gone", "bad"), b"map"), digest=map_digest)
    deposit = service.object(payload=payload(PayloadKind.OBJECT_MANIFEST, url, "m.checkm"))
    deposit.to("downloading")
    (deposit.folder / "payload/gone").unlink()
    (deposit.folder / "payload/bad").write_bytes(b"!!!")
    assert deposit.run("downloading").outcome == "ok"
    assert [service.web.request_count(f"/files/{name}") for name in ("good", "gone", "bad")] == [1, 2, 2]


def test_the_payload_that_the_batch_holds_is_copied_and_compared(service: Service) -> None:
    held = payload(PayloadKind.FILE, None, "x.txt", b"abc", held="payload/x.txt", size_bytes=3)
    deposit = service.object(payload=held)
    place = deposit.harness.job_folder.parent / f"{2:012d}" / "payload"
    place.mkdir(parents=True)
    (place / "x.txt").write_bytes(b"abX")
    refused = deposit.to("downloading")
    assert refused.outcome == "error"
    assert "has the sha256" in refused.message
    (place / "x.txt").write_bytes(b"abc")
    assert deposit.run("downloading").outcome == "ok"
    assert service.stored(deposit.to("recording", "processing").harness.results["processing"]["ark"]) == {
        "x.txt": b"abc"
    }


def test_a_held_payload_that_is_gone_is_said_to_be_gone(service: Service) -> None:
    held = payload(PayloadKind.FILE, None, "x.txt", held="payload/x.txt", size_bytes=3)
    ran = service.object(payload=held).to("downloading")
    assert not failure(ran).retryable
    assert ran.message == "the payload 'x.txt' is no longer in its batch's folder; submit it again"


def test_a_held_name_as_long_as_a_name_may_be(service: Service) -> None:
    name = "x" * 255
    held = payload(PayloadKind.FILE, None, name, held=f"payload/{name}", size_bytes=1)
    deposit = service.object(payload=held)
    place = deposit.harness.job_folder.parent / f"{2:012d}" / "payload"
    place.mkdir(parents=True)
    (place / name).write_bytes(b"1")
    done = deposit.deposit("recording")
    assert service.stored(done["ark"]) == {name: b"1"}
