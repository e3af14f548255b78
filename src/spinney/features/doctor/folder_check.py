"""What the folders of jobs show: the rules of the doctor for what lies outside of the database.

The walk goes down the tree of directories, a hundred entries a level, and asks the store about the jobs of one
directory at a time: first the folder is seen, then the store is asked, then the folder is looked for again. So a job
that is submitted or removed meanwhile is no violation.

A folder without a job is never deleted: it may hold the work of a store that was restored from an older backup. It is
set aside, so that a new job with that number does not find it.
"""

import os
import re
import shlex
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from spinney.features.doctor.checks import Check, Violation
from spinney.folders import folders
from spinney.host.ownership import make_directory
from spinney.model.errors import StoreUnusable
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.model.values.paths import job_folder
from spinney.store.parts import Store

ORPHANS = ".orphans"
"""Below the folder root: where folders without a job are set aside."""
LATE_US = 600_000_000
"""How long after the deletion of a job its folder is reported, in microseconds: nodes remove such folders by
themselves, and only what is older is left over."""

_NUMBER = re.compile(r"[0-9]+")
"""Matches the names of directories of the spread, and of folders of jobs; all else below the folder root is
left alone."""
_SET_ASIDE = f"sets it aside in {ORPHANS}; nothing is deleted"
_RULES: dict[str, tuple[str, str, str | None]] = {
    "folder-root": ("The folder root exists and belongs to this store.", "{error}", None),
    "folder-orphan": (
        "The job of each folder exists.",
        "there is a folder of job {job}, but no such job; this happens when a store was restored from an older backup",
        _SET_ASIDE,
    ),
    "folder-left-behind": (
        "Where folders are local, a job's folder is where the job goes on.",
        "there is a folder of job {job} here, but the job goes on elsewhere: this folder was released, or its attempt "
        "here never reported",
        _SET_ASIDE,
    ),
    "folder-of-deleted-job": (
        "A deleted job has no folder.",
        "job {job} has been deleted, but its folder is still there",
        "removes the folder",
    ),
    "folder-unusable": (
        "Folders of jobs are directories that can be read.",
        "{error}; no job whose folder lies there can run",
        None,
    ),
}
"""For each rule what must hold, the message, and what the repair does (None: a person has to)."""


