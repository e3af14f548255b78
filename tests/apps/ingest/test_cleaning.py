"""Cleaning: what is over goes, and nothing that somebody needs or that is not ours."""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import job_verbs
from contract.words import RealClock, Site
from spinney.apps.ingest.access import packages
from spinney.apps.ingest.access.requests import request
from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.config.settings import OWNER
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.upkeep import cleanup
from spinney.commands.control import Control
from spinney.features.jobs.commands import CancelJob, HoldJob
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.values.paths import job_folder
from spinney.testing import StageHarness

from .access.filled_service import ARK, Service, service

NOW = datetime.now(UTC)
LATER = NOW + cleanup.LEFTOVER + timedelta(hours=1)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    made = service(tmp_path / "service")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def control(archive: Service) -> Iterator[Control]:
    with archive.control() as control:
        yield control


# --- packages -------------------------------------------------------------------------------------


def test_a_package_goes_when_its_job_has_ended_and_it_has_expired(archive: Service, control: Control) -> None:
    # Given a request that has ended, with a package that expires in a day
    archive.holds({"a": b"1"})
    ticket = request(control, archive.settings, ARK)
    folder = package(archive, ticket.token, expires=NOW + timedelta(days=1))
    control.do(CancelJob(job=ticket.job))

    assert over(archive, control, NOW) == []
    assert over(archive, control, NOW + timedelta(days=2)) == [folder]


def test_what_an_open_request_has_written_stays(archive: Service, control: Control) -> None:
    archive.holds({"a": b"1"})
    ticket = request(control, archive.settings, ARK)
    folder = archive.settings.packages / ticket.token
    folder.mkdir(parents=True)
    (folder / ".7.part").write_bytes(b"half")

    assert over(archive, control, NOW + timedelta(days=1000)) == []
    control.do(CancelJob(job=ticket.job))
    assert over(archive, control, NOW) == [folder]


def test_packages_of_no_job_go_and_what_is_not_ours_stays(archive: Service, control: Control) -> None:
    orphan = package(archive, "77-" + "0" * 32, expires=NOW + timedelta(days=1))
    root = archive.settings.packages
    (root / "notes").mkdir()
    (root / "readme.txt").write_text("of staff")
    elsewhere = archive.folder / "elsewhere"
    elsewhere.mkdir()
    (root / ("78-" + "0" * 32)).symlink_to(elsewhere)

    assert over(archive, control, NOW) == [orphan]


# --- what came in ---------------------------------------------------------------------------------


def test_a_payload_goes_late_and_only_when_no_batch_may_take_it(archive: Service, control: Control) -> None:
    taken, open_, failed, nobodys = (orders.new_bid() for _ in range(4))
    came = {bid: incoming(archive, bid) for bid in (taken, open_, failed, nobodys)}
    jobs = {bid: batch(control, bid) for bid in (taken, open_, failed)}
    payload = archive.folder / "spinney.folders" / job_folder(jobs[taken]) / "payload"
    payload.mkdir(parents=True)
    (payload / "map.tif").write_bytes(b"a map")
    control.do(CancelJob(job=jobs[failed]))  # it can be sent back

    def going(now: datetime) -> set[Path]:
        folders = archive.folder / "spinney.folders"
        return set(cleanup.abandoned_payloads(archive.settings.incoming, control.store, folders, now))

    assert going(NOW) == set()
    assert going(LATER) == {came[taken], came[nobodys]}


