"""Figures over time: what the leader rolls up once a minute for charts, and what is read of it.

``throughput`` counts every ended attempt in slices of ten seconds and keeps them for a quarter of an hour. ``record``
sums them up by minute, and those minutes by quarter and hour, for each lane in which something happened. It also notes
how many jobs were pending and running, and how long a sample of jobs waited and ran. Every step replaces what an
earlier call wrote for the same slice, so a call that is repeated, or made by two leaders, changes nothing."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from spinney.store.sql.connection.database import Tx
from spinney.store.sql.read import duration_samples
from spinney.store.sql.record import throughput
from spinney.store.sql.session import Session

MINUTE_S, QUARTER_S, HOUR_S = 60, 900, 3600
KEPT: Mapping[int, int] = {MINUTE_S: 180, QUARTER_S: 200, HOUR_S: 400}
"""How many slices of each width are kept: 3 hours, 2 days, 16 days. So the table has at most 780 rows for a lane."""
_AGAIN = 14 * MINUTE_S
"""So much of ``throughput`` is summed up again, because a leader may have been missing for a while."""
_FIGURES = (
    "sum(h.ended), sum(h.failed), {highest}(h.pending), {highest}(h.running), "
    "sum(h.wait_s * h.ended) / nullif(sum(case when h.wait_s is not null then h.ended end), 0), "
    "sum(h.run_s * h.ended) / nullif(sum(case when h.run_s is not null then h.ended end), 0)"
)
_REPLACE = (
    "on conflict (width_s, slice, lane) do update set ended = excluded.ended, failed = excluded.failed, "
    "pending = excluded.pending, running = excluded.running, wait_s = excluded.wait_s, run_s = excluded.run_s"
)


class Figures(NamedTuple):
    """The figures of one slice or one stage."""

    ended: int
    failed: int
    pending: int
    """The highest number of each lane in it, added up."""
    running: int
    wait_s: float | None
    """How long jobs waited, on the average of the stages, weighted by their attempts; None: not measured."""
    run_s: float | None


class SqlThroughputHistory:
    """Figures over time, by lane."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def record(self, *, now_us: int) -> None:
        """Roll up what happened until the last full minute. The leader calls it once a minute."""
        minute = now_us // 1_000_000 // MINUTE_S - 1
        with self._session.look() as tx:
            observed = self._observed(tx)
        with self._session.write() as tx:
            _sum_up_minutes(tx, minute)
            tx.many(
                "insert into throughput_history (width_s, slice, lane, ended, failed, pending, running, wait_s, run_s) "
                "values (?, ?, ?, 0, 0, ?, ?, ?, ?) on conflict (width_s, slice, lane) do update set "
                "pending = excluded.pending, running = excluded.running, wait_s = excluded.wait_s, "
                "run_s = excluded.run_s",
                [(MINUTE_S, minute, lane, *figures) for lane, figures in observed.items()],
            )
            for width_s, finer_s in ((QUARTER_S, MINUTE_S), (HOUR_S, QUARTER_S)):
                _sum_up(tx, width_s, finer_s, minute * MINUTE_S)
            for width_s, kept in KEPT.items():
                oldest = minute * MINUTE_S // width_s - kept
                tx.run("delete from throughput_history where width_s = ? and slice < ?", (width_s, oldest))

    def by_slice(self, width_s: int, first: int, last: int, lanes: Collection[int]) -> Mapping[int, Figures]:
        """Return the figures of these slices over some lanes, as far as anything happened in them."""
        return self._figures("slice", width_s, first, last, lanes, highest="sum")

    def by_lane(self, width_s: int, first: int, last: int, lanes: Collection[int]) -> Mapping[int, Figures]:
        """Return the figures of some lanes over these slices."""
        return self._figures("lane", width_s, first, last, lanes, highest="max")

    def lanes(self, *, queues: Collection[str] | None = None) -> Sequence[tuple[int, str, str, str]]:
        """Return the lanes there have been: id, queue, type and stage. ``queues``: only those of these queues."""
        with self._session.look():  # which knows lanes that others have just made
            lanes = [*self._session.registry.lanes.values()]
        return [
            (lane.id, lane.queue, lane.type, lane.stage)
            for lane in lanes
            if queues is None or lane.queue in queues
        ]

    def _figures(
        self, column: str, width_s: int, first: int, last: int, lanes: Collection[int], *, highest: str
    ) -> Mapping[int, Figures]:
        sql = (
            f"select h.{column}, {_FIGURES.format(highest=highest)} from throughput_history h "
            "where h.width_s = ? and h.slice >= ? and h.slice <= ? "
            f"and h.lane in (select j.value from json_each(?) j) group by h.{column}"
        )
        with self._session.look() as tx:
            rows = tx.all(sql, (width_s, first, last, json.dumps([*lanes])))
        return {
            key: Figures(int(ended), int(failed), int(pending), int(running), wait_s, run_s)
            for key, ended, failed, pending, running, wait_s, run_s in rows
        }

    def _observed(self, tx: Tx) -> Mapping[int, tuple[int, int, float | None, float | None]]:
        """Return, by lane, how many jobs are pending and running, and the median times of its stage."""
        registry = self._session.registry
        pending = {lane: (n, lowest) for lane, n, lowest in tx.all(_PENDING)}
        running = {lane: (n, highest) for lane, n, highest in tx.all(_RUNNING)}
        fronts = [(lane, lowest) for lane, (_, lowest) in pending.items()]
        fronts += [(lane, highest + 1) for lane, (_, highest) in running.items()]
        samples = duration_samples.samples(tx, registry, fronts)
        active = {lane for (lane,) in tx.all("select distinct lane from throughput")} | {*pending, *running}
        return {
            lane: (
                pending.get(lane, _NONE)[0],
                running.get(lane, _NONE)[0],
                *_medians(samples.get((registry.lanes[lane].type, registry.lanes[lane].stage))),
            )
            for lane in active
            if lane in registry.lanes
        }


