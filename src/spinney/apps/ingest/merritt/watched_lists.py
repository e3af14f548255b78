"""Lists of Merritt's queue that are read again only when one of them has changed, or after a while."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError


@dataclass
class WatchedLists:
    """Decides when a group of lists is to be read again. Each list is the children of a node in ZooKeeper; its watch
    fires in another thread."""

    client: KazooClient
    poll_s: float
    """After so many seconds the lists are read even if no watch has fired, since watches may be lost with a
    session."""
    _changed: Event = field(default_factory=Event, init=False)
    _read_s: float = field(default=-1e9, init=False)
    """When the lists were last read, in monotonic seconds."""

    def note_change(self, *_: object) -> None:
        """Have the lists read in the next round; also called by watches."""
        self._changed.set()

    def is_due(self) -> bool:
        """Return whether the lists are to be read now. A caller that gets True must read them: the next call returns
        False, unless a list has changed meanwhile or ``poll_s`` has passed."""
        now_s = time.monotonic()
        if not self._changed.is_set() and now_s - self._read_s < self.poll_s:
            return False
        self._changed.clear()
        self._read_s = now_s
        return True

    def watch(self, paths: Iterable[str]) -> None:
        """Watch these lists for their next change. Called before they are read, so that a change in between is not
        missed. A list that does not exist is left out."""
        for path in paths:
            with suppress(NoNodeError):
                # The client keeps equal watches of a node once, so that those that have not fired yet do not add up.
                self.client.retry(self.client.get_children, path, watch=self.note_change)
