"""The folder of an inbox, where whoever may drop files may also plant others under the names that the engine uses."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from deep_folders import deep_folder
from spinney.folders.drop_folder import DropFolder
from spinney.model.settings.inboxes import Arrival, ArrivalOutcome, Drop


@pytest.fixture
def drops(tmp_path: Path) -> DropFolder:
    (tmp_path / "in").mkdir()
    (tmp_path / "job").mkdir()
    return DropFolder(tmp_path / "in")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return tmp_path / "job"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of the node's user, outside the inbox."""
    file = tmp_path / "precious"
    file.write_text("right")
    os.utime(file, ns=(1, 1))
    return file


def arrived(drops: DropFolder, name: str = "a", id_: int = 7, reason: str | None = None) -> Arrival:
    seen = drops.look(name)
    hashed = seen and drops.hashed(name, seen)
    assert isinstance(hashed, Drop)
    return Arrival(
        id=id_,
        inbox="in",
        name=hashed.name,
        kind=hashed.kind,
        size=hashed.size,
        sha256=hashed.sha256,
        identity=hashed.identity,
        owner="ann",
        dropped_us=1,
        at_us=1,
        outcome=ArrivalOutcome.TAKING,
        job_id=1,
        reason=reason,
    )


def below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- rejected ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["-" + "b" * 254, "-" + "\n" * 254], ids=["plain", "escaped"])
def test_a_drop_with_the_longest_name_is_rejected(drops: DropFolder, name: str) -> None:
    (drops.path / name).write_text("x")

    drops.reject(arrived(drops, name, reason="no"))

    assert below(drops.path) == ["rejected"]
    assert len(below(drops.path / "rejected")) == 2


def test_a_drop_with_the_longest_name_is_taken(drops: DropFolder, job: Path) -> None:
    (drops.path / ("b" * 255)).write_text("x")

    assert drops.place(arrived(drops, "b" * 255), job)

    assert (below(drops.path), below(job)) == ([], ["b" * 255])