class FolderCheck:
    """Checks the folders of jobs below one folder root against the store: a ``Checker`` like the store's own
    doctor.

    Nodes create and remove folders while it walks. So a folder that disappears in between is no violation,
    the folder of a deleted job counts only when it should have been removed ten minutes ago (``LATE_US``),
    and a repair examines its folder again.
    """

    def __init__(self, root: Path, store: Store) -> None:
        self._root, self._store = root, store

    def checks(self) -> Sequence[Check]:
        """Return the rules over folders, in the order in which they are examined."""
        return [
            Check(rule=name, about=about, repairs=offer is not None)
            for name, (about, _, offer) in _RULES.items()
        ]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        """Walk through the folder root, and yield each violation (of the rules ``only``, if given). None of these rules
        is ``deep``."""
        rules = set(_RULES) if only is None else set(only) & set(_RULES)
        if rules:
            yield from (violation for violation in self._all(now_us) if violation.rule in rules)

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        """Repair a violation if a new look still finds it, and return whether anything was done. The audit entry is
        written first, because files cannot be rolled back. Raises StoreUnusable when the system refuses."""
        if violation.rule not in _RULES or violation.repair is None:
            return False
        job_id = violation.facts["job"]
        if violation.rule not in {now.rule for now in self._jobs([job_id], now_us)}:
            return False
        # The audit entry comes first: what was done to files cannot be taken back with a transaction.
        self._store.doctor.noted(violation, actor, now_us=now_us)
        try:
            if violation.rule == "folder-of-deleted-job":
                folders.remove(self._root, job_id)
                self._store.note_removed_folders([job_id])
            else:
                self._set_aside(folders.path(self._root, job_id))
        except OSError as error:
            raise StoreUnusable(
                f"{violation.subject} cannot be repaired: {error.strerror or error}; see that {self._root} is yours "
                f"and writable, and try again"
            ) from error
        return True

    def _set_aside(self, folder: Path) -> None:
        """Move a folder into ``.orphans`` below the folder root. The random suffix keeps a second folder of
        the same job apart."""
        aside = self._root / ORPHANS
        make_directory(aside, like=self._root)
        folder.rename(aside / f"{folder.name}.{os.urandom(4).hex()}")

    # --- the walk -------------------------------------------------------------------------------

    def _all(self, now_us: int) -> Iterator[Violation]:
        """Yield all violations below the folder root. A root that does not belong to this store is reported,
        and not walked: each of its folders would look like one without a job."""
        facts = self._store.facts()
        if facts.get("folders") == "local" and not folders.is_marked(self._root):
            return  # no node has been at work here
        try:
            folders.check_token(self._root, facts["folder_token"])
        except StoreUnusable as error:
            yield _violation("folder-root", f"folder root {self._root}", error=str(error))
            return
        yield from self._level(self._root, 0, now_us)

    def _level(self, directory: Path, depth: int, now_us: int) -> Iterator[Violation]:
        """Examine one directory of the spread, and all below; the last level holds folders of jobs."""
        jobs: list[int] = []
        below: list[Path] = []
        try:
            with os.scandir(directory) as entries:
                numbered = sorted(Path(entry.path) for entry in entries if _NUMBER.fullmatch(entry.name))
            for path in numbered:
                is_folder = _is_folder(path)
                if is_folder is None:
                    continue
                if not is_folder:
                    yield self._unusable(
                        path, f"{path} is no directory, although folders of jobs belong there; move it away"
                    )
                elif depth < folders.LEVELS:
                    below.append(path)
                elif int(path.name) <= JOB_ID_MAX and path == folders.path(self._root, int(path.name)):
                    jobs.append(int(path.name))
        except PermissionError:
            yield self._unreadable(directory)
            return
        for path in below:
            yield from self._level(path, depth + 1, now_us)
        yield from self._jobs(jobs, now_us)

    def _jobs(self, job_ids: Sequence[int], now_us: int) -> Iterator[Violation]:
        """Yield the violations of the folders of these jobs. The states of all of them are read in one query;
        folders that do not exist (any more) are left out."""
        if not job_ids:
            return
        states = self._store.doctor.standing(job_ids)
        mark = folders.fingerprint(self._root, make=False)
        elsewhere = set() if mark is None else set(self._store.homes.elsewhere(job_ids, mark))
        for job_id in job_ids:
            folder = folders.path(self._root, job_id)
            if not _is_folder(folder):
                continue
            subject = f"folder {job_folder(job_id)}"
            if job_id not in states:
                yield _violation("folder-orphan", subject, job=job_id)
                continue
            state, since_us = states[job_id]
            if state is None or state == State.DELETED:
                if since_us is None or since_us < now_us - LATE_US:
                    yield _violation("folder-of-deleted-job", subject, job=job_id)
            elif job_id in elsewhere:
                yield _violation("folder-left-behind", subject, job=job_id)
            else:
                try:
                    os.scandir(folder).close()
                except FileNotFoundError:
                    pass  # it was removed while it was looked at
                except PermissionError:
                    yield self._unreadable(folder)

    def _unreadable(self, folder: Path) -> Violation:
        """Return the violation for a directory that this user may not read."""
        return self._unusable(
            folder,
            f"the folder {folder} cannot be read by user {os.geteuid()} and was not examined; its owner can change "
            f"that: chmod u+rwx {shlex.quote(str(folder))}",
        )

    def _unusable(self, path: Path, error: str) -> Violation:
        """Return the violation for a path that is no directory or cannot be read."""
        return _violation("folder-unusable", f"folder {path.relative_to(self._root)}", error=error)


def _violation(rule: str, subject: str, **facts: object) -> Violation:
    """Return a violation of a rule, with the facts filled into its sentence."""
    _, sentence, offer = _RULES[rule]
    return Violation(rule=rule, subject=subject, sentence=sentence.format(**facts), repair=offer, facts=facts)


def _is_folder(path: Path) -> bool | None:
    """Return whether the path is a directory, and no link to one; None: it does not exist (any more)."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return None
