"""Completion of plain jobs, the most frequent write: once for each job that completes.

Only the id, the start and the duration differ from job to job (and the result, if there is one); the rest is in its
lease. So with a database file those without a result are passed as one list of numbers, each of which packs three
(``_PACKED``). Executed once for each job the statement takes about the same processor time, but it releases the
interpreter's lock and waits for it each time, which costs a node an eighth of its rate."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from spinney.model.jobs import Record
from spinney.store.sql.connection.database import RowChange, Tx


class HeldLease(NamedTuple):
    """A row of ``leases``, as far as recording an outcome needs it. The order of the fields is that of
    ``recorder._LEASE``."""

    job_id: int
    fence: int
    node_id: int
    slot: int
    lane: int
    attempt: int
    parent_id: int | None
    plain: bool


LeaseRow = Sequence[Any]
"""The same as a plain row of the driver, because there are thousands a second."""

Ended = tuple[Record, LeaseRow]
"""A record, and the lease that its attempt had."""

_FIELD = 21
"""Bits for each of the three: two million ids from the first, two seconds from the earliest start and as many for an
attempt. A record that does not fit is written by itself."""
_MOST = (1 << _FIELD) - 1


def complete(tx: Tx, ended: Sequence[Ended], now_us: int) -> None:
    """Complete jobs whose last stage has simply passed. Their leases still exist: the packed statement reads
    node, fence and attempt from them, and the caller deletes them afterwards.

    The attempt is stored in the job's row (``final_…``), which is written anyway, and not in ``attempts``."""
    if tx.postgresql:
        _one_by_one(tx, ended, now_us)  # which is one statement there, too: see ``PostgresTx.change``
        return
    first_id = min([record[0] for record, _ in ended])
    first_us = min([record[3] for record, _ in ended])
    packed, others = [], []
    for entry in ended:
        job_id, _, _, began_us, ended_us, result = entry[0][:6]
        number, after_us, took_us = job_id - first_id, began_us - first_us, ended_us - began_us
        if result is None and number <= _MOST and after_us <= _MOST and 0 <= took_us <= _MOST:
            packed.append((number << _FIELD | after_us) << _FIELD | took_us)
        else:
            others.append(entry)
    if packed:
        tx.run(_PACKED, (first_us, now_us, first_id, orjson.dumps(packed).decode()))
    if others:
        _one_by_one(tx, others, now_us)


def _one_by_one(tx: Tx, ended: Sequence[Ended], now_us: int) -> None:
    tx.change(_COMPLETED, [(r[3], now_us, h[2], r[1], h[5], r[3], r[4], r[5], r[0]) for r, h in ended])


_COMPLETED = RowChange(
    "jobs",
    "id = ?",
    set="state = 'completed', attempts = 0, interruptions = 0, code = null, "
    "started_us = coalesce(started_us, ?), settled_us = ?, node_id = ?, final_fence = ?, final_attempt = ?, "
    "final_began_us = ?, final_ended_us = ?, final_result = ?",
)
# Unpacked from each number: id - ?3, start - ?1 and duration, 21 bits each; ?2 is when they settled.
_BEGAN = f"?1 + ((j.value >> {_FIELD}) & {_MOST})"
_PACKED = (
    "update jobs set state = 'completed', attempts = 0, interruptions = 0, code = null, "
    f"started_us = coalesce(started_us, {_BEGAN}), settled_us = ?2, "
    "node_id = l.node_id, final_fence = l.fence, final_attempt = l.attempt, "
    f"final_began_us = {_BEGAN}, final_ended_us = {_BEGAN} + (j.value & {_MOST}), final_result = null "
    f"from json_each(?4) j cross join leases l where l.job_id = ?3 + (j.value >> {2 * _FIELD}) "
    "and jobs.id = l.job_id"
)