def test_a_drop_is_rejected_without_a_list_of_all_drops(
    drops: DropFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of files that came before are rejected in one step."""
    (drops.path / "a").write_text("x")
    arrival = arrived(drops, reason="it came before")
    monkeypatch.delattr(DropFolder, "names")

    drops.reject(arrival)

    assert below(drops.path / "rejected") == ["a", "a.why.txt"]


def test_a_planted_link_leads_no_reason_out_of_rejected(drops: DropFolder, precious: Path) -> None:
    rejected = drops.path / "rejected"
    rejected.mkdir()
    (rejected / ".7.txt").symlink_to(precious)
    (drops.path / "a").write_text("a")

    drops.reject(arrived(drops, reason="because"))

    assert precious.read_text() == "right"
    assert (rejected / "a.why.txt").read_text() == "'a' of ann was rejected: because\n"
    assert below(rejected) == ["a", "a.why.txt"]


def test_no_reason_replaces_a_drop_that_was_rejected_before(drops: DropFolder) -> None:
    for id_, name in enumerate(("a.why.txt", "a"), 7):
        (drops.path / name).write_text(name)
        drops.reject(arrived(drops, name, id_, "because"))

    rejected = drops.path / "rejected"
    assert below(rejected) == ["8-a", "8-a.why.txt", "a.why.txt", "a.why.txt.why.txt"]
    assert (rejected / "a.why.txt").read_text() == "a.why.txt"


def test_a_name_that_is_taken_twice_over_replaces_nothing(drops: DropFolder) -> None:
    rejected = drops.path / "rejected"
    rejected.mkdir()
    for name in ("a", "7-a"):
        (rejected / name).write_text("before")
    (drops.path / "a").write_text("a")

    drops.reject(arrived(drops, reason="because"))

    assert (rejected / "a").read_text() == (rejected / "7-a").read_text() == "before"
    assert (rejected / "7-2-a").read_text() == "a"


# --- what has the name of a claim ------------------------------------------------------------------


def plant_link(claim: Path, precious: Path) -> None:
    claim.symlink_to(precious)


def plant_link_that_looks_the_same(claim: Path, precious: Path) -> None:
    """Its size is the length of the path to which it leads, and its time may be set."""
    claim.symlink_to("right")
    os.utime(claim, ns=(1, 1), follow_symlinks=False)


def plant_bytes(claim: Path, precious: Path) -> None:
    claim.write_text("other bytes")


def plant_folder(claim: Path, precious: Path) -> None:
    claim.mkdir()
    (claim / "out").symlink_to(precious)


@pytest.mark.parametrize("plant", [plant_link, plant_link_that_looks_the_same, plant_bytes, plant_folder])
def test_what_was_planted_as_a_claim_gives_way_to_what_arrived(
    drops: DropFolder, job: Path, precious: Path, plant: Callable[[Path, Path], None]
) -> None:
    (drops.path / "a").write_text("right")
    os.utime(drops.path / "a", ns=(1, 1))
    arrival = arrived(drops)
    plant(drops.path / ".spinney-7", precious)

    assert drops.place(arrival, job)

    assert not (job / "a").is_symlink()
    assert (job / "a").read_text() == "right"
    assert not os.path.lexists(drops.path / ".spinney-7")
    assert precious.read_text() == "right"


def test_planted_bytes_that_are_no_claim_are_kept_in_rejected(drops: DropFolder, job: Path) -> None:
    (drops.path / "a").write_text("right")
    arrival = arrived(drops)
    (drops.path / ".spinney-7").write_text("other bytes")
    assert drops.place(arrival, job)
    assert (drops.path / "rejected" / "a").read_text() == "other bytes"
    assert "'.spinney-7'" in (drops.path / "rejected" / "a.why.txt").read_text()


def test_a_claim_of_the_same_size_and_time_and_other_bytes_is_rejected(drops: DropFolder, job: Path) -> None:
    (drops.path / "a").write_text("right")
    os.utime(drops.path / "a", ns=(1, 1))
    arrival = arrived(drops, reason="it was changed")
    (drops.path / ".spinney-7").write_text("wrong")
    os.utime(drops.path / ".spinney-7", ns=(1, 1))

    assert not drops.place(arrival, job)
    drops.reject(arrival)

    assert below(job) == []
    assert (drops.path / "rejected" / "a").read_text() == "wrong"
    assert (drops.path / "a").read_text() == "right", "it comes as a new one"


def test_a_claim_whose_folder_leads_out_is_not_taken(drops: DropFolder, job: Path, precious: Path) -> None:
    for folder in (drops.path / "a", drops.path / ".spinney-7"):
        folder.mkdir()
        (folder / "b").write_text("right")
        os.utime(folder / "b", ns=(1, 1))
    arrival = arrived(drops)
    (drops.path / ".spinney-7" / "z").symlink_to(precious.parent)

    assert drops.place(arrival, job)

    assert below(job / "a") == ["b"]


def test_a_node_that_died_before_it_compared_a_claim_compares_it(drops: DropFolder, job: Path) -> None:
    (drops.path / "a").write_text("right")
    arrival = arrived(drops, reason="it was changed")
    (drops.path / "a").unlink()
    (job / "a").write_text("wrong")

    assert not drops.place(arrival, job)
    drops.reject(arrival)

    assert below(job) == []
    assert (drops.path / "rejected" / "a").read_text() == "wrong"


def test_a_true_claim_of_a_node_that_died_is_taken(drops: DropFolder, job: Path) -> None:
    (drops.path / "a").write_text("right")
    arrival = arrived(drops)
    (drops.path / "a").rename(drops.path / ".spinney-7")
    assert drops.place(arrival, job)
    assert hashlib.sha256((job / "a").read_bytes()).hexdigest() == arrival.sha256
    assert below(drops.path) == []


def test_a_folder_with_more_levels_than_python_has_is_rejected_with_the_reason(drops: DropFolder) -> None:
    dropped = drops.path / "dropped"
    dropped.mkdir()
    with deep_folder(dropped):
        drop = drops.look("dropped")

    assert drop is not None
    assert drop.fault is not None
    assert "more than 200 folders deep" in drop.fault
