"""What user code itself says that it did, whatever the engine believes.

Each process appends to a file of its own, one ``write`` a line, so that a line is there whole or not at all and
outlives the process. A line is ``word job type stage fence nanoseconds places``; the time is the kernel's monotonic
clock, one for all processes of the machine. While an attempt runs it goes on saying so: of one that was killed, its
last line tells until when it ran for certain.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from spinney import Job

PLACE = "SPINNEY_CHAOS_NOTES"
"""Environment variable: the folder of the notes."""
TICK_S = 0.01
"""How often an attempt says that it still runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What one attempt did in one process, in seconds of the monotonic clock."""

    job_id: int
    fence: int
    pid: int
    type: str
    stage: str
    begun_s: float
    seen_s: float
    """Its last sign of life: up to here it ran for certain."""
    ended: str | None = None
    """``end``: it returned; ``fail``: it raised; None: it was cut off."""
    places: tuple[str, ...] = ()
    """What it occupied: ``queue:narrow``, ``lock:press``."""
    late: tuple[float, ...] = ()
    """Signs of life after its process had stood still and gone on; ``seen_s`` and ``ended`` are as of before that."""
    late_ended: str | None = None
    """As ``ended``, after that."""


# --- writing ----------------------------------------------------------------------------------

_lock = threading.Lock()
_open: dict[int, int] = {}
"""By process: a forked child opens its own."""


def note(word: str, job: Job, places: Sequence[str]) -> None:
    """Say something of this attempt."""
    line = f"{word} {job.id} {job.type} {job.stage} {job.fence} {time.monotonic_ns()} {','.join(places) or '-'}\n"
    os.write(_file(), line.encode())


def _file() -> int:
    pid = os.getpid()
    with _lock:
        if pid not in _open:
            name = f"{pid}-{time.monotonic_ns()}"  # numbers of processes come again
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            _open[pid] = os.open(Path(os.environ[PLACE], name), flags, 0o600)
        return _open[pid]


@contextmanager
def noted(job: Job, *places: str) -> Iterator[None]:
    """Around all that an attempt does."""
    note("begin", job, places)
    try:
        yield
    except BaseException:
        note("fail", job, places)
        raise
    note("end", job, places)


def linger(job: Job, seconds: float) -> None:
    """Be at work for so long, and say so."""
    until_s = time.monotonic() + seconds
    while (left := until_s - time.monotonic()) > 0:
        time.sleep(min(left, TICK_S))
        note("at", job, ())


# --- reading ----------------------------------------------------------------------------------


def read(place: Path, thaws: Mapping[int, float] = MappingProxyType({})) -> list[Stretch]:
    """All that was noted in a folder, in the order in which it began.

    ``thaws``: when processes that had stood still went on, by their number.
    """
    stretches: list[Stretch] = []
    for file in place.iterdir():
        pid = int(file.name.partition("-")[0])
        stretches += _of_one_process(pid, file.read_text().splitlines(), thaws.get(pid))
    return sorted(stretches, key=lambda stretch: (stretch.begun_s, stretch.fence))


def _of_one_process(pid: int, lines: Sequence[str], thawed_s: float | None) -> Iterator[Stretch]:
    open_: dict[int, Stretch] = {}
    for line in lines:
        word, job_id, type_, stage, fence, at_ns, places = line.split()
        at_s = int(at_ns) / 1e9
        late = (at_s,) if thawed_s is not None and at_s >= thawed_s else ()
        if word == "begin":
            if int(fence) in open_:
                yield open_.pop(int(fence))  # twice: whoever judges sees two
            open_[int(fence)] = Stretch(
                job_id=int(job_id),
                fence=int(fence),
                pid=pid,
                type=type_,
                stage=stage,
                begun_s=at_s,
                seen_s=at_s,
                places=tuple(place for place in places.split(",") if place != "-"),
                late=late,
            )
            continue
        opened = open_[int(fence)]
        open_[int(fence)] = replace(
            opened,
            seen_s=opened.seen_s if late else at_s,
            ended=None if word == "at" or late else word,
            late=opened.late + late,
            late_ended=word if word != "at" and late else None,
        )
        if word != "at":
            yield open_.pop(int(fence))
    yield from open_.values()
