"""Figures over time: what the leader rolls up once a minute for charts, and what is read of it.

``throughput`` counts every ended attempt in slices of ten seconds and keeps them for a quarter of an hour.
``record`` sums them up by minute, and those minutes by quarter and hour, for each lane in which something
happened. It also notes how many jobs were pending and running, and how long a sample of jobs waited and ran.
Quarters and hours have averages of these numbers, because averages of lanes add up, as maxima do not.

Every step replaces what an earlier call wrote for the same slice, so a call that is repeated, or made by two
leaders, changes nothing. A leader that was away for less than a quarter of an hour loses no attempt, since
the counts are still in ``throughput``; depths and times of the minutes that it missed are lost, because they
can only be observed.

A slice is a number: seconds since 1970 divided by its width. A row of ``NO_LANE`` says that somebody recorded
a slice: an idle slice has zeros, a missed one no figures.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from spinney.store.sql.connection.database import Tx
from spinney.store.sql.read import duration_samples
from spinney.store.sql.record import throughput
from spinney.store.sql.session import SqlPart
from spinney.store.sql.transitions import trusted_clock

MINUTE_S, QUARTER_S, HOUR_S = 60, 900, 3600
"""The widths of slices, in seconds."""
KEPT: Mapping[int, int] = {MINUTE_S: 180, QUARTER_S: 200, HOUR_S: 400}
"""How many slices of each width are kept: 3 hours, 2 days, 16 days. So the table has at most 780 rows for a lane."""
_AGAIN = 14 * MINUTE_S
"""How many seconds of ``throughput`` are summed up again, because a leader may have been missing for a while.
One minute less than ``throughput`` keeps, so that no minute is replaced by the part of it that is left there.
"""
NO_LANE = 0
"""The lane of the rows that say which slices were recorded."""
_TIMES = (
    "sum(h.wait_s * h.ended) / nullif(sum(case when h.wait_s is not null then h.ended end), 0), "
    "sum(h.run_s * h.ended) / nullif(sum(case when h.run_s is not null then h.ended end), 0)"
)
"""The mean of wait and run times, weighted by attempts. Rows without a time must not count in the divisor; a
slice without any time has none."""
_REPLACE = (
    "on conflict (width_s, slice, lane) do update set ended = excluded.ended, failed = excluded.failed, "
    "pending = excluded.pending, running = excluded.running, wait_s = excluded.wait_s, run_s = excluded.run_s"
)
"""Replaces all figures of a slice, so that summing up twice changes nothing."""


class Figures(NamedTuple):
    """The figures of one slice or one stage."""

    ended: int
    """How many attempts ended that had begun, whatever they ended with."""
    failed: int
    """How many of them ended with an error, at a time limit, or by the death of their worker or node."""
    pending: float | None
    """How many jobs were pending on average; None: nobody counted."""
    running: float | None
    """How many jobs ran on average; None: nobody counted."""
    wait_s: float | None
    """How long jobs waited, in seconds: the mean of the medians of the stages, weighted by their
    attempts; None: not measured."""
    run_s: float | None
    """How long attempts ran, in seconds, averaged as ``wait_s`` is; None: not measured."""


class SqlThroughputHistory(SqlPart):
    """Read and write figures over time for each lane: attempts that ended and failed, jobs pending and
    running, times waited and run. Slices are named by their width in seconds and their number."""

    def record(self, *, now_us: int) -> None:
        """Roll up what happened until the last full minute, and delete what is older than ``KEPT``
        unless the clock has jumped ahead (``spinney.model.trusted_clock``).

        The leader calls it once a minute. Depths and times are read before the transaction that
        writes, so that sampling, the slow part, does not keep other writers waiting on SQLite; they
        are those of this moment, and are written to the minute that has just ended.
        """
        minute = now_us // 1_000_000 // MINUTE_S - 1
        with self._session.look() as tx:
            observed = self._observed(tx)
        with self._session.write() as tx:
            _sum_up_minutes(tx, minute)
            tx.many(
                "insert into throughput_history (width_s, slice, lane, ended, failed, pending, running, wait_s, run_s) "
                # An existing row has the counts that _sum_up_minutes has just written: they stay.
                "values (?, ?, ?, 0, 0, ?, ?, ?, ?) on conflict (width_s, slice, lane) do update set "
                "pending = excluded.pending, running = excluded.running, wait_s = excluded.wait_s, "
                "run_s = excluded.run_s",
                [(MINUTE_S, minute, lane, *figures) for lane, figures in observed.items()],
            )
            for width_s in (QUARTER_S, HOUR_S):
                _sum_up(tx, width_s, minute * MINUTE_S)
            if trusted_clock.observe(tx, now_us).jumped_us is not None:
                return
            for width_s, kept in KEPT.items():
                oldest = minute * MINUTE_S // width_s - kept
                tx.run("delete from throughput_history where width_s = ? and slice < ?", (width_s, oldest))

    def by_slice(self, width_s: int, first: int, last: int, lanes: Collection[int]) -> Mapping[int, Figures]:
        """Return the figures of the slices ``first`` to ``last`` (inclusive), each summed over these
        lanes.

        A slice that was not recorded is missing; one in which the lanes were idle has zeros.
        """
        figures = self._figures("h.slice", width_s, first, last, [NO_LANE, *lanes])
        return {slice_: each for (slice_,), each in figures.items()}

    def by_stage(
        self, width_s: int, first: int, last: int, lanes: Collection[int]
    ) -> Mapping[tuple[str, str], Figures]:
        """Return the figures of each stage, by type and stage, over the slices ``first`` to ``last`` (inclusive) and
        those of these lanes that are its own.

        Jobs pending and running are averages over the slices that were recorded, also those in which
        a lane has no row because nothing was in it. A stage without any row is missing.
        """
        join = "left join lanes on lanes.id = h.lane"
        figures = self._figures("lanes.type, lanes.stage", width_s, first, last, lanes, join)
        sql = "select count(*) from throughput_history where width_s = ? and slice >= ? and slice <= ? and lane = ?"
        with self._session.look() as tx:
            recorded = tx.value(sql, (width_s, first, last, NO_LANE))

        def average(total: float | None) -> float | None:
            return (total or 0) / recorded if recorded else None

        return {
            (type_, stage): each._replace(pending=average(each.pending), running=average(each.running))
            for (type_, stage), each in figures.items()
        }

    def lanes(self, *, queues: Collection[str] | None = None) -> Sequence[tuple[int, str, str]]:
        """Return the lanes there have ever been: id, queue and type. ``queues``: only those of these queues."""
        with self._session.look():  # which knows lanes that others have just made
            lanes = [*self._session.registry.lanes.values()]
        return [(lane.id, lane.queue, lane.type) for lane in lanes if queues is None or lane.queue in queues]

    def _figures(
        self, columns: str, width_s: int, first: int, last: int, lanes: Collection[int], join: str = ""
    ) -> Mapping[tuple[Any, ...], Figures]:
        """Return the sums over these slices and lanes, by the values of ``columns`` of ``h`` and of what is joined.

        The primary key begins with width and slice. Lanes are a JSON list, because there may be more
        of them than a statement may have parameters.
        """
        sql = (
            f"select sum(h.ended), sum(h.failed), sum(h.pending), sum(h.running), {_TIMES}, {columns} "
            f"from throughput_history h {join} where h.width_s = ? and h.slice >= ? and h.slice <= ? "
            f"and h.lane in (select j.value from json_each(?) j) group by {columns}"
        )
        with self._session.look() as tx:
            rows = tx.all(sql, (width_s, first, last, json.dumps([*lanes])))
        return {
            tuple(key): Figures(int(ended), int(failed), pending, running, wait_s, run_s)
            for ended, failed, pending, running, wait_s, run_s, *key in rows
        }

    def _observed(self, tx: Tx) -> Mapping[int, tuple[int, int, float | None, float | None]]:
        """Return, by lane, how many jobs are pending and running, and the median times of its stage
        in its queue.

        Only lanes in which there is or was something lately are listed, and ``NO_LANE``, which marks
        the minute as recorded.
        """
        registry = self._session.registry
        pending = {lane: (n, lowest) for lane, n, lowest in tx.all(_PENDING)}
        running = {lane: (n, highest) for lane, n, highest in tx.all(_RUNNING)}
        fronts = [(lane, lowest) for lane, (_, lowest) in pending.items()]
        fronts += [(lane, highest + 1) for lane, (_, highest) in running.items()]
        samples = duration_samples.samples_by_queue(tx, registry, fronts)
        active = {*tx.column("select distinct lane from throughput"), *pending, *running}
        lanes = [registry.lanes[lane] for lane in active if lane in registry.lanes]
        return {NO_LANE: (0, 0, None, None)} | {
            lane.id: (
                pending.get(lane.id, _NONE)[0],
                running.get(lane.id, _NONE)[0],
                *_medians(samples.get((lane.queue, lane.type, lane.stage))),
            )
            for lane in lanes
        }


_PENDING = "select lane, count(*), min(job_id) from ready group by lane"
"""The pending jobs of each lane and the lowest id among them: just below it are the jobs that were done last."""
_RUNNING = "select lane, count(*), max(job_id) from leases where running_us is not null group by lane"
"""The attempts of each lane that have begun and the highest job id among them, from where the sample looks
downwards."""
_NONE = (0, 0)


def _medians(sample: duration_samples.Sample | None) -> tuple[float | None, float | None]:
    if sample is None:
        return None, None
    return (
        None if sample.wait_s is None else sample.wait_s[0],
        None if sample.run_s is None else sample.run_s[0],
    )


def _sum_up_minutes(tx: Tx, minute: int) -> None:
    """Replace the counts of the last minutes by those of ``throughput``; other figures of these minutes
    stay."""
    # Ten-second slices in a minute. Whole minutes only: the current one is still being counted.
    each = MINUTE_S * 1_000_000 // throughput.SLICE_US
    first = minute - _AGAIN // MINUTE_S + 1
    tx.run(
        "insert into throughput_history (width_s, slice, lane, ended, failed) "
        f"select ?, t.slice / {each}, t.lane, sum(t.ended), sum(t.failed) from throughput t "
        f"where t.slice >= ? and t.slice < ? group by t.slice / {each}, t.lane "
        "on conflict (width_s, slice, lane) do update set ended = excluded.ended, failed = excluded.failed",
        (MINUTE_S, first * each, (minute + 1) * each),
    )


def _sum_up(tx: Tx, width_s: int, until_s: int) -> None:
    """Replace the slice of this width that contains ``until_s``, and the one before, by the sums of its
    minutes.

    The one before is summed up again because its last minute may have been recorded only after it ended.
    Averages are over the minutes that were recorded (the subquery ``r``), and not over those in which a
    lane has a row: a lane that was busy for one minute of an hour has a sixtieth of that minute's depth.
    """
    each = width_s // MINUTE_S
    last = until_s // width_s
    minutes = (MINUTE_S, (last - 1) * each, (last + 1) * each)
    within = "h.width_s = ? and h.slice >= ? and h.slice < ?"
    average = "coalesce(sum(h.{}), 0) / nullif(max(r.minutes), 0)"
    tx.run(
        "insert into throughput_history (width_s, slice, lane, ended, failed, pending, running, wait_s, run_s) "
        f"select ?, h.slice / {each}, h.lane, sum(h.ended), sum(h.failed), {average.format('pending')}, "
        f"{average.format('running')}, {_TIMES} from throughput_history h "
        f"left join (select h.slice / {each} as slice, 1.0 * count(*) as minutes from throughput_history h "
        f"where {within} and h.lane = {NO_LANE} group by h.slice / {each}) r on r.slice = h.slice / {each} "
        f"where {within} group by h.slice / {each}, h.lane {_REPLACE}",
        (width_s, *minutes, *minutes),
    )
