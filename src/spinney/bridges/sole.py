"""At most one process of a host works under a bridge's name.

The store knows who took a name last (``Bridge.take``); this lock keeps two nodes of one name from running beside each
other on one host. It ends with the process, however that ends."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.errors import UsageError

PATIENCE_S = 60.0
"""How long a takeover waits for the other process, in seconds."""


@contextmanager
def sole(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of this file while the block runs. ``wait``: the process that has it was asked to end, so
    wait for up to a minute. Raises UsageError when another process keeps it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        give_up = time.monotonic() + (PATIENCE_S if wait else 0.0)
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= give_up:
                    raise UsageError(
                        f"another process works under this name (lock {path}); end it, or take over with --replace"
                    ) from None
                time.sleep(0.05)
        yield