def test_a_payload_that_its_batch_takes_while_they_are_looked_through_is_passed_over(
    archive: Service, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = incoming(archive, orders.new_bid())
    age = cleanup._age

    def taken_meanwhile(path: Path, now: datetime) -> timedelta:
        shutil.rmtree(folder)
        return age(path, now)

    monkeypatch.setattr(cleanup, "_age", taken_meanwhile)

    folders = archive.folder / "spinney.folders"
    assert list(cleanup.abandoned_payloads(folder.parent, control.store, folders, LATER)) == []


# --- what goes out --------------------------------------------------------------------------------


def test_attachments_go_with_their_mail(archive: Service, control: Control) -> None:
    folder = archive.settings.outgoing
    jobs = [batch(control, orders.new_bid()) for _ in range(2)]
    kept = [folder / f"{orders.new_bid()}.report-1" for _ in range(4)]
    for path, job in zip(kept, [*jobs, 999, None], strict=True):
        path.mkdir(parents=True)
        if job is not None:
            (path / OWNER).write_text(f"{job}\n")
    control.do(CancelJob(job=jobs[1]))
    job_verbs.delete(control.store, jobs[1], by="ann", now_us=control.clock())

    assert list(cleanup.finished_mails(folder, control.store, NOW)) == [kept[1]]
    assert set(cleanup.finished_mails(folder, control.store, LATER)) == set(kept[1:])


# --- working areas --------------------------------------------------------------------------------


def test_a_working_folder_goes_with_its_job(archive: Service, control: Control) -> None:
    area = archive.folder / "area"
    open_, cancelled, deleted = (batch(control, orders.new_bid()) for _ in range(3))
    at = {job: working(area, job) for job in (open_, cancelled, deleted, 999)}
    nameless = working(area, None)
    (nameless / "payload").mkdir()
    empty = working(area, None)
    control.do(CancelJob(job=cancelled))
    control.do(CancelJob(job=deleted))
    job_verbs.delete(control.store, deleted, by="ann", now_us=control.clock())

    assert set(cleanup.finished_work_folders(area, control.store, NOW)) == {at[deleted], at[999]}
    assert set(cleanup.finished_work_folders(area, control.store, LATER)) == {
        at[deleted],
        at[999],
        at[cancelled],
        empty,
    }


# --- held batches ---------------------------------------------------------------------------------


def test_a_batch_that_its_stage_held_for_a_file_that_is_gone_is_released(
    archive: Service, control: Control
) -> None:
    site = Site(control.store, RealClock())
    held, forgotten, by_hand = (orders.new_bid() for _ in range(3))
    jobs = {bid: batch(control, bid) for bid in (held, forgotten, by_hand)}
    for lease in site.claim(slots=3, lanes={("ingest.batch", "processing")}):
        site.start(lease)
        site.record(lease, Outcome.HOLD, message="a look first")
    control.do(HoldJob(job=jobs[by_hand], reason="counting"))
    later = batch(control, orders.new_bid())
    control.do(HoldJob(job=later, reason="counting"))
    held_batches.hold(archive.settings, held, "a look first")

    assert cleanup.release_forgotten(archive.settings, control.store, NOW) == 1

    states = [control.store.job(job).state for job in (*jobs.values(), later)]
    assert states == [State.HELD, State.PENDING, State.HELD, State.HELD]


def test_no_batch_is_released_while_the_folder_of_hold_files_is_away(
    archive: Service, control: Control
) -> None:
    site = Site(control.store, RealClock())
    job = batch(control, orders.new_bid())
    site.record(site.run(job), Outcome.HOLD, message="a look first")
    assert not archive.settings.held.exists()

    assert cleanup.release_forgotten(archive.settings, control.store, NOW) == 0

    assert control.store.job(job).state is State.HELD


# --- removing -------------------------------------------------------------------------------------


def test_removing_that_was_cut_off_is_finished(archive: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = package(archive, "77-" + "0" * 32, expires=NOW)
    beside = folder.with_name("notes")
    beside.mkdir()

    def killed(path: Path) -> None:
        os._exit(9)

    child = os.fork()
    if child == 0:
        shutil.rmtree = killed
        cleanup.remove(folder)
    os.waitpid(child, 0)
    assert sorted(p.name for p in folder.parent.iterdir()) == [f".gone-{folder.name}", "notes"]

    cleanup.finish_removals(folder.parent)

    assert list(folder.parent.iterdir()) == [beside]


def test_with_another_store_than_its_own_nothing_is_removed(archive: Service) -> None:
    folder = package(archive, "77-" + "0" * 32, expires=NOW - timedelta(days=9))

    ran = StageHarness().run(cleanup.cleanings)  # the store knows no job of a stage harness

    assert ran.outcome is Outcome.HOLD
    assert "another store" in ran.message
    assert folder.exists()


def over(archive: Service, control: Control, now: datetime) -> list[Path]:
    return list(cleanup.expired_packages(archive.settings.packages, control.store, now))


def package(archive: Service, token: str, expires: datetime) -> Path:
    """A package that was made for a token."""
    folder = archive.settings.packages / token

    def write(out: object) -> packages.Package:
        return packages.Package(
            file="a.zip", size_bytes=0, files=1, content_bytes=1, made=NOW, expires=expires, seconds=1
        )

    packages.make(folder, 1, write)
    return folder


def incoming(archive: Service, bid: str) -> Path:
    folder = archive.settings.incoming / bid
    folder.mkdir(parents=True)
    (folder / "map.tif").write_bytes(b"a map")
    return folder


def batch(control: Control, bid: str) -> int:
    order = orders.BatchOrder(bid=bid, profile="maps", kind=PayloadKind.FILE, name="map.tif", submitter="ann")
    return control.submit("ingest.batch", [{"order": order.model_dump(mode="json")}], internal=True).ids[0]


def working(area: Path, job: int | None) -> Path:
    folder = area / orders.jid(orders.new_bid(), 1)
    folder.mkdir(parents=True)
    if job is not None:
        (folder / OWNER).write_text(f"{job}\n")
    return folder
