"""The audit: what is due is read, what is damaged is told once, and nothing else is called damaged."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from spinney.apps.ingest.application import app
from spinney.apps.ingest.deposits import priorities
from spinney.apps.ingest.inventory import Entry, File, schema
from spinney.apps.ingest.storage import open_storage
from spinney.apps.ingest.upkeep import fixity
from spinney.define.job import Child
from spinney.model.outcomes import Outcome
from spinney.model.settings.schedules import Overlap
from spinney.model.states import State
from spinney.testing import StageHarness, StageResult

from .access.filled_service import ARK, MAIL, Service, service
from .places import Kinds, each, endpoint_of, everywhere, on_disk
from .storage.judge import where

INVENTORY = f"{where(ARK)}/inventory.json"
OTHER = "ark:/99999/other"
NOW = datetime.now(UTC)


@pytest.fixture
def archive(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: Kinds
) -> Service:
    endpoint = endpoint_of(request, kinds)
    made = service(
        tmp_path / "service", more=f"{MAIL}[fixity]\nobjects = 4\n", kinds=kinds, endpoint=endpoint
    )
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def test_it_is_declared_for_every_day() -> None:
    made = app.schedules["ingest.fixity"]
    assert (made.type, made.overlap, made.cron) == ("ingest.fixity", Overlap.SKIP, "17 2 * * *")


def test_no_batch_waits_behind_it_however_large() -> None:
    assert priorities.of_batch(100_000) <= fixity.PRIORITY


def test_those_due_are_chosen_up_to_the_bound(archive: Service) -> None:
    for n in range(6):
        archive.holds({"a": b"1"}, ark=f"ark:/99999/{n}")
    with archive.inventory() as inventory:
        inventory.audited("ark:/99999/0", NOW, 1, 1, [])  # read lately
        inventory.audited("ark:/99999/1", NOW - timedelta(days=100), 1, 1, [])
        inventory.audited("ark:/99999/5", NOW - timedelta(days=1), 1, 1, ["torn"])

    ran = StageHarness().run(fixity.audits, "choosing")

    chosen = [child.params["ark"].removeprefix("ark:/99999/") for child in ran.spawned]
    assert chosen == ["5", "2", "3", "4"]  # damaged, then never read
    assert ran.value == {"objects": 4}


def test_a_run_reads_damaged_objects_again_those_read_longest_ago_first(archive: Service) -> None:
    # Given three objects whose damage was found a moment ago, of which a run may read two
    for n in range(3):
        archive.holds({"a": b"1"}, ark=f"ark:/99999/{n}")
    with archive.inventory() as inventory:
        for n, minutes in enumerate((1, 2, 3)):
            inventory.audited(f"ark:/99999/{n}", NOW - timedelta(minutes=minutes), 1, 1, ["torn"])

    # when a run chooses, and when another one does after it
    first = StageHarness().run(fixity.audits, "choosing")
    for child in first.spawned:
        read(child.params["ark"])
    second = StageHarness().run(fixity.audits, "choosing")

    # then the first takes those read longest ago, and the second the one that is still damaged.
    assert [child.params["ark"] for child in first.spawned] == ["ark:/99999/2", "ark:/99999/1"]
    assert [child.params["ark"] for child in second.spawned] == ["ark:/99999/0"]


@on_disk
def test_objects_of_a_storage_that_is_away_keep_no_others_from_being_chosen(archive: Service) -> None:
    # Given four objects in a storage that is away, one of them damaged, and one in a storage that the settings lack;
    for n in range(4):
        archive.holds({"a": b"1"}, ark=f"ark:/99999/{n}")
    with archive.inventory() as inventory:
        inventory.audited("ark:/99999/0", NOW - timedelta(days=1), 1, 1, ["torn"])
    (archive.folder / "archive").rename(archive.folder / "unmounted")
    recorded_in(archive, "unknown", "ark:/99999/4")
    # when a run chooses, which may take four
    with (archive.folder / "ingest.toml").open("a") as out:
        out.write('[storage.second]\nurl = "second"\n')
    open_storage(archive.folder / "second")
    recorded_in(archive, "second", OTHER)
    ran = StageHarness().run(fixity.audits, "choosing")

    # then it chooses that of the storage that is there, and names the others.
    assert [child.params for child in ran.spawned] == [{"ark": OTHER, "storage": "second"}]
    assert ran.outcome is Outcome.WARNING
    assert ran.value == {"objects": 1}
    assert ran.message.startswith("objects of storages that cannot be opened are not read: 'main' (")
    assert "mount the disk of storage 'main'" in ran.message
    assert "no storage 'unknown'" in ran.message


def recorded_in(archive: Service, storage: str, ark: str) -> None:
    """Record a version of an object as one that is in this storage."""
    with archive.inventory() as inventory:
        inventory.record(
            Entry(
                ark=ark,
                collection="maps",
                owner="library",
                submitter="ann",
                batch_id="bid-1",
                job_id="jid-1",
                version=1,
                created=NOW,
                storage=storage,
                files=[File(path="a", size_bytes=1)],
            )
        )


@everywhere
def test_a_sound_object_is_entered_as_read(archive: Service) -> None:
    archive.holds({"a": b"1", "b": b"22"})

    ran = read(ARK)

    assert (ran.outcome, ran.value) == (Outcome.OK, {"files": 2, "bytes": 3, "faults": 0})
    with archive.inventory() as inventory:
        assert inventory.damaged() == []
        assert inventory.due_for_fixity(NOW) == {}


def torn(archive: Service) -> None:
    archive.overwrite("a", b"2")


def gone(archive: Service) -> None:
    archive.overwrite("a", None)


def without_inventory(archive: Service) -> None:
    archive.bed.overwrite(INVENTORY, None)


@each("damage", [torn, gone, without_inventory], far=torn)
def test_damage_is_entered_and_warned_of(archive: Service, damage: Callable[[Service], None]) -> None:
    archive.holds({"a": b"1"})
    damage(archive)

    assert is_found(archive, read(ARK))


@on_disk
def test_an_object_that_was_restored_from_an_older_copy_is_damaged(archive: Service) -> None:
    # Given a sound object whose second version is lost,
    archive.holds({"a": b"1"})
    root = archive.bed.fetch() / where(ARK)
    shutil.copytree(root, archive.folder / "copy")
    archive.holds({"a": b"2"}, version=2)
    shutil.rmtree(root)
    (archive.folder / "copy").rename(root)
    # when it is read,
    ran = read(ARK)
    # then that is a fault.
    assert is_found(archive, ran)
    assert "version 2 is in the inventory, and not in the storage; restore the object from a newer copy" in (
        ran.message
    )


@everywhere
def test_an_object_with_other_files_than_the_inventory_has_is_damaged(archive: Service) -> None:
    archive.holds({"a": b"1", "b": b"1"})
    for ark, paths in (("ark:/99999/1", "a"), ("ark:/99999/2", "abc")):
        archive.holds({"a": b"1", "b": b"1"}, ark=ark, recorded=dict.fromkeys(paths, b"1"))
    archive.holds({"a": b"1"}, ark="ark:/99999/3", recorded={"a": b"2"})

    assert read(ARK).outcome is Outcome.OK
    for ark, path in (("ark:/99999/1", "b"), ("ark:/99999/2", "c"), ("ark:/99999/3", "a")):
        ran = read(ark)
        assert ran.outcome is Outcome.WARNING
        assert f"'{path}' of version 1 is another in the storage than in the inventory" in ran.message


@on_disk
def test_a_link_in_the_place_of_an_inventory_is_damage(archive: Service) -> None:
    archive.holds({"a": b"1"})
    inventory = archive.bed.fetch() / INVENTORY
    inventory.rename(inventory.with_name("elsewhere"))
    inventory.symlink_to("elsewhere")

    assert is_found(archive, read(ARK))


def is_found(archive: Service, ran: StageResult) -> bool:
    assert ran.outcome is Outcome.WARNING
    assert ran.message.startswith(f"{ARK} is damaged: ")
    with archive.inventory() as inventory:
        return [d.ark for d in inventory.damaged()] == [ARK]


@on_disk
def test_a_storage_that_is_away_damages_nothing(archive: Service) -> None:
    archive.holds({"a": b"1"})
    (archive.folder / "archive").rename(archive.folder / "unmounted")
    (archive.folder / "archive").mkdir()

    away, unknown = read(ARK), read(ARK, storage="second")

    assert (away.outcome, unknown.outcome) == (Outcome.ERROR, Outcome.ERROR)
    assert "mount the disk" in away.message
    assert "no storage 'second'" in unknown.message
    with archive.inventory() as inventory:
        assert inventory.damaged() == []
        assert list(inventory.due_for_fixity(NOW)) == [ARK]


def test_an_object_that_is_written_now_is_left_to_the_next_run(archive: Service) -> None:
    archive.holds({"a": b"1"})

    ran = StageHarness(taken=[fixity.ark_lock(ARK)]).run(fixity.readings, "reading", ark=ARK, storage="main")

    assert (ran.outcome, ran.message) == (
        Outcome.WARNING,
        f"{ARK} is being written; the next run reads it",
    )
    with archive.inventory() as inventory:
        assert list(inventory.due_for_fixity(NOW)) == [ARK]


def test_a_wish_to_cancel_ends_it(archive: Service) -> None:
    archive.holds({"a": b"1"})

    ran = StageHarness(cancelled=True).run(fixity.readings, "reading", ark=ARK, storage="main")

    assert ran.outcome is Outcome.CANCELLED


def test_each_damage_is_mailed_once(archive: Service) -> None:
    # Given two damaged objects
    for ark in (ARK, OTHER):
        archive.holds({"a": b"1"}, ark=ark)
        archive.overwrite("a", b"2", ark)
        read(ark)

    # Then one mail names both, and another day none is sent
    first = reporting_result()
    assert [mail.params["to"] for mail in first.submitted] == [["staff@example.org"]]
    assert ARK in first.submitted[0].params["text"]
    assert OTHER in first.submitted[0].params["text"]
    assert first.outcome is Outcome.WARNING
    assert first.value == {"damaged": 2, "news": 2, "unread": 0}
    assert reporting_result().submitted == []

    # When one is mended, and torn again, then that is news
    archive.overwrite("a", b"1")
    read(ARK)
    assert reporting_result().value == {"damaged": 1, "news": 0, "unread": 0}
    archive.overwrite("a", b"3")
    read(ARK)
    (mail,) = reporting_result().submitted
    assert ARK in mail.params["text"]
    assert OTHER not in mail.params["text"]


@on_disk
def test_all_damage_is_mailed_however_much_there_is(archive: Service) -> None:
    # given more damaged objects than a mail lists, or a list of damage returns
    damage_many(archive, count=1200)

    # when
    first = reporting_result()

    # then all are counted, and the text is bounded
    (mail,) = first.submitted
    assert mail.params["subject"] == "1200 stored objects are damaged"
    assert mail.params["text"].count(" in maps, since ") == fixity.LISTED
    assert "… and 1,000 more" in mail.params["text"]
    assert first.value == {"damaged": 1200, "news": 1200, "unread": 0}
    assert first.message.startswith("1,200 objects are damaged: ark:/99999/0, ")
    assert first.message.endswith(" and 1,195 more")

    # when another is damaged while none is mended
    archive.holds({"a": b"1"})
    archive.overwrite("a", b"2")
    read(ARK)

    # then that one is reported, and on another day nothing is
    (mail,) = reporting_result().submitted
    assert mail.params["subject"] == f"{ARK} is damaged"
    assert reporting_result().value == {"damaged": 1201, "news": 0, "unread": 0}


def damage_many(archive: Service, *, count: int) -> None:
    """Enter this many objects whose last audit found a fault, in one transaction for the sake of time."""
    with archive.inventory() as inventory, inventory._database.checked().write() as connection:
        connection.execute(
            insert(schema.objects),
            [
                {
                    "id": n + 1,
                    "ark": f"ark:/99999/{n}",
                    "collection": "maps",
                    "owner": "library",
                    "head_version": 1,
                    "audited_us": NOW,
                    "damaged_since_us": NOW,
                }
                for n in range(count)
            ],
        )
        connection.execute(
            insert(schema.audits),
            [
                {"object_id": n + 1, "at_us": NOW, "files": 1, "size_bytes": 1, "faults": '["torn"]'}
                for n in range(count)
            ],
        )


def test_killed_before_it_has_kept_what_it_told_it_tells_the_same_mail(archive: Service) -> None:
    archive.holds({"a": b"1"})
    archive.overwrite("a", b"2")
    read(ARK)

    first = reporting_result().submitted
    (archive.settings.home / fixity.REPORTED).unlink()
    again = reporting_result().submitted

    assert [mail.key for mail in first] == [mail.key for mail in again]
    assert [mail.params["message_id"] for mail in first] == [mail.params["message_id"] for mail in again]


def test_what_could_not_be_read_is_said(archive: Service) -> None:
    what = {"ark": ARK, "storage": "main"}
    child = Child(7, "ingest.fixity-object", State.FAILED, "reading", None, "no answer", 0, what)

    ran = StageHarness(children=[child]).run(fixity.audits, "reporting")

    assert ran.outcome is Outcome.WARNING
    assert ran.message == f"1 object could not be read: {ARK}"


def test_without_mail_it_is_still_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = service(tmp_path / "silent")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    made.holds({"a": b"1"})
    made.overwrite("a", b"2")
    read(ARK)

    ran = reporting_result()

    assert ran.submitted == []
    assert ran.message == f"1 object is damaged: {ARK}"


def read(ark: str, storage: str = "main") -> StageResult:
    return StageHarness().run(fixity.readings, "reading", ark=ark, storage=storage)


def reporting_result() -> StageResult:
    return StageHarness().run(fixity.audits, "reporting")
