"""Throughput: ended attempts, counted in slices of ten seconds by lane and node.

These figures are for people only; no decision uses them. They are written with the records themselves, one row for each
lane of a flush, because counting recent attempts afterwards would need an index that every settling job has to update.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from spinney.model.jobs import Record
from spinney.model.outcomes import FAULTS, WITHOUT_RUN
from spinney.store.sql.connection.database import Tx

SLICE_US = 10_000_000
KEPT_US = 15 * 60 * 1_000_000
"""The longest window."""


class Throughput(NamedTuple):
    """The figures of one lane within a window."""

    ended: int
    failed: int


def note(
    tx: Tx, passed: Iterable[tuple[Record, Any]], others: Iterable[tuple[Record, Any]], now_us: int
) -> None:
    """Count the attempts of a flush that ended, by the leases that they had. Attempts that never began, and
    were handed back or ended with their worker or node, are not counted. ``passed``: those of the fast path,
    none of which failed."""
    ended = Counter([(lease[4], lease[2]) for _, lease in passed])
    failed: Counter[tuple[int, int]] = Counter()
    for record, lease in others:
        if record.started_us == 0 and record.outcome in WITHOUT_RUN:
            continue
        where = (lease[4], lease[2])
        ended[where] += 1
        if record.outcome in FAULTS:
            failed[where] += 1
    tx.many(
        "insert into throughput (slice, lane, node_id, ended, failed) values (?, ?, ?, ?, ?) "
        "on conflict (slice, lane, node_id) do update set ended = throughput.ended + excluded.ended, "
        "failed = throughput.failed + excluded.failed",
        [(now_us // SLICE_US, *where, n, failed[where]) for where, n in ended.items()],
    )


def lately(tx: Tx, window_us: int, now_us: int) -> tuple[Mapping[int, Throughput], float]:
    """Return what ended by lane, and within how many seconds: the window, and the part of a slice before it.
    To divide by these seconds gives the rate. The window is at most a slice less than what is kept."""
    first = (now_us - min(window_us, KEPT_US - SLICE_US)) // SLICE_US
    rows = tx.all(
        "select lane, sum(ended), sum(failed) from throughput where slice >= ? and slice <= ? group by lane",
        (first, now_us // SLICE_US),
    )
    return {lane: Throughput(*counted) for lane, *counted in rows}, (now_us - first * SLICE_US) / 1e6


def forget(tx: Tx, now_us: int) -> None:
    """Delete slices that are too old."""
    tx.run("delete from throughput where slice < ?", ((now_us - KEPT_US) // SLICE_US,))
