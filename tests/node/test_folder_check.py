"""The doctor's look at the folders: for every rule a root that is damaged so, told exactly, and mended."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import job_verbs
from contract.behind import sql_store
from new_store import new_store
from spinney.features.doctor.checks import Violation
from spinney.features.doctor.folder_check import ORPHANS, FolderCheck
from spinney.folders import folders
from spinney.model.errors import StoreUnusable
from spinney.model.homes import FolderRoot
from spinney.model.jobs import NodeInfo, Submission
from spinney.model.rights.actor import Actor
from spinney.model.types import StageSpec, TypeSpec
from spinney.model.values.paths import job_folder
from spinney.store.parts import Store
from spinney.store.sql import open_store

ANN = Actor(by="ann", call="c")
DAY_US = 86_400_000_000
NOW_US = 2_000_000_000_000_000
"""Long after every file of these tests was made."""


@dataclass
class Place:
    """A store with jobs 1 to 4, of which 1 and 2 have folders and 4 has been deleted, and their root."""

    root: Path
    store: Store
    now_us: int = NOW_US

    def examine(self, *only: str) -> list[Violation]:
        return list(FolderCheck(self.root, self.store).examine(only or None, now_us=self.now_us))

    def repair(self, violation: Violation) -> bool:
        return FolderCheck(self.root, self.store).repair(violation, ANN, now_us=self.now_us)

    def folder(self, job_id: int) -> Path:
        return folders.path(self.root, job_id)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    store = open_store(new_store(tmp_path / "x.db"))
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
    store.submit([Submission(type="t", params=("{}",) * 4)], now_us=1)
    job_verbs.cancel(store, 4, tree=False, by="ann", reason=None, now_us=2)
    job_verbs.delete(store, 4, by="ann", now_us=3)
    store.note_removed_folders([4])
    root = tmp_path / "folders"
    folders.write_token(root, store.facts()["folder_token"])
    for job_id in (1, 2):
        (folders.make(root, job_id) / folders.OWN).mkdir(mode=0o700)
    yield Place(root, store)
    store.close()


CASES: dict[str, Callable[[Place], tuple[str, Callable[[], bool]]]] = {}


def case(name: str) -> Callable[[Callable[[Place], tuple[str, Callable[[], bool]]]], None]:
    def enter(damage: Callable[[Place], tuple[str, Callable[[], bool]]]) -> None:
        CASES[name] = damage

    return enter


@case("folder-orphan")
def _(place: Place) -> tuple[str, Callable[[], bool]]:
    folder = folders.make(place.root, 1_234_567)
    (folder / "result").write_text("precious")

    def aside() -> bool:
        (orphan,) = (place.root / ORPHANS).iterdir()
        return not folder.exists() and (orphan / "result").read_text() == "precious"

    return f"folder {job_folder(1_234_567)}", aside


@case("folder-of-deleted-job")
def _(place: Place) -> tuple[str, Callable[[], bool]]:
    folder = folders.make(place.root, 4)
    (folder / "file").write_text("x")
    return f"folder {job_folder(4)}", lambda: not folder.exists()


@case("folder-of-deleted-job, which nobody removed")
def _(place: Place) -> tuple[str, Callable[[], bool]]:
    job_verbs.cancel(place.store, 2, tree=False, by="ann", reason=None, now_us=4)
    job_verbs.delete(place.store, 2, by="ann", now_us=5)

    def gone() -> bool:
        return not place.folder(2).exists() and list(place.store.deleted_folders(9)) == []

    return f"folder {job_folder(2)}", gone


@case("folder-of-deleted-job, which retention removed")
def _(place: Place) -> tuple[str, Callable[[], bool]]:
    job_verbs.cancel(place.store, 2, tree=False, by="ann", reason=None, now_us=4)
    place.store.retention.set("t", "cancelled", 0.0, ANN, now_us=5)
    after: int | None = 0
    while after is not None:
        _, after = place.store.retention.sweep(after, ANN, now_us=6)

    def gone() -> bool:
        return not place.folder(2).exists() and list(place.store.deleted_folders(9)) == []

    return f"folder {job_folder(2)}", gone


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_damage_is_told_exactly_and_mended(place: Place, name: str) -> None:
    subject, mended = CASES[name](place)

    findings = place.examine()

    assert [(v.rule, v.subject) for v in findings] == [(name.partition(",")[0], subject)]
    assert findings[0].repair
    before = len(place.store.audit.entries())
    assert place.repair(findings[0]) is True
    assert mended()
    assert place.examine() == []
    ((entry, _),) = place.store.audit.entries(after=before)
    assert (entry.by, entry.verb) == ("ann", "repair")
    assert place.repair(findings[0]) is False, "it looks again"
    assert len(place.store.audit.entries()) == before + 1


@case("folder-left-behind")
def _(place: Place) -> tuple[str, Callable[[], bool]]:
    """Job 1 has gone on in another home."""
    database = sql_store(place.store).database
    with database.write() as tx:
        tx.run("insert into meta (name, value) values ('folders', 'local')")
        tx.take("registry")
    node = NodeInfo(
        id=0,
        name="oak",
        boot_id="b",
        host="thor",
        pid=1,
        slots=1,
        state="left",
        beat=0,
        started_us=1,
        seen_us=1,
        version="1",
        types=(),
        root=FolderRoot(mark="another", path="/elsewhere"),
    )
    node_id = place.store.join(node, now_us=4)
    place.store.update_node(node_id, state="left", now_us=5)
    with database.write() as tx:
        tx.run("update jobs set node_id = ? where id = 1", (node_id,))
    folders.fingerprint(place.root, make=True)
    (place.folder(1) / "result").write_text("precious")

    def aside() -> bool:
        (orphan,) = (place.root / ORPHANS).iterdir()
        return not place.folder(1).exists() and (orphan / "result").read_text() == "precious"

    return f"folder {job_folder(1)}", aside


LASTING_DAMAGES: dict[str, Callable[[Place, pytest.MonkeyPatch], str]] = {}


def lasting_damage(name: str) -> Callable[[Callable[[Place, pytest.MonkeyPatch], str]], None]:
    def enter(damage: Callable[[Place, pytest.MonkeyPatch], str]) -> None:
        LASTING_DAMAGES[name] = damage

    return enter


@lasting_damage("folder-root")
def _(place: Place, patch: pytest.MonkeyPatch) -> str:
    (place.root / folders.TOKEN).write_text("another\n")
    return "is the folder root of another store"


@lasting_damage("folder-root, which is gone")
def _(place: Place, patch: pytest.MonkeyPatch) -> str:
    place.root.rename(place.root.with_name("elsewhere"))
    return "has no token"


@lasting_damage("folder-unusable, a link")
def _(place: Place, patch: pytest.MonkeyPatch) -> str:
    (place.root / "00" / "00" / "00" / f"{3:012d}").symlink_to("/etc")
    return "is no directory, although folders of jobs belong there; move it away"


@lasting_damage("folder-unusable, on the way")
def _(place: Place, patch: pytest.MonkeyPatch) -> str:
    (place.root / "17").write_text("x")
    return "is no directory"


@lasting_damage("folder-unusable, unreadable")
def _(place: Place, patch: pytest.MonkeyPatch) -> str:
    (place.root / "00" / "00").chmod(0o300)
    rights_bind(patch)
    return "chmod u+rwx"


@lasting_damage("folder-unusable, it can be listed only")
def _(place: Place, patch: pytest.MonkeyPatch) -> str:
    (place.root / "00" / "00").chmod(0o400)
    rights_bind(patch)
    return f"the folder {place.root}/00/00 cannot be read"


@lasting_damage("folder-unusable, of a job")
def _(place: Place, patch: pytest.MonkeyPatch) -> str:
    place.folder(1).chmod(0)
    rights_bind(patch)
    return f"the folder {place.folder(1)} cannot be read"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory for another user")
def test_folders_that_root_sets_aside_are_in_a_directory_of_the_owner_of_the_root(place: Place) -> None:
    folders.make(place.root, 1_234_567)
    os.chown(place.root, 65534, 65534)
    (violation,) = place.examine()
    assert place.repair(violation)
    assert (place.root / ORPHANS).owner() == "nobody"


def rights_bind(patch: pytest.MonkeyPatch) -> None:
    """Root is refused nothing: let the system calls refuse him what they refuse everybody else."""
    if os.geteuid() != 0:
        return
    scandir, status = os.scandir, os.stat

    def require(directory: Path, right: int) -> None:
        if not status(directory).st_mode & right:
            raise PermissionError(errno.EACCES, "Permission denied", str(directory))

    def bound_scandir(path: Path) -> object:
        require(path, stat.S_IRUSR)
        return scandir(path)

    def bound_stat(path: Path, **how: bool) -> os.stat_result:
        require(Path(path).parent, stat.S_IXUSR)
        return status(path, **how)

    patch.setattr(os, "scandir", bound_scandir)
    patch.setattr(os, "stat", bound_stat)


@pytest.mark.parametrize("name", sorted(LASTING_DAMAGES))
def test_what_a_person_has_to_do_is_said(place: Place, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    sentence = LASTING_DAMAGES[name](place, monkeypatch)

    findings = place.examine()

    assert {(v.rule, v.repair) for v in findings} == {(name.partition(",")[0], None)}
    assert sentence in findings[0].sentence
    assert place.repair(findings[0]) is False


def test_every_rule_is_tested(place: Place) -> None:
    checks = FolderCheck(place.root, place.store).checks()

    assert {c.rule for c in checks} == {name.partition(",")[0] for name in [*CASES, *LASTING_DAMAGES]}
    assert {c.rule for c in checks if c.repairs} == {name.partition(",")[0] for name in CASES}


def test_a_healthy_root_is_left_in_peace(place: Place) -> None:
    (place.folder(1) / "1234").mkdir()
    (place.folder(1) / folders.OWN / "s.7.stdout").write_text("x")
    (place.folder(1) / "mine").write_text("x")
    (place.root / "README").write_text("what people put there is theirs")

    assert place.examine() == []


def test_what_nodes_are_about_to_remove_is_no_violation(place: Place) -> None:
    place.now_us = place.root.stat().st_mtime_ns // 1000
    job_verbs.cancel(place.store, 2, tree=False, by="ann", reason=None, now_us=place.now_us)
    job_verbs.delete(place.store, 2, by="ann", now_us=place.now_us)
    (place.root / folders.TRASH / "000000000009.1.ab").mkdir(parents=True)

    assert place.examine() == []


def test_a_job_that_is_removed_while_it_is_looked_at_is_no_violation(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a folder that is seen, and gone with its job before the store is asked."""
    folder = folders.make(place.root, 3)

    class Quick(FolderCheck):
        def _jobs(self, job_ids: list[int], now_us: int) -> Iterator[Violation]:  # type: ignore[override]
            if 3 in job_ids:
                folder.rmdir()
                job_verbs.cancel(place.store, 3, tree=False, by="ann", reason=None, now_us=9)
                job_verbs.delete(place.store, 3, by="ann", now_us=9)
                place.store.note_removed_folders([3])
            return super()._jobs(job_ids, now_us)

    assert list(Quick(place.root, place.store).examine(now_us=NOW_US)) == []


def test_it_asks_the_store_for_one_directory_at_a_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.store.submit([Submission(type="t", params=("{}",) * 350)], now_us=1)
    for job_id in range(5, 350):
        folders.make(place.root, job_id)
    questions: list[int] = []
    doctor = place.store.doctor
    standing = doctor.standing
    monkeypatch.setattr(doctor, "standing", lambda ids: questions.append(len(ids)) or standing(ids))

    assert place.examine() == []
    assert sum(questions) == 347
    assert max(questions) <= 100


def test_what_cannot_be_mended_is_said_in_a_sentence(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.make(place.root, 77)
    (finding,) = place.examine()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)

    with pytest.raises(StoreUnusable, match="cannot be repaired: Permission denied; see that"):
        place.repair(finding)


def test_only_the_rules_asked_for_are_told(place: Place) -> None:
    folders.make(place.root, 77)
    (place.root / "17").write_text("x")

    assert [v.rule for v in place.examine("folder-orphan")] == ["folder-orphan"]
    assert place.examine("folder-root") == []
