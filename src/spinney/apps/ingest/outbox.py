"""Messages of a batch, a JSON line each, in one file that many jobs append to.

Every message is there once: before a job appends, it writes down where, so that when it runs again
after a crash it looks there first. What later carries messages on (mail, a webhook) reads this file.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spinney.apps.ingest import copying

FILE_NAME = "outbox.jsonl"


def tell_once(outbox: Path, marker: Path, message: Mapping[str, Any]) -> bool:
    """Append ``message`` unless it is there; False when it was.

    ``marker`` is a file of the job's own, one for each message that it may send.
    """
    line = (json.dumps(message, sort_keys=True) + "\n").encode()
    handle = os.open(outbox, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "r+b", buffering=0) as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        if _stands(out.fileno(), marker, line):
            return False
        end = _end(out.fileno())
        copying.write_durably(marker, str(end))
        os.pwrite(out.fileno(), line, end)
        os.fsync(out.fileno())
    return True


def _stands(handle: int, marker: Path, line: bytes) -> bool:
    if not marker.exists():
        return False
    return os.pread(handle, len(line), int(marker.read_text())) == line


def _end(handle: int) -> int:
    """Where the next line begins: a line that a crash cut short is written over."""
    size = os.fstat(handle).st_size
    while size and os.pread(handle, 1, size - 1) != b"\n":
        size -= 1
    os.ftruncate(handle, size)
    return size
