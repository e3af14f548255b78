"""Failed jobs grouped by their cause, read from the rows that ``spinney.store.sql.transitions.failures``
writes.

``inactive_jobs.fingerprint`` has the cause of each job that is failed now by an attempt of its own;
``failures`` has one row for each fingerprint, with its words and times. So a group is counted from the first
and described by the second, and a job leaves its group when its row in ``inactive_jobs`` is deleted or
written anew.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.model.access import AccessScope
from spinney.model.attempts.failure_groups import Failure, FailureGroups
from spinney.model.attempts.failures import DIGITS, Cause
from spinney.model.errors import Refused, UsageError
from spinney.model.jobs import Filter
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import SqlPart


class SqlFailures(SqlPart):
    """Failed jobs, grouped by the fingerprint of their cause."""

    def groups(
        self,
        *,
        type_: str | None = None,
        limit: int = 100,
        within: AccessScope | None = None,
        root_id: int | None = None,
    ) -> FailureGroups:
        """Return the groups that have jobs now, the largest first, at most ``limit``, with the number of jobs
        and causes in all.

        ``type_``: only of this job type. ``within``: only jobs within these limits; ``root_id``: only jobs of one
        tree, without superseded ones and those below them, which no longer count in it. The times of a group are then
        those of these jobs, else those of every job that ever failed so. ``consequences`` counts jobs that failed
        because of another one, and have no cause of their own.
        """
        if root_id is not None or (within is not None and not within.everywhere):
            return self._groups_among(Filter(type=type_, within=within, root_id=root_id), limit)
        with self._session.look() as tx:
            rows = tx.all(
                "select f.fingerprint, f.type, f.stage, f.exception, f.message, f.first_us, f.last_us, c.jobs from "
                "(select p.fingerprint, count(*) as jobs from inactive_jobs p where p.fingerprint is not null "
                "group by p.fingerprint) c join failures f on f.fingerprint = c.fingerprint "
                "where (cast(?1 as text) is null or f.type = ?1) order by c.jobs desc, f.last_us desc, f.fingerprint",
                (type_,),
            )
            if type_ is None:
                consequences = _failed_jobs(tx) - sum(row[-1] for row in rows)
            else:
                consequences = _consequences(tx, type_)
        return _grouped(rows, consequences, limit)

    def _groups_among(self, job_filter: Filter, limit: int) -> FailureGroups:
        """Return the groups of the failed jobs that match, counted from the jobs themselves. For one tree
        only the range of its ids is read.

        The ``cross join`` makes SQLite begin with ``inactive_jobs``, which has no row of a completed job.
        """
        where, args = _within(job_filter)
        with self._session.look() as tx:
            if job_filter.root_id is not None:
                # Jobs below a job were created after it: other jobs need not be read.
                last = tx.value(_LAST_OF_TREE, (job_filter.root_id,)) or job_filter.root_id
                where = f"{where} and p.job_id between ? and ? and {job_rows.COUNTS_IN_TREE}"
                args = [*args, job_filter.root_id, last]
            rows = tx.all(
                "select f.fingerprint, f.type, f.stage, f.exception, f.message, c.first_us, c.last_us, c.jobs from "
                "(select p.fingerprint, count(*) as jobs, min(jobs.settled_us) as first_us, "
                "max(jobs.settled_us) as last_us from inactive_jobs p cross join jobs where p.fingerprint "
                f"is not null{where} "
                "group by p.fingerprint) c join failures f on f.fingerprint = c.fingerprint "
                "order by c.jobs desc, c.last_us desc, f.fingerprint",
                args,
            )
            consequences: int = tx.value(
                "select count(*) from inactive_jobs p cross join jobs where p.state in ('failed', 'orphaned') "
                f"and p.fingerprint is null{where}",
                args,
            )
        return _grouped(rows, consequences, limit)

    def of(self, job_ids: Sequence[int]) -> Mapping[int, Cause]:
        """Return the causes of those of these jobs that are failed by an attempt of their own, by job."""
        with self._session.look() as tx:
            rows = tx.all(
                "select p.job_id, f.fingerprint, f.type, f.stage, f.exception, f.message from inactive_jobs p "
                "join failures f on f.fingerprint = p.fingerprint "
                "where p.job_id in (select j.value from json_each(?) j)",
                (list_text(job_ids),),
            )
        return {job_id: Cause(**dict(zip(_CAUSE, cause, strict=True))) for job_id, *cause in rows}

    def find(self, beginning: str, *, within: AccessScope | None = None) -> str:
        """Return the only fingerprint with this beginning that has jobs (``within`` these limits). Case and a final
        "…", as tables show it, do not matter.

        Raises Refused when there is none or more than one, and UsageError when no fingerprint can begin so.
        """
        text = beginning.rstrip("…").lower()
        if not text or len(text) > DIGITS or set(text) - set("0123456789abcdef"):
            raise UsageError(
                f"{beginning!r} is no failure's fingerprint; it has up to {DIGITS} hexadecimal digits, and "
                f"'spinney failures' lists them all"
            )
        where, args = _within(Filter(within=within))
        jobs = f"inactive_jobs p{' cross join jobs' if where else ''} where p.fingerprint = failures.fingerprint{where}"
        with self._session.look() as tx:
            rows = tx.all(
                "select fingerprint from failures where fingerprint >= ? and fingerprint < ? and exists "
                f"(select 1 from {jobs}) order by fingerprint limit 3",
                (text, f"{text}g", *args),
            )
        if not rows:
            raise Refused(f"no failed job has the failure {text!r}; 'spinney failures' lists them all")
        if len(rows) > 1:
            named = ", ".join(mark for (mark,) in rows[:2]) + (", …" if len(rows) > 2 else "")
            raise Refused(f"more than one failure begins with {text!r}: {named}; give more of its digits")
        return str(rows[0][0])


# By lineage, so that the index is scanned, not sorted.
_LAST_OF_TREE = "select max(id + 0) from jobs where parent_id is not null and root_id = ?"


def _within(job_filter: Filter) -> tuple[str, list[Any]]:
    """Return the conditions on the row of ``jobs`` beside that of ``inactive_jobs``, each with "and" before
    it, and their binds; empty when everything is to be counted."""
    where, args = filter_queries.conditions(job_filter)
    return "".join(f" and {condition}" for condition in ["jobs.id = p.job_id", *where]) if where else "", args


def _grouped(rows: Sequence[Any], consequences: int, limit: int) -> FailureGroups:
    """Return the first ``limit`` of the groups, which have all of these rows."""
    return FailureGroups(
        jobs=sum(row[-1] for row in rows),
        causes=len(rows),
        consequences=consequences,
        items=[Failure(**dict(zip(_FIELDS, row, strict=True))) for row in rows[:limit]],
    )


def _failed_jobs(tx: Tx) -> int:
    """Return how many jobs are failed or orphaned, counted by an index."""
    return int(tx.value("select count(*) from inactive_jobs where state in ('failed', 'orphaned')"))


def _consequences(tx: Tx, type_: str) -> int:
    """Return how many jobs of a type are failed or orphaned without a cause of their own."""
    sql = (
        "select count(*) from inactive_jobs p join jobs on jobs.id = p.job_id "
        "where p.state in ('failed', 'orphaned') and p.fingerprint is null and jobs.type = ?"
    )
    return int(tx.value(sql, (type_,)))


_CAUSE = ("fingerprint", "type", "stage", "exception", "message")
_FIELDS = (*_CAUSE, "first_us", "last_us", "jobs")
