"""A profile that names another working area while its objects are on their way."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from apps.ingest.objects.scene import BID, Deposit, Service, about
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.objects.provisioning import promises

FILES = {"a": b"x" * 50, "b": b"y" * 30}


@pytest.fixture
def areas(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two areas, of which the large one alone has room for the files; job folders have none."""
    service.write(areas={"small": "small", "large": "large"}, working={"limit": 0.7, "warning": 0.8})
    service.prepare()

    def statistics(path: Path) -> SimpleNamespace:
        room = 1_000_000 if {"large", "archive"} & set(Path(path).parts) else 100
        return SimpleNamespace(f_blocks=room, f_bfree=room, f_bavail=room, f_frsize=1)

    monkeypatch.setattr(os, "statvfs", statistics)


def place(service: Service, area: str | None, deposit: Deposit) -> Path:
    return deposit.folder if area is None else service.folder / area / orders.jid(BID, 1)


def names(folder: Path) -> Iterable[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def held(service: Service, area: str | None) -> Deposit:
    """An object for which its area is too small."""
    service.profile(area=area) if area else service.profile()
    deposit = service.of_files(FILES, about=about(local_ids=("m",)))
    ran = deposit.to("provisioning")
    assert (ran.outcome, "larger area, then release it" in ran.message) == ("hold", True)
    assert "wanted.jsonl" in names(place(service, area, deposit))
    return deposit


@pytest.mark.parametrize("before", [None, "small"])
def test_who_is_given_a_larger_area_goes_on_there(service: Service, areas: None, before: str | None) -> None:
    deposit = held(service, before)
    service.profile(area="large")

    assert deposit.run("provisioning").value["area"] == "large"

    assert names(place(service, before, deposit)) == []
    assert "ingest-working:jobs" in deposit.harness.amounts
    assert deposit.to("notify", "downloading").outcome == "ok"
    assert service.stored(deposit.harness.results["processing"]["ark"]) == FILES
    assert not place(service, "large", deposit).exists()


def test_an_area_with_another_folder_finds_the_list_made_anew(service: Service, areas: None) -> None:
    deposit = held(service, "small")
    service.write(areas={"small": "larger/large"})
    service.prepare()

    assert deposit.run("provisioning").outcome == "ok"

    assert deposit.run("downloading").value["files"] == 2
    assert names(deposit.folder) == []


def test_what_was_promised_space_stays_in_its_area(service: Service, areas: None) -> None:
    service.profile(area="large")
    deposit = service.of_files(FILES)
    deposit.to("downloading")
    service.profile(area="small")

    assert deposit.to("notify", "processing").outcome == "ok"

    assert names(service.folder / "large") == names(service.folder / "small") == []


def test_sent_back_before_that_it_goes_to_the_area_of_today(service: Service, areas: None) -> None:
    service.profile(area="small")
    deposit = service.of_files(FILES)
    deposit.run("estimating")
    service.profile(area="large")

    deposit.run("estimating")

    assert names(service.folder / "small") == []
    deposit.to("downloading", "provisioning")
    service.write(areas={"small": "small"})
    service.profile(area="small")
    ran = deposit.run("processing")
    assert (ran.outcome, "no working area 'large' any more" in ran.message) == ("defer", True)


def test_areas_on_one_disk_share_its_space(service: Service) -> None:
    # Given two areas and the folders of jobs on one disk, and objects in each of them,
    service.write(areas={"one": "one", "two": "two"})
    service.prepare()
    locks = []
    for number, table in enumerate(({"area": "one"}, {"area": "two"}, {}), 1):
        service.profile(**table)
        deposit = service.of_file(number=number)
        # when space is promised to them,
        assert deposit.to("provisioning").outcome == "ok"
        locks.append(deposit.harness.amounts)
    # then all promises are amounts of one lock.
    assert locks == [{"ingest-working:jobs": 3}] * 3


def test_an_area_on_a_disk_of_its_own_has_a_lock_of_its_own(service: Service) -> None:
    service.write(areas={"own": "/proc", "same": "/proc/self", "away": "missing"})
    locks = [promises(service.settings, service.folder, area) for area in ("same", "own", "away", None)]
    assert locks == [f"ingest-working:{name}" for name in ("own", "own", "away", "jobs")]


def test_a_promise_keeps_its_lock_where_disks_are_mounted_otherwise(service: Service) -> None:
    service.write(areas={"one": "one"})
    service.prepare()
    service.profile(area="one")
    deposit = service.of_file()
    deposit.to("provisioning")
    deposit.harness.results["provisioning"]["lock"] = "ingest-working:one"
    deposit.run("downloading")
    assert deposit.harness.amounts["ingest-working:one"] == 0


def test_staff_see_it_where_it_is(service: Service, areas: None) -> None:
    from spinney.apps.ingest.objects.work import area_of

    assert area_of({}, "small") == "small"
    assert area_of({"provisioning": {"bytes": 1}}, "small") == "small"
    assert area_of({"provisioning": {"bytes": 1, "area": None}}, "small") is None
