"""``make sim``: many lives on all cores, or one again, told from its beginning.

python -m simulation --seeds 100000 [--first 1]
python -m simulation --seed 12345 [--variant "no fence"]
"""

import argparse
import math
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from .variants import VARIANTS
from .world import live

_AT_ONCE = 250
"""Seeds that one process lives through, at most."""
_SAY_S = 10.0
FOUND = "FAILED"


def main(args: Sequence[str]) -> int:
    """Returns the exit code: 1 when a seed failed."""
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many lives")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="this one alone, told")
    parser.add_argument(
        "--variant", choices=sorted(VARIANTS), help="with an engine that is broken on purpose"
    )
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(args)
    if arguments.seed is not None:
        return _one(arguments.seed, arguments.variant)
    if arguments.part:
        return _part(arguments.first, arguments.seeds)
    return _many(arguments.first, arguments.seeds)


def _one(seed: int, variant: str | None) -> int:
    if variant is None:
        life = live(seed, trace=print)
    else:
        with VARIANTS[variant].engine() as make_store:
            life = live(seed, make_store=make_store, focus=VARIANTS[variant].focus, trace=print)
    print(
        f"seed {seed}: {life.jobs} jobs, {life.attempts} attempts, {life.seconds:.1f} s of virtual time, "
        f"digest {life.digest[:16]}"
    )
    if life.violation is not None:
        print(f"{FOUND}: {life.violation}")
    return int(life.violation is not None)


def _part(first: int, seeds: int) -> int:
    """In a process of its own; its lines are for ``_many``."""
    for seed in range(first, first + seeds):
        life = live(seed)
        if life.violation is not None:
            print(report(life.seed, life.violation, life.tail), flush=True)
        print(f"seed {seed} {life.attempts}", flush=True)
    return 0


def _many(first: int, seeds: int) -> int:
    at_once = max(1, min(_AT_ONCE, math.ceil(seeds / len(os.sched_getaffinity(0)))))
    parts = iter([(n, min(at_once, first + seeds - n)) for n in range(first, first + seeds, at_once)])
    began = last_report = time.monotonic()
    done = attempts = failed = 0
    for line in _lines(parts):
        if line.startswith("seed "):
            done, attempts = done + 1, attempts + int(line.split()[2])
        else:
            failed += line.startswith(FOUND)
            print(line, flush=True)
        if time.monotonic() > last_report + _SAY_S:
            last_report = time.monotonic()
            print(f"{done} of {seeds} lives, {attempts} attempts, {failed} failed", flush=True)
    took_s = time.monotonic() - began
    print(f"{done} of {seeds} lives, {attempts} attempts, {failed} failed, {took_s:.0f} s")
    return int(failed > 0 or done < seeds)


def _lines(parts: Iterator[tuple[int, int]]) -> Iterator[str]:
    """What the processes say that work off these parts, one for each core."""
    running = selectors.DefaultSelector()

    def start() -> None:
        part = next(parts, None)
        if part is None:
            return
        command = [
            sys.executable,
            "-m",
            "simulation",
            "--part",
            "--first",
            str(part[0]),
            "--seeds",
            str(part[1]),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        running.register(process.stdout, selectors.EVENT_READ, process)

    for _ in range(len(os.sched_getaffinity(0))):
        start()
    while running.get_map():
        for key, _ in running.select():
            line = key.fileobj.readline()  # type: ignore[union-attr]
            if line:
                yield line.rstrip("\n")
                continue
            running.unregister(key.fileobj)
            if key.data.wait() != 0:
                yield f"{FOUND}: a process of the simulation ended with {key.data.returncode}"
            start()


def report(seed: int, violation: str, tail: Sequence[str]) -> str:
    """What to say of a seed that failed, and how to see it again."""
    last = "\n".join(f"    {line}" for line in tail[-25:])
    return f"{FOUND}: seed {seed}: {violation}\n  its last steps:\n{last}\n  again with: make sim SEED={seed}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
