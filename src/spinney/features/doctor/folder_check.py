"""The doctor's checks of job folders: ``spinney.features.doctor.service.Checker`` for what the database cannot show.

The walk goes down the tree of directories, a hundred entries a level, and asks the store about the jobs of one
directory at a time. First the folder is seen, then the store is asked, then the folder is looked for again: a
job that is made or removed meanwhile is no violation.

A folder without a job is never deleted: it may hold the work of a store that was restored from an older backup.
It is set aside, so that a new job of its number does not find it.
"""

import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spinney.folders import folders
from spinney.model.errors import StoreUnusable
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.rights.operators import Actor, Check, Violation
from spinney.model.states import State
from spinney.model.values.paths import job_folder
from spinney.node.dispatch.output import HEAD_BYTES, TAIL_BYTES
from spinney.store.contract import Store

ORPHANS = ".orphans"
"""Below the folder root: where folders without a job are set aside."""
LATE_US = 600_000_000
"""What nodes remove by themselves is left over only when it is so old."""
FREE_LEAST_BYTES = 2**29
NOTE_BYTES = 1_000
"""Room in an output file for the notes of what was cut."""
OTHERS_WRITE = 0o022

_LEVELS = 3
"""Directories between the root and a job's folder."""

_NUMBER = re.compile(r"[0-9]+")
Found = Mapping[str, Any]


