"""Fetches files of jobs whose folders are on other hosts, from the nodes there, through the store.

The reader writes a request (a row of ``fetches``), wakes the nodes and looks for the answer; a node of that
home looks for requests every 0.2 s, or when it is woken, and writes the answer into the row; the reader
removes the row. A reader that is killed leaves its row, which expires.
"""

import time
from collections.abc import Callable

from spinney.model.errors import Refused
from spinney.model.homes import FetchResult, Home
from spinney.store.parts import Store

PATIENCE_S = 20.0
"""Seconds to wait for an answer. An active node looks at least every 0.2 s, and a piece is small."""
_LOOK_S = 0.02
"""The interval at which the answer is looked for."""


class Fetcher:
    """Fetches pieces of one job's files, one request at a time. ``home``: only named in messages."""

    def __init__(
        self,
        store: Store,
        job_id: int,
        home: Home,
        *,
        clock: Callable[[], int],
        wake_nodes: Callable[[], None],
    ) -> None:
        self._store, self._job_id, self._home = store, job_id, home
        self._clock, self._wake_nodes = clock, wake_nodes

    def get(self, path: str, *, start: int, length: int) -> FetchResult:
        """Return a piece of a file or (``length`` 0) the names in a directory.

        ``path`` is relative to the job's folder, ``start`` the first byte or name. The piece may be
        shorter than ``length``, which the store cuts to ``PIECE_BYTES``. What the node could not read
        is an error in the result. Blocks for at most ``PATIENCE_S`` seconds. Raises NoSuchJob, and
        Refused when no node answers or the request is not accepted.
        """
        number = self._store.fetches.ask(self._job_id, path, start=start, length=length, now_us=self._clock())
        self._wake_nodes()
        give_up = time.monotonic() + PATIENCE_S
        try:
            while (result := self._store.fetches.take(number)) is None:
                if time.monotonic() > give_up:
                    raise Refused(
                        f"no node on {self._home} has answered for {PATIENCE_S:.0f} s; 'spinney nodes' shows its "
                        f"state"
                    )
                time.sleep(_LOOK_S)
        except BaseException:
            self._store.fetches.drop(number)
            raise
        return result
