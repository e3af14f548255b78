"""How long a small batch takes behind somebody's big one in the same queue."""

import time
from collections.abc import Mapping

from benchmarks.place import Site, site

SMALL, BIG, SECONDS = 50, 5_000, 0.005
LOOK_S = 0.02


def behind_a_big_batch() -> Mapping[str, float]:
    """Time of 50 jobs of 5 ms behind 5,000, over their time alone, by number of slots.

    With equal shares and work that fills all slots, two batches side by side take twice the time by
    arithmetic; with more slots than the small batch has jobs it need not wait at all.
    """
    times = {}
    for kind, slots in (("nap", 2), ("doze", 32), ("doze", 128), ("rest", 128)):
        with site() as here, here.node(slots=slots):
            app = here.app()
            app.submit_many(kind, [{"seconds": SECONDS}] * 200)
            here.wait_settled()
            alone = min(_batch_ms(here, app, kind) for _ in range(3))
            app.submit_many(kind, [{"seconds": SECONDS}] * BIG)
            behind = _batch_ms(here, app, kind)
            here.wait_settled()
            app.close()
        times |= {f"{slots} x {kind}: alone ms": alone, f"{slots} x {kind}: times as long": behind / alone}
    return times


def _batch_ms(here: Site, app, kind: str) -> float:  # type: ignore[no-untyped-def]
    first, *_, last = app.submit_many(kind, [{"seconds": SECONDS}] * SMALL)
    while True:
        time.sleep(LOOK_S)
        with here.store.database.look() as tx:
            ((count, begun, ended),) = tx.all(
                "select count(settled_us), min(created_us), max(settled_us) from jobs where id between ? and ?",
                (first, last),
            )
        if count == SMALL:
            return float((ended - begun) / 1e3)