class FolderCheck:
    """Made for one folder root and its store."""

    def __init__(self, root: Path, store: Store) -> None:
        self._root, self._store = root, store
        self._most_bytes = HEAD_BYTES + TAIL_BYTES + NOTE_BYTES

    def checks(self) -> Sequence[Check]:
        return [
            Check(rule=name, about=about, repairs=name in self._repairs()) for name, about in _ABOUT.items()
        ]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        wanted = set(_ABOUT) if only is None else set(only) & set(_ABOUT)
        if wanted:
            yield from (found for found in self._all(now_us) if found.rule in wanted)

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        mend = self._repairs().get(violation.rule)
        if mend is None or not self._still(violation, now_us):
            return False
        # Entered first: what was done to files cannot be taken back with a transaction.
        self._store.doctor.noted(violation, actor, now_us=now_us)
        try:
            mend(violation.facts)
        except OSError as error:
            raise StoreUnusable(
                f"{violation.subject} cannot be mended: {error.strerror or error}; see that {self._root} is yours and "
                f"writable, and try again"
            ) from error
        return True

    # --- looking --------------------------------------------------------------------------

    def _all(self, now_us: int) -> Iterator[Violation]:
        facts = self._store.facts()
        if facts.get("folders") == "local" and not (self._root / folders.TOKEN).exists():
            return  # no node has been at work here
        try:
            folders.check_token(self._root, facts["folder_token"])
        except StoreUnusable as error:
            yield _violation("folder-root", f"folder root {self._root}", str(error), path="")
            return
        free = os.statvfs(self._root)
        if free.f_bavail * free.f_frsize < FREE_LEAST_BYTES:
            yield _violation(
                "folder-disk-full",
                f"folder root {self._root}",
                f"the disk that holds {self._root} has {free.f_bavail * free.f_frsize // 2**20} MiB left; make room, "
                f"or stages that write files will fail ('spinney keep' removes what is old)",
                path="",
            )
        yield from self._trash(now_us)
        yield from self._open_to_others(self._root)
        yield from self._level(self._root, 0, now_us)

    def _trash(self, now_us: int) -> Iterator[Violation]:
        late = (now_us - LATE_US) / 1e6
        old = 0
        try:
            with os.scandir(self._root / folders.TRASH) as found:
                old = sum(1 for entry in found if entry.stat(follow_symlinks=False).st_ctime < late)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            yield self._no_trash(self._root / folders.TRASH)
            return
        except PermissionError:
            yield self._unreadable(self._root / folders.TRASH)
            return
        if old:
            yield _violation(
                "trash-left",
                f"folder {folders.TRASH}",
                f"{old} things that were to be deleted are still in {folders.TRASH}; a crash left them",
                "deletes them",
                path=folders.TRASH,
            )

    def _level(self, directory: Path, depth: int, now_us: int) -> Iterator[Violation]:
        """One directory of the spread, and all below; the last level holds folders of jobs."""
        jobs: list[int] = []
        below: list[Path] = []
        try:
            for path in _numbered(directory):
                if not _there(path):
                    yield self._no_folder(path)
                elif depth < _LEVELS:
                    below.append(path)
                elif int(path.name) <= JOB_ID_MAX and self._relative(path) == job_folder(int(path.name)):
                    jobs.append(int(path.name))
                else:
                    yield self._misplaced(path)
        except PermissionError:
            yield self._unreadable(directory)
            return
        for path in sorted(below):
            yield from self._open_to_others(path)
            yield from self._level(path, depth + 1, now_us)
        yield from self._of_jobs(sorted(jobs), now_us)

    def _of_jobs(self, job_ids: Sequence[int], now_us: int) -> Iterator[Violation]:
        if not job_ids:
            return
        known = self._store.doctor.standing(job_ids)
        mark = folders.fingerprint(self._root, make=False)
        elsewhere = set() if mark is None else set(self._store.homes.elsewhere(job_ids, mark))
        for job_id in job_ids:
            folder = folders.path(self._root, job_id)
            if not _there(folder):
                continue
            if job_id not in known:
                yield self._orphan(job_id)
                continue
            state, since_us = known[job_id]
            if state is None or state == State.DELETED:
                if since_us is None or since_us < now_us - LATE_US:
                    yield self._of_deleted(job_id)
                continue
            if job_id in elsewhere:
                yield self._left_behind(job_id)
                continue
            yield from self._open_to_others(folder)
            yield from self._own(job_id, folder / folders.OWN)

    def _own(self, job_id: int, own: Path) -> Iterator[Violation]:
        """The engine's own files in a job's folder."""
        try:
            if not _there(own):
                return
        except PermissionError:
            yield self._unreadable(own.parent)
            return
        yield from self._open_to_others(own)
        try:
            with os.scandir(own) as found:
                for entry in found:
                    if not entry.name.endswith((".stdout", ".stderr")):
                        continue
                    size = entry.stat(follow_symlinks=False).st_size
                    if size > self._most_bytes:
                        yield self._too_long(job_id, Path(entry.path), size)
        except FileNotFoundError:
            return  # it was removed while it was looked at
        except PermissionError:
            yield self._unreadable(own)

    def _open_to_others(self, directory: Path) -> Iterator[Violation]:
        try:
            # Of a root that is a link, the rights are those of where it leads; a link's own always say 0777. What
            # lies below is looked at only when it is a directory itself.
            found = directory.stat()
        except FileNotFoundError:
            return
        where = self._relative(directory) or "."
        if found.st_uid != os.geteuid():
            yield _violation(
                "folder-of-somebody-else",
                f"folder {where}",
                f"the folder {directory} belongs to user {found.st_uid}, but you are user {os.geteuid()}; run Spinney "
                f"as its owner, or change the owner",
                path=where,
            )
        elif found.st_mode & OTHERS_WRITE:
            yield _violation(
                "folder-open-to-others",
                f"folder {where}",
                f"others than its owner may write into {directory} (mode {stat.S_IMODE(found.st_mode):04o}): they "
                f"could put there what a stage then takes for its own",
                "takes the right to write from others",
                path=where,
            )

    # --- what is found --------------------------------------------------------------------

    def _orphan(self, job_id: int) -> Violation:
        where = job_folder(job_id)
        return _violation(
            "folder-orphan",
            f"folder {where}",
            f"there is a folder of job {job_id}, but no such job; a store that was restored from an older backup shows "
            f"such folders",
            f"sets it aside in {ORPHANS}; nothing is deleted",
            path=where,
            job=job_id,
        )

    def _of_deleted(self, job_id: int) -> Violation:
        where = job_folder(job_id)
        return _violation(
            "folder-of-deleted-job",
            f"folder {where}",
            f"job {job_id} has been deleted, but its folder is still there",
            "removes the folder",
            path=where,
            job=job_id,
        )

    def _left_behind(self, job_id: int) -> Violation:
        where = job_folder(job_id)
        return _violation(
            "folder-left-behind",
            f"folder {where}",
            f"there is a folder of job {job_id} here, but the job has gone on elsewhere, since somebody let go of this "
            f"one or its attempt here was never heard of",
            f"sets it aside in {ORPHANS}; nothing is deleted",
            path=where,
            job=job_id,
        )

    def _misplaced(self, path: Path) -> Violation:
        where = self._relative(path)
        return _violation(
            "folder-misplaced",
            f"folder {where}",
            f"{path} has the name of a job's folder, but is not where that job looks for it "
            f"({job_folder(int(path.name))}); move it there, or away",
            path=where,
        )

    def _no_folder(self, path: Path) -> Violation:
        where = self._relative(path)
        return _violation(
            "folder-no-directory",
            f"folder {where}",
            f"{path} stands where a folder of jobs should be, but is no directory; no job whose folder lies there "
            f"can run: move it away",
            path=where,
        )

    def _no_trash(self, path: Path) -> Violation:
        where = self._relative(path)
        return _violation(
            "folder-no-directory",
            f"folder {where}",
            f"{path} is no directory, but what is removed goes through it: no folder of a job can be removed; move it "
            f"away",
            path=where,
        )

    def _unreadable(self, path: Path) -> Violation:
        where = self._relative(path) or "."
        return _violation(
            "folder-unreadable",
            f"folder {where}",
            f"the folder {path} may not be read by user {os.geteuid()}, so that what lies in it was not examined, and "
            f"no job whose folder lies there can run; its owner can mend that: chmod u+rwx {shlex.quote(str(path))}",
            path=where,
        )

    def _too_long(self, job_id: int, path: Path, size: int) -> Violation:
        return _violation(
            "output-too-long",
            f"file {self._relative(path)}",
            f"the output {path} of job {job_id} has {size:,} bytes, but a node keeps {self._most_bytes:,} at most; "
            f"something else writes into it: find out what, and remove the file",
            path=self._relative(path),
            job=job_id,
        )

    def _relative(self, path: Path) -> str:
        return "" if path == self._root else str(path.relative_to(self._root))

    # --- mending --------------------------------------------------------------------------

    def _repairs(self) -> Mapping[str, Callable[[Found], None]]:
        return {
            "trash-left": self._empty_trash,
            "folder-orphan": self._set_aside,
            "folder-left-behind": self._set_aside,
            "folder-of-deleted-job": self._remove,
            "folder-open-to-others": self._close,
        }

    def _still(self, violation: Violation, now_us: int) -> bool:
        """Whether it is there still, looked at alone."""
        facts = violation.facts
        path = self._root / facts["path"]
        if violation.rule == "trash-left":
            again = self._trash(now_us)
        elif violation.rule == "folder-open-to-others":
            again = self._open_to_others(path if facts["path"] != "." else self._root)
        else:
            again = self._of_jobs([facts["job"]], now_us)
        return any(found.rule == violation.rule and found.subject == violation.subject for found in again)

    def _empty_trash(self, facts: Found) -> None:
        folders.empty_trash(self._root)

    def _set_aside(self, facts: Found) -> None:
        aside = self._root / ORPHANS
        aside.mkdir(mode=0o700, exist_ok=True)
        folder = self._root / facts["path"]
        folder.rename(aside / f"{folder.name}.{os.urandom(4).hex()}")

    def _remove(self, facts: Found) -> None:
        folders.remove(self._root, facts["job"])
        self._store.note_removed_folders([facts["job"]])

    def _close(self, facts: Found) -> None:
        path = self._root if facts["path"] == "." else self._root / facts["path"]
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS_WRITE)


