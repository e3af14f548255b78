"""What a node does in one inbox: it waits until a drop rests, and takes or rejects it.

A step is a plain function of a thread, since it reads files of any size from file systems that may not answer; its
calls of the store go through ``do``. Each drop goes through the same steps, and a node that dies in any of them leaves
something from which the next step goes on:

1. it rests, or is ready: its digest is taken;
2. ``arrive``: the store has its arrival and, in the same transaction, a held job; or the reason why it is rejected;
3. ``place`` or ``reject``: it is where it belongs;
4. ``finish``: the arrival is done, and the job released.

So a step begins with the arrivals that are open (3 and 4), and only then looks for drops that are new.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from spinney.folders import folders
from spinney.folders.drop_folder import DropFolder
from spinney.folders.upload_steps import Do
from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.settings.inboxes import Arrival, ArrivalOutcome, Drop, Inbox, Kind


class Taken(NamedTuple):
    """The result of one step that takes drops from an inbox."""

    jobs: int
    """How many jobs may begin now."""
    problem: str | None
    """What keeps drops from being taken; they stay where they are, and the next step tries again."""


class Intake:
    """The intake of one inbox by one node."""

    def __init__(
        self,
        do: Do,
        *,
        root: Path,
        node_id: int,
        now_us: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """``root``: the folder root of the jobs. ``clock``: in seconds, of this host. ``stopped``: whether a step is to
        end as soon as it can, by raising ``Stopped``."""
        self._do, self._root, self._node_id, self._now_us = do, root, node_id, now_us
        self._clock, self._stopped = clock, stopped
        self._resting: dict[str, tuple[str, float]] = {}
        """The identity of each drop, and since when it is so."""
        self._may_be_open = True
        """Whether arrivals may be open: those of a node before this one, or those that could not be finished."""

    def step(self, inbox: Inbox) -> Taken:
        """Finish what an earlier step left open, then take or reject the drops that rest. Raises StoreUnusable, and
        Stopped."""
        folder = DropFolder(Path(inbox.folder), self._stopped)
        jobs, problem = 0, None
        arrivals = self._do(lambda store: store.inboxes.unfinished(inbox.name)) if self._may_be_open else ()
        self._may_be_open = False
        for arrival in arrivals:
            try:
                jobs += self._close(folder, arrival)
            except OSError as error:
                problem = problem or _words(arrival.name, error)
        if inbox.paused:
            return Taken(jobs, problem)
        try:
            names = folder.names()
        except OSError as error:
            return Taken(jobs, problem or _words(inbox.folder, error))
        self._resting = {name: self._resting[name] for name in names if name in self._resting}
        for name in names:
            try:
                drop = self._whole(folder, name, 0.0 if inbox.scan_us is not None else inbox.rest_s)
                if drop is not None:
                    jobs += self._close(folder, self._arrive(inbox, drop))
            except OSError as error:
                problem = problem or _words(name, error)
            except StoreUnusable:
                raise
            except SpinneyError as error:
                return Taken(jobs, problem or str(error))  # it would be the same for every drop
        return Taken(jobs, problem)

    def _whole(self, folder: DropFolder, name: str, rest_s: float) -> Drop | None:
        """Return a drop that is ready or has rested, with its digest; None: it has to wait."""
        drop = folder.look(name)
        if drop is None:
            return None
        before, since_s = self._resting.get(name, ("", 0.0))
        if before != drop.identity:
            since_s = self._clock()
            self._resting[name] = drop.identity, since_s
        if drop.fault is not None and drop.kind is not Kind.FOLDER:
            return drop
        if self._clock() - since_s < rest_s and not folder.is_ready(name):
            return None
        return drop if drop.fault is not None else folder.hashed(name, drop)

    def _arrive(self, inbox: Inbox, drop: Drop) -> Arrival:
        """Enter a drop that is whole into the store; return its arrival. Where the answer is lost, the next
        step begins with the arrivals that are open, and so finds it."""
        now_us = self._now_us()
        try:
            return self._do(
                lambda store: store.inboxes.arrive(inbox.name, drop, self._node_id, now_us=now_us)
            )
        except StoreUnusable:
            self._may_be_open = True  # the store may have written it, and only the answer be lost
            raise

    def _close(self, folder: DropFolder, arrival: Arrival) -> int:
        """Bring an arrival from whatever step it has reached to its end; return 1 if its job may begin, else
        0. Each step may be repeated: ``place`` and ``reject`` go on from what is on the disk, ``finish`` from
        what is in the store. Raises OSError: it stays open."""
        was_open, self._may_be_open = self._may_be_open, True
        now_us = self._now_us()
        placed = False
        if arrival.outcome is ArrivalOutcome.TAKING:
            reason = None
            if not self._do(lambda store: store.inboxes.is_wanted(arrival)):
                reason = f"its job {arrival.job_id} was cancelled before it was taken"
            elif not folder.place(arrival, self._job_folder(arrival)):
                reason = "it was removed or changed before it was taken"
            placed = reason is None
            if reason is not None:
                arrival = replace(arrival, reason=reason)
                self._do(lambda store: store.inboxes.withdraw(arrival, now_us=now_us))
        if not placed:
            folder.reject(arrival)
        self._do(lambda store: store.inboxes.finish(arrival.id, now_us=now_us))
        self._may_be_open = was_open
        return int(placed)

    def _job_folder(self, arrival: Arrival) -> Path:
        """Return the folder of the job that gets the drop. Raises OSError, also for a root that is not the
        store's, so that the arrival stays open."""
        try:
            return folders.make(self._root, arrival.job_id or 0)
        except StoreUnusable as error:
            raise OSError(str(error)) from error


def _words(name: str, error: OSError) -> str:
    return f"{name!r} cannot be taken: {error.strerror or error}"
