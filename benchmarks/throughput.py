"""How many small jobs a second go in and through, and what the supervisor weighs afterwards."""

import time
from collections.abc import Mapping

from benchmarks.place import percentile, site

JOBS = 100_000
STEPS = 20_000
"""Jobs of three stages."""
ROWS = [{"text": f"{n:036d}"} for n in range(JOBS)]
"""``{"text":"…"}``: 50 bytes of JSON."""


def bulk_submit() -> Mapping[str, float]:
    """Jobs a second of one call, validated, durable, nobody running them."""
    with site() as here:
        app = here.app()
        begun = time.perf_counter()
        app.submit_many("noop", ROWS)
        taken = time.perf_counter() - begun
        app.close()
    return {"jobs/s": JOBS / taken}


def drain() -> Mapping[str, float]:
    """Jobs a second through warm worker processes: from the first start to the last settlement, by the
    store's own record of them; and the supervisor's memory after them, and after as many again."""
    with site() as here, here.node(slots=2) as supervisor:
        app = here.app()
        # One list before, so that the workers are warm and their run time is known.
        app.submit_many("noop", ROWS[:2000])
        here.wait_settled()
        rates, memory = [], []
        for round_ in (1, 2, 3):
            app.submit_many("noop", ROWS)
            here.wait_settled()
            rates.append(here.rate(2000 + (round_ - 1) * JOBS))
            memory.append(supervisor.memory_info().rss / 2**20)
        app.close()
    return {
        "jobs/s": percentile(rates, 0.5),
        "supervisor MB after 100k": memory[0],
        "supervisor MB after 300k": memory[2],
    }


def drain_of_stages() -> Mapping[str, float]:
    """Stages a second of jobs with three stages, through warm worker processes."""
    with site() as here, here.node(slots=2):
        app = here.app()
        app.submit_many("steps", ROWS[:1000])
        here.wait_settled()
        app.submit_many("steps", ROWS[:STEPS])
        here.wait_settled()
        rate = here.rate(1000)
        app.close()
    return {"stages/s": 3 * rate}
