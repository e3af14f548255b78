"""What a node measures of its host, to be told with every beat: what the kernel counts anyway."""

import os
from pathlib import Path

from spinney.model.fleet import Load

_MEMINFO = Path("/proc/meminfo")


def measure_load() -> Load | None:
    """How the host fares now; None where the kernel does not tell."""
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


def _bytes(told: str) -> int:
    """``  16384 kB``."""
    return int(told.split()[0]) * 1024
