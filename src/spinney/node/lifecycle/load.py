"""The load of a node's host, which is stored with every heartbeat; the kernel measures it anyway."""

import os
from pathlib import Path

from spinney.model.fleet import Load

_MEMINFO = Path("/proc/meminfo")


def measure_load() -> Load | None:
    """Return the current load of the host; None where the kernel does not report it."""
    try:
        facts = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return Load(
            one_minute=round(os.getloadavg()[0], 2),
            cpus=len(os.sched_getaffinity(0)),
            memory_bytes=_bytes(facts["MemTotal"]),
            memory_free_bytes=_bytes(facts["MemAvailable"]),
        )
    except (OSError, KeyError, ValueError):
        return None


def _bytes(text: str) -> int:
    """Return the bytes of a value of ``/proc/meminfo``, such as ``  16384 kB``."""
    return int(text.split()[0]) * 1024
