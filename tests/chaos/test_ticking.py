"""Kill -9 of whoever makes the jobs of schedules, in a loop: no time is left out, and none comes twice."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from long_tests import LONG
from spinney.features.schedules.due_times_sql import RUNS_KEPT
from spinney.model.jobs import Filter
from spinney.model.rights.actor import Actor
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import open_store

ROUNDS = 15 * int(os.environ.get("SPINNEY_CHAOS_ROUNDS", "100" if LONG else "1"))
SEED = int(os.environ.get("SPINNEY_CHAOS_SEED", str(random.randrange(10**6))))
START_US = 1_700_000_000_000_000
SECONDS = RUNS_KEPT - 1
"""So many times has each schedule, so that all of them are remembered."""
EACH = 6 if LONG else 3
BEGUN, FINISHED = b"b", b"f"
NAMES = [f"allow-{n}" for n in range(EACH)] + [f"queue-{n}" for n in range(EACH)]


@pytest.mark.timeout(60 + ROUNDS)
def test_a_ticker_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    print(f"SPINNEY_CHAOS_SEED={SEED}")
    draw = random.Random(SEED)
    url = f"sqlite:///{tmp_path}/spinney.db"
    store = open_store(url)
    store.create()
    store.register([TypeSpec(name="one", stages=(StageSpec(name="work"),))], [])
    actor = Actor(by="ann", call="c")
    for name in NAMES:
        overlap = Overlap(name.partition("-")[0])
        schedule = Schedule(name=name, type="one", every_s=1, overlap=overlap, catch_up=CatchUp.ALL)
        store.schedules.put(schedule, actor, now_us=START_US)
    store.close()  # before anybody forks
    # When two at a time decide what is due, a little more each round, and are killed in the midst of it
    cut_off = 0
    for number in range(1, ROUNDS + 1):
        due_us = START_US + SECONDS * 1_000_000 * number // ROUNDS
        tickers = [_ticker(url, due_us, pauses=number == 1) for _ in range(2)]
        for pid, signs in tickers:
            # About half of them die as they begin, the others a moment later.
            assert os.read(signs, 1) == BEGUN
            time.sleep(draw.choice([0.0, 0.0, 0.01, 0.03]))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            cut_off += FINISHED not in os.read(signs, 1)
            os.close(signs)
        if number == 1:  # Then they are killed in the midst of it, however slow this machine is.
            store = open_store(url)
            decided = [len(store.schedules.runs(name, limit=RUNS_KEPT)) for name in NAMES]
            store.close()
            assert 0 < sum(map(bool, decided)) < len(NAMES), decided
    print(f"{cut_off} of {2 * ROUNDS} were killed in the midst of it")
    # Then, when the rest has been decided, every second has been decided once
    store = open_store(url)
    while store.schedules.tick(now_us=START_US + SECONDS * 1_000_000):
        pass
    ids: list[int] = []
    for name in NAMES:
        runs = list(reversed(store.schedules.runs(name, limit=RUNS_KEPT)))
        assert [r.nominal_us for r in runs] == [START_US + n * 1_000_000 for n in range(1, SECONDS + 1)]
        made = [r.job_id for r in runs if r.job_id is not None]
        assert len(made) == (SECONDS if name.startswith("allow") else 1)
        assert {store.get_data(job_id)["schedule"]["name"] for job_id in made[:: SECONDS // 20]} == {name}
        ids += made
    # And there is no job but those
    assert sorted(ids) == [job.id for job in store.jobs(Filter(), limit=100_000)]
    store.close()


def _ticker(url: str, now_us: int, *, pauses: bool) -> tuple[int, int]:
    """A process that ticks until nothing is due and then waits; its number, and a pipe with a sign when it begins and
    one when it has finished. ``pauses``: it waits after the first tick that decides something, says only then that it
    has begun, and never finishes. Forked, because starting one takes longer than ticking."""
    signs, signs_in = os.pipe()
    pid = os.fork()
    if pid:
        os.close(signs_in)
        return pid, signs
    try:
        store = open_store(url)
        if not pauses:
            os.write(signs_in, BEGUN)
        while store.schedules.tick(now_us=now_us):
            if pauses:
                os.write(signs_in, BEGUN)
                signal.pause()
        os.write(signs_in, FINISHED)
        signal.pause()
    finally:
        os._exit(0)
