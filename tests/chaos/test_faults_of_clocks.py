"""One of two nodes has a wall clock that is stepped by an hour and by a day, forth and back.

What is simulated: the wall clock as Python tells it (``time.time`` and ``time.time_ns``, of which everything in a node
takes its time), in all processes of that node. Its monotonic clocks are right, as they are when somebody steps the time
of a machine. The machine's clock is left alone, and libfaketime will not do: with it Python's ``sleep``, which waits
for an instant of the monotonic clock, fails or lasts as long as the clock is wrong.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chaos_load import Grove, Harvest, works

from long_tests import long_alone

HOUR_S, DAY_S = 3_600, 86_400
STEPS_S = (HOUR_S, 0, -HOUR_S, 0, DAY_S, 0)
_LIES = """
import mmap, os, time
with open({clock!r}, "rb") as file:
    _by = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)
_true_ns = time.time_ns
time.time_ns = lambda: _true_ns() + int.from_bytes(_by[:8], "little", signed=True)
time.time = lambda: time.time_ns() / 1e9
"""


class Clock:
    """The wall clock of a node, off by so many seconds."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self._file = place / "off_by_ns"
        self.step(0)
        (place / "sitecustomize.py").write_text(_LIES.format(clock=str(self._file)))
        self.environment = {"PYTHONPATH": os.pathsep.join((str(place), os.environ.get("PYTHONPATH", "")))}

    def step(self, seconds: int) -> None:
        """For processes that run and for those that start."""
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(fd, (seconds * 10**9).to_bytes(8, "little", signed=True), 0)
        os.close(fd)


def test_the_clock_does_lie(tmp_path: Path) -> None:
    """Else the test below shows nothing."""
    clock = Clock(tmp_path / "clock")
    clock.step(-HOUR_S)
    tell_both = "import time; print(time.time_ns() // 10**9, time.monotonic_ns() // 10**9)"
    (true_s, boot_s), (told_s, boot_too_s) = [
        map(
            int,
            subprocess.check_output(
                [sys.executable, "-c", tell_both], env=os.environ | more, text=True
            ).split(),
        )
        for more in ({}, clock.environment)
    ]
    assert -HOUR_S <= told_s - true_s <= -HOUR_S + 60
    assert 0 <= boot_too_s - boot_s <= 60


@long_alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_the_simulated_clock_of_one_node_is_stepped(
    plant: Callable[..., Grove], tell: Callable[[str, str, Harvest], None], tmp_path: Path, store: str
) -> None:
    clock = Clock(tmp_path / "clock")
    grove = plant(store)
    # Who comes first leads: it is the one whose clock is wrong
    grove.start("oak", env=clock.environment)
    grove.start("elm")
    with grove.under_load(100):
        works(grove)
        for seconds in STEPS_S:
            clock.step(seconds)
            grove.rest(2.0)
            # And in the midst of it the other node dies, so that there is something to be judged by clocks
            grove.blow(grove.nodes["elm"].process.kill)
            grove.rest(2.0)
    harvest = grove.harvest()
    assert grove.restarts == len(STEPS_S), "only what was killed has ended"
    tell(
        "wall clock of one node stepped by an hour, a day",
        {"sqlite": "SQLite"}.get(store, "PostgreSQL"),
        harvest,
    )
