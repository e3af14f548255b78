"""A tree of links to the folders of jobs, by state, that people walk with ``ls``.

    views/queue/NAME/00000012     open, and not running
    views/running/NODE/00000012
    views/done/2026/11/22/00000012, failed/2026/…, cancelled/2026/…     by the day (UTC) when it settled

The tree is kept where the directory ``views`` exists in the folder root, and holds links only of jobs that have a
folder. The store is the authority: a link that is missing or wrong misleads nobody but people, until the next round.
Folders of jobs never move. What is no link with a number as its name is left alone."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from spinney.folders import folders
from spinney.model.jobs import JOB_ID_MAX, Job
from spinney.model.states import LEASED, State

VIEWS = "views"
"""The directory below the folder root. Who makes it turns the views on."""
RUNNING = "running"
_SETTLED = {
    State.COMPLETED: "done",
    State.FAILED: "failed",
    State.ORPHANED: "failed",
    State.CANCELLED: "cancelled",
}
_DIGITS = 8


class ViewLink(NamedTuple):
    """A link to a job's folder in the tree of views."""

    path: str
    """Relative to the directory of the views."""
    job_id: int


def view_path(job: Job) -> str | None:
    """Return the path of a job's link, relative to the directory of the views; None for a job that has none."""
    name = f"{job.id:0{_DIGITS}d}"
    if job.state is State.DELETED:
        return None
    if job.state in _SETTLED:
        day = datetime.fromtimestamp((job.settled_us or job.created_us) / 1e6, UTC)
        return f"{_SETTLED[job.state]}/{day:%Y/%m/%d}/{name}"
    if job.state in LEASED and job.node:
        return f"{RUNNING}/{job.node}/{name}"
    return f"queue/{job.queue}/{name}"


class ViewTree:
    """The links below one folder root."""

    def __init__(self, root: Path) -> None:
        """``root``: the folder root, below which the views have their directory."""
        self._root, self._views = root, root / VIEWS

    def exists(self) -> bool:
        """Return whether the views are turned on."""
        return self._views.is_dir() and not self._views.is_symlink()

    def links(self, below: str = "") -> Iterator[ViewLink]:
        """Yield the links below a directory of the views, while they may change: one that comes or goes
        meanwhile may be among them or not. ``below`` is relative to the views; empty: all."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self._views / below) as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                if entry.is_dir(follow_symlinks=False):
                    yield from self.links(path)
                elif entry.is_symlink() and _is_number(entry.name):
                    yield ViewLink(path, int(entry.name))

    def job_ids(self, below: Path | None = None, depth: int = 0) -> Iterator[int]:
        """Yield the ids of the jobs that have a folder, in order. The directories are read as the iteration
        goes on, so that it can be continued over many steps. Callers leave out ``below`` and ``depth``, which are for
        the recursion."""
        try:
            names = sorted(path.name for path in (below or self._root).iterdir() if _is_number(path.name))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return
        for name in names:
            if depth < folders.LEVELS:
                yield from self.job_ids((below or self._root) / name, depth + 1)
            elif self.has_folder(int(name)):
                yield int(name)

    def has_folder(self, job_id: int) -> bool:
        """Return whether the job has a folder below this root."""
        return folders.path(self._root, job_id).is_dir()

    def is_right(self, path: str, job_id: int) -> bool:
        """Return whether the link at this path is there and leads to the folder of this job."""
        try:
            return (self._views / path).readlink() == Path(self._target(path, job_id))
        except OSError:
            return False

    def place(self, path: str, job_id: int) -> bool:
        """Let the link at this path lead to the folder of this job; return whether anything had to change.
        The link is replaced by a rename, so that it is never missing. Its target is relative, so that it
        holds wherever the root is mounted."""
        if self.is_right(path, job_id):
            return False
        link = self._views / path
        link.parent.mkdir(parents=True, exist_ok=True)
        draft = link.with_name(f".{link.name}.{os.getpid()}")
        with suppress(FileNotFoundError):
            draft.unlink()
        draft.symlink_to(self._target(path, job_id))
        draft.rename(link)
        return True

    def remove(self, path: str) -> bool:
        """Remove a link, and the directories that are empty without it; return whether it was there."""
        link = self._views / path
        try:
            link.unlink()
        except FileNotFoundError:
            return False
        with suppress(OSError):  # the first that is not empty
            for directory in islice(link.parents, len(Path(path).parents) - 1):
                directory.rmdir()
        return True

    def mend(self, links: Iterable[ViewLink], jobs: Mapping[int, Job]) -> int:
        """Place the links of these jobs that have a folder, then remove those of ``links`` that are wrong; return how
        many were changed. ``jobs``: what the store has of all that are concerned."""
        changed = 0
        for job in jobs.values():
            path = view_path(job)
            if path is not None and self.has_folder(job.id):
                changed += self.place(path, job.id)
        for link in links:
            if self.wrong(link, jobs.get(link.job_id)):
                changed += self.remove(link.path)
        return changed

    def wrong(self, link: ViewLink, job: Job | None) -> bool:
        """Return whether a link is not that of its job. ``job``: what the store has of it; None: there is none."""
        return job is None or view_path(job) != link.path or not self.has_folder(link.job_id)

    def _target(self, path: str, job_id: int) -> str:
        """Return the text of the link at this path to a job's folder."""
        return os.path.relpath(folders.path(self._root, job_id), (self._views / path).parent)


def _is_number(name: str) -> bool:
    """Return whether a name may be the id of a job; others, such as a person's time stamp, are not ours."""
    return name.isascii() and name.isdecimal() and int(name) <= JOB_ID_MAX
