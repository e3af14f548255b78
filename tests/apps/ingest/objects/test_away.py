"""What those who run the service have to mend fails nothing: objects rest until it is there again."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.ingest.objects.scene import Service, payload
from apps.ingest.signals import deferral
from apps.ingest.storage.moody import moody
from small_disk import small_disk
from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.storage import NotThere
from spinney.testing import StageResult


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    """As in a process that has just begun."""
    open_resources._inventory.cache_clear()
    open_resources._storage.cache_clear()
    yield
    open_resources._inventory.cache_clear()
    open_resources._storage.cache_clear()


def rested(ran: StageResult, *words: str) -> bool:
    assert ran.outcome == "defer", ran.message
    assert all(word in ran.message for word in words), ran.message
    return True


def unmounted(place: Path) -> Callable[[], None]:
    """The disk that was mounted there is gone; returns what mounts it again."""
    aside = place.with_name(f"{place.name}.disk")
    place.rename(aside)
    place.mkdir()

    def mount() -> None:
        place.rmdir()  # nothing was written where it should be
        aside.rename(place)

    return mount


@pytest.mark.parametrize("was_open", [True, False])
def test_an_archive_that_is_not_mounted_is_waited_for(service: Service, was_open: bool) -> None:
    if was_open:
        service.of_file(number=2).deposit()
    deposit = service.of_file()
    deposit.to("downloading")
    mount = unmounted(service.folder / "archive")
    assert rested(deposit.run("processing"), str(service.folder / "archive"), "mount")
    mount()
    assert deposit.run("processing").outcome == "ok"


def test_an_archive_that_is_not_mounted_is_not_made_anew_by_who_prepares(service: Service) -> None:
    service.of_file().deposit()
    mount = unmounted(service.folder / "archive")
    with pytest.raises(NotThere, match=r"is no storage root now; mount its disk, or correct its URL$"):
        service.prepare()
    mount()
    service.prepare()


def test_a_bucket_that_does_not_answer_to_the_credentials_is_waited_for(
    service: Service, s3_server: str, bucket: str
) -> None:
    refused = []
    with moody(
        s3_server, before=lambda method, *_: 403 if refused and method == "HEAD" else None
    ) as endpoint:
        service.write(storage={"main": {"url": f"s3://{bucket}/archive", "endpoint": endpoint}})
        service.prepare()
        deposit = service.of_file()
        deposit.to("downloading")
        refused.append("HEAD")
        assert rested(deposit.run("processing"), bucket, "credentials (403)")
        refused.clear()
        assert deposit.run("processing").outcome == "ok"


@pytest.mark.parametrize("was_open", [False, True], ids=["first use", "in use"])
def test_an_inventory_that_is_gone_is_not_begun_anew(service: Service, was_open: bool) -> None:
    deposit = service.of_file()
    deposit.to("downloading")
    if was_open:
        assert open_resources.inventory(service.settings).find() == []
    file, aside = service.folder / "home/inventory.db", service.folder / "aside.db"
    file.rename(aside)
    words = ("was replaced or removed",) if was_open else ("no inventory", "spinney ingest init")
    assert rested(deposit.run("processing"), *words)
    assert not file.exists()
    aside.rename(file)
    assert deposit.run("processing").outcome == "ok"


def test_a_working_area_that_is_not_there_is_waited_for(service: Service) -> None:
    service.write(areas={"fast": "fast"})
    service.profile(area="fast")
    deposit = service.of_file()
    assert rested(deposit.run("estimating"), "'fast'", "mount")
    assert not (service.folder / "fast").exists()


@pytest.mark.parametrize(("what", "stage"), [("archive", "processing"), ("area", "downloading")])
def test_a_disk_that_became_read_only_is_waited_for(service: Service, what: str, stage: str) -> None:
    with small_disk(service.folder / "disk", 2) as disk:
        if what == "archive":
            service.write(storage={"main": {"url": f"{disk.folder}/archive"}})
        else:
            service.write(areas={"fast": str(disk.folder)}, working={"limit": 0.99, "warning": 0.99})
            service.profile(area="fast")
        service.prepare()
        deposit = service.of_file()
        deposit.to("downloading" if stage == "processing" else "provisioning")
        _remount(disk.folder, "ro")
        assert rested(deposit.run(stage), str(disk.folder), "read-only")
        _remount(disk.folder, "rw")
        assert deposit.run(stage).outcome == "ok"


def _remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)


@pytest.mark.parametrize("stage", ["estimating", "downloading"])
def test_a_folder_of_payloads_that_is_not_mounted_is_waited_for(service: Service, stage: str) -> None:
    root = service.folder / "payloads"
    root.mkdir()
    (root / "a.txt").write_text("map")
    service.write(file_roots=[str(root)])
    deposit = service.object(payload=payload(PayloadKind.FILE, (root / "a.txt").as_uri(), "a.txt"))
    if stage == "downloading":
        deposit.to("provisioning")
    mount = unmounted(root)
    assert rested(deposit.run(stage), str(root), "mount")
    mount()
    assert deposit.run(stage).outcome == "ok"


def test_a_profile_that_was_deleted_is_waited_for(service: Service) -> None:
    deposit = service.of_file()
    deposit.to("downloading")
    profile = service.folder / "home/profiles/maps.toml"
    text = profile.read_text()
    profile.unlink()
    ran = deposit.run("downloading")
    assert rested(ran, "there is no profile 'maps'")
    assert not deferral(ran).lane
    profile.write_text(text)
    assert deposit.run("downloading").outcome == "ok"


def test_settings_that_cannot_be_read_let_the_whole_stage_rest(service: Service) -> None:
    deposit = service.of_file()
    settings = service.folder / "ingest.toml"
    text = settings.read_text()
    settings.write_text("home = ")
    ran = deposit.run("estimating")
    assert rested(ran, "ingest.toml is not valid TOML")
    assert deferral(ran).lane
    settings.write_text(text + "\n")
    assert deposit.run("estimating").outcome == "ok"
