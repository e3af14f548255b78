"""How long a small batch takes behind somebody's big one in the same queue."""

from collections.abc import Mapping

from benchmarks.place import Site, site
from spinney.stores.sql.reading import rows_of

SMALL, BIG, SECONDS = 50, 5_000, 0.005


def behind_a_big_batch() -> Mapping[str, float]:
    """Time of 50 jobs of 5 ms behind 5,000, over their time alone, by number of slots.

    With equal shares and work that fills all slots, two batches side by side take twice the time by
    arithmetic; with more slots than the small batch has jobs it need not wait at all.
    """
    found = {}
    for kind, slots in (("nap", 2), ("doze", 32), ("doze", 128)):
        with site() as here, here.node(slots=slots):
            app = here.app()
            app.submit_many(kind, [{"seconds": SECONDS}] * 200)
            here.wait_settled(200)
            alone = min(_batch_ms(here, app, kind, 200 + n * SMALL) for n in range(3))
            done = 200 + 3 * SMALL
            app.submit_many(kind, [{"seconds": SECONDS}] * BIG)
            behind = _batch_ms(here, app, kind, done, big=BIG)
            here.wait_settled(done + BIG + SMALL)
            app.close()
        found |= {f"{slots} slots: alone ms": alone, f"{slots} slots: times as long": behind / alone}
    return found


def _batch_ms(here: Site, app, kind: str, done: int, big: int = 0) -> float:  # type: ignore[no-untyped-def]
    first, *_, last = app.submit_many(kind, [{"seconds": SECONDS}] * SMALL)
    here.wait_settled(done + SMALL)
    while True:
        with here.store.database.read() as connection:
            ((count, begun, ended),) = rows_of(
                connection,
                "select count(settled_us), min(created_us), max(settled_us) from jobs where id between ? and ?",
                (first, last),
            )  # fmt: skip
        if count == SMALL:
            return float((ended - begun) / 1e3)
