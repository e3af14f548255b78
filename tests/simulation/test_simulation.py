"""Some lives in every test run, and proof that the simulation can fail. ``make sim`` lives more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from long_tests import LONG

from .__main__ import main, report
from .variants import VARIANTS
from .world import live

SEEDS = 1000 if LONG else 100
"""Lives in the test below: always the same, so that nobody else's change is found here by luck. In a hundred there is
every kind of fault, of world, of order, of stage and of outcome."""
AT_ONCE = 25
"""So many of them are one test, so that all processes of a run share them."""
LOOK = 200
"""So many lives a broken engine may go unnoticed at most; from the first seed on it is some ten on average."""
TESTS = Path(__file__).parent.parent


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(n, marks=pytest.mark.xdist_group(f"lives from {n} on"))
        for n in range(1, SEEDS + 1, AT_ONCE)
    ],
)
def test_no_life_breaks_a_promise(first: int) -> None:
    attempts = 0
    for seed in range(first, first + AT_ONCE):
        life = live(seed)
        assert life.violation is None, report(seed, life.violation or "", life.tail)
        attempts += life.attempts

    assert attempts > 10 * AT_ONCE, "the simulated nodes hardly work: something keeps them from it"


def test_a_seed_is_the_same_life_wherever_it_is_lived() -> None:
    digests = [live(seed).digest for seed in (3, 4, 3, 4)]

    assert digests[:2] == digests[2:]
    assert digests[0] != digests[1]
    assert digests[:2] == _lived_elsewhere(3, 4), "sets and dicts of another process have another order"


_ELSEWHERE = """
import re, sys
from simulation.world import live

def guard(event, args):
    if event in ("os.listdir", "os.scandir", "open") and re.match("/proc/[0-9]", str(args[0])):
        raise AssertionError(f"a simulated process was looked for among the real ones: {args[0]}")

sys.addaudithook(guard)
for seed in sys.argv[1:]:
    print(live(int(seed)).digest)
"""
"""What a real process is must not matter: one that had the number of a simulated guard lived another life."""


def _lived_elsewhere(*seeds: int) -> list[str]:
    hashes = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONHASHSEED": hashes, "PYTHONPATH": path}
    command = [sys.executable, "-c", _ELSEWHERE, *map(str, seeds)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_an_engine_that_is_broken_is_found_broken(variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    # Given an engine that lacks one thing on which a promise rests
    engine, focus, first = VARIANTS[variant]
    with engine() as make_store:
        # When it lives
        seeds = range(first, first + LOOK)
        failing = next((s for s in seeds if live(s, make_store=make_store, focus=focus).violation), None)
    # Then the promise is seen to be broken, by the same seed each time
    assert failing is not None, f"{LOOK} lives of an engine with {variant!r} looked well"
    assert main(["--seed", str(failing), "--variant", variant]) == 1
    assert "FAILED: " in capsys.readouterr().out
    # And the same life goes well with the engine as it is
    assert live(failing, focus=focus).violation is None


def test_lives_have_attempts_that_exceed_their_time_limit() -> None:
    """When starts were read from the machine's clock, no attempt did, or every one on a machine just started."""
    lines: list[str] = []

    lives = [live(seed, trace=lines.append) for seed in range(51, 61)]

    overdue = [line for line in lines if "exceeds its time limit" in line]
    assert 0 < len(overdue) < sum(life.attempts for life in lives) / 10


def test_a_seed_that_fails_says_how_to_see_it_again() -> None:
    engine, _, first = VARIANTS["recovery by elapsed time"]
    with engine() as make_store:
        lives = (live(seed, make_store=make_store) for seed in range(first, first + LOOK))
        life = next(life for life in lives if life.violation is not None)

    text = report(life.seed, life.violation or "", life.tail)

    assert f"make sim SEED={life.seed}" in text
    assert life.tail[-1] in text
