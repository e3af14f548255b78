"""Jobs of a flush that have rows in other tables. They are not plain: their records change more than their own rows.

Most of these tables are empty most of the time, and then no job is looked up in them.
"""

from collections.abc import Sequence

from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome
from spinney.store.sql.connection.database import Tx, list_text

TREES_MOST = 100
"""With more cancel requests for trees than that, all jobs count as special: each request is compared with each job."""
_FILLED = (
    "select exists(select 1 from needs), exists(select 1 from cancel_requests), exists(select 1 from locks), "
    "exists(select 1 from staging), exists(select 1 from children_left), exists(select 1 from serial_order), "
    f"(select count(*) from (select 1 from cancel_requests where tree = 1 limit {TREES_MOST + 1}) trees)"
)
_BELOW_A_CANCEL_REQUEST = (
    "select jobs.id from jobs where jobs.id in (select j.value from json_each(?1) j) and jobs.parent_id is not null "
    "and exists (select 1 from cancel_requests w where w.tree = 1 "
    "and jobs.lineage > w.lineage || '.' and jobs.lineage < w.lineage || '/')"
)


def among(tx: Tx, records: Sequence[Record]) -> tuple[set[int], bool]:
    """Return the jobs of these records that have such rows, and whether any job of the store needs another."""
    needs, cancel_requests, locks, staged, children, serial, trees = tx.one(_FILLED)
    if trees > TREES_MOST:
        return {r.job_id for r in records}, bool(needs)
    look_ups = (
        (
            cancel_requests,
            "select job_id from cancel_requests where job_id in (select j.value from json_each(?1) j)",
        ),
        (trees, _BELOW_A_CANCEL_REQUEST),
        (needs, "select need_id from needs where need_id in (select j.value from json_each(?1) j)"),
        (
            # A job that it needs may have been opened again since the claim: then it does not become ready again,
            # but waits.
            needs and any(r[2] is Outcome.RETURNED for r in records),
            "select job_id from needs where job_id in (select j.value from json_each(?1) j)",
        ),
        (locks, "select job_id from locks where job_id in (select j.value from json_each(?1) j)"),
        (staged, "select parent_id from staging where parent_id in (select j.value from json_each(?1) j)"),
        (
            children,
            "select j.value from json_each(?1) j where exists "
            "(select 1 from children_left c where c.parent_id = j.value)",
        ),
        (
            # Their tree may have become serial after they were created.
            serial,
            "select j.value from json_each(?1) j where exists (select 1 from serial_order s "
            "where s.root_id = (select jobs.root_id from jobs where jobs.id = j.value))",
        ),
    )
    sql = " union ".join(select for filled, select in look_ups if filled)
    special = set(tx.column(sql, (list_text([r.job_id for r in records]),))) if sql else set()
    return special, bool(needs)