_ABOUT = {
    "folder-root": "The folder root is there and belongs to this store.",
    "folder-disk-full": "There is room on the disk of the folders.",
    "trash-left": "What was to be deleted is deleted.",
    "folder-orphan": "A job's folder has its job.",
    "folder-left-behind": "Where folders are local, a job's folder is where the job goes on.",
    "folder-of-deleted-job": "A deleted job has no folder.",
    "folder-misplaced": "A job's folder is where the job looks for it.",
    "folder-no-directory": "What stands where a folder should be is one.",
    "folder-unreadable": "The folders can be looked into.",
    "folder-open-to-others": "Only their owner may write into the folders.",
    "folder-of-somebody-else": "The folders belong to whoever runs the nodes.",
    "output-too-long": "The output of an attempt keeps its bound.",
}
"""Rules, and what must hold."""


def _violation(rule: str, subject: str, sentence: str, repair: str | None = None, **facts: Any) -> Violation:
    return Violation(rule=rule, subject=subject, sentence=sentence, repair=repair, facts=facts)


def _numbered(directory: Path) -> list[Path]:
    """What bears a number there. Raises PermissionError."""
    with os.scandir(directory) as found:
        return sorted(Path(entry.path) for entry in found if _NUMBER.fullmatch(entry.name))


def _there(place: Path) -> bool:
    try:
        return stat.S_ISDIR(place.lstat().st_mode)
    except FileNotFoundError:
        return False