_PENDING = "select lane, count(*), min(job_id) from ready group by lane"
_RUNNING = "select lane, count(*), max(job_id) from leases where running_us is not null group by lane"
_NONE = (0, 0)


def _medians(sample: duration_samples.Sample | None) -> tuple[float | None, float | None]:
    if sample is None:
        return None, None
    return (
        None if sample.wait_s is None else sample.wait_s[0],
        None if sample.run_s is None else sample.run_s[0],
    )


def _sum_up_minutes(tx: Tx, minute: int) -> None:
    """Replace the counts of the last minutes by those of ``throughput``."""
    each = MINUTE_S * 1_000_000 // throughput.SLICE_US
    first = minute - _AGAIN // MINUTE_S + 1
    tx.run(
        "insert into throughput_history (width_s, slice, lane, ended, failed, pending, running) "
        f"select ?, t.slice / {each}, t.lane, sum(t.ended), sum(t.failed), 0, 0 from throughput t "
        f"where t.slice >= ? and t.slice < ? group by t.slice / {each}, t.lane "
        "on conflict (width_s, slice, lane) do update set ended = excluded.ended, failed = excluded.failed",
        (MINUTE_S, first * each, (minute + 1) * each),
    )


def _sum_up(tx: Tx, width_s: int, finer_s: int, until_s: int) -> None:
    """Replace the slice of this width that has the moment, and the one before, by the sums of finer slices."""
    each = width_s // finer_s
    last = until_s // width_s
    values: Sequence[Any] = (width_s, finer_s, (last - 1) * each, (last + 1) * each)
    tx.run(
        "insert into throughput_history (width_s, slice, lane, ended, failed, pending, running, wait_s, run_s) "
        f"select ?, h.slice / {each}, h.lane, {_FIGURES.format(highest='max')} from throughput_history h "
        f"where h.width_s = ? and h.slice >= ? and h.slice < ? group by h.slice / {each}, h.lane {_REPLACE}",
        values,
    )
