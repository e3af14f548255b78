"""Which jobs match a filter, sorted lists of them, and the names that filters suggest.

No index has the time at which jobs settled or how long they ran, because settling would have to write it. So
a list is sorted among a bounded number of the newest matching jobs, and says when there are more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spinney.model.jobs import Filter
from spinney.model.states import ENDED, LEASED, State
from spinney.store import skip_scan
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.read import filter_queries
from spinney.store.sql.session import SqlPart

SORTED_MAX = 3_000
"""How many of the newest matching jobs are sorted."""
EXAMINED_MAX = 100_000
"""Among so many of the newest jobs a list looks for matches of a filter that no index answers."""
SUGGESTED_MAX = 200
"""The most names that are proposed for one field of a filter."""
_STARTED = "coalesce(jobs.started_us, l.running_us)"
"""When a job began: from its row, or while its first attempt runs from the lease, since starting does not
write the row."""
SORT_KEYS: Mapping[str, str] = {
    "type": "jobs.type",
    "queue": "jobs.queue",
    "collection": "jobs.collection",
    "submitter": "jobs.submitter",
    "priority": "jobs.priority",
    "started": _STARTED,
    "took": f"coalesce(jobs.settled_us, case when l.running_us > 0 then ? end) - {_STARTED}",
    "ended": "jobs.settled_us",
}
"""The columns by which a list can be sorted, beside that of the job's number, as SQL. For a running job, ``took`` is
the time until now, which is the value of the placeholder."""
_VALUED: Mapping[str, Sequence[Sequence[State]]] = {
    "took": ((*(state for state in ENDED if state is not State.CANCELLED), *LEASED), (State.CANCELLED,)),
    "ended": (ENDED,),
}
"""For each key of which some jobs have no value: the states of jobs that have one, in the order in which they are read.
Cancelled jobs are read last for ``took``, because most of them may never have begun. Deleted jobs are listed only where
a filter names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedIds:
    """A page of a sorted list."""

    ids: Sequence[int]
    """The ids of the jobs, in the order of the list."""
    partial: bool
    """Whether more jobs may match, of which only the newest were sorted. The page says so."""


def _valued(job_filter: Filter, key: str) -> list[tuple[State, ...]]:
    """Return the states of matching jobs that have a value of this key, in the order in which they are read; none where
    all jobs have one."""
    return [
        tuple(state for state in states if job_filter.states is None or state in job_filter.states)
        for states in _VALUED.get(key, ())
    ]


class SqlJobLists(SqlPart):
    """Reads which jobs match a filter, their order in a list, and the names that a filter may have."""

    def find(
        self,
        job_filter: Filter,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> list[int]:
        """Return the ids of matching jobs, at most ``limit``, ascending, after ``after`` and up to ``until``.

        With ``newest`` they are descending, from below ``after`` (0: from the last) and down to ``until``.
        """
        with self._session.look() as tx:
            return filter_queries.ids(
                tx.all, job_filter, after=after, until=until, limit=limit, newest=newest
            )

    def count(self, job_filter: Filter, *, most: int) -> int:
        """Count the matching jobs, but no further than ``most``."""
        with self._session.look() as tx:
            return filter_queries.count(tx.all, job_filter, most=most)

    def sorted_ids(
        self,
        job_filter: Filter,
        key: str,
        *,
        descending: bool,
        offset: int,
        limit: int,
        now_us: int,
        is_indexed: bool = True,
    ) -> SortedIds:
        """Return matching jobs by a key of ``SORT_KEYS``, jobs without a value last, the newest first
        among equals.

        Only the newest ``SORTED_MAX`` matches are sorted, and ``offset`` and ``limit`` apply to
        these; matches without a value, such as jobs that have not begun, never push out those with one.
        ``is_indexed``: an index answers the filter; otherwise only the newest ``EXAMINED_MAX``
        jobs are examined, so that a filter which matches nothing does not read the whole table.
        """
        with self._session.look() as tx:
            examined = (tx.value("select max(id) from jobs") or 0) - EXAMINED_MAX + 1
            until = 0 if is_indexed else examined
            newest: list[int] = []
            # Those with a value come first: however many newer jobs have none, not all of them are read.
            reads = [*((states, examined) for states in _valued(job_filter, key)), (job_filter.states, until)]
            for states, least in reads:
                if states != () and len(newest) <= SORTED_MAX:
                    more = filter_queries.ids(
                        tx.all,
                        replace(job_filter, states=states),
                        until=max(0, least) or None,
                        limit=SORTED_MAX + 1,
                        newest=True,
                    )
                    newest = list(dict.fromkeys([*newest, *more]))
            expression = SORT_KEYS[key]
            sql = (
                f"select id from (select jobs.id as id, {expression} as sort_key from jobs "
                "left join leases l on l.job_id = jobs.id "
                "where jobs.id in (select j.value from json_each(?) j)) keyed "
                f"order by sort_key is null, sort_key {'desc' if descending else 'asc'}, id desc limit ? offset ?"
            )
            values = [now_us] * expression.count("?")
            listed = list_text(newest[:SORTED_MAX])
            ids = tx.column(sql, [*values, listed, limit, offset])
        return SortedIds(ids=ids, partial=len(newest) > SORTED_MAX or until > 1)

    def names(self, kind: str) -> list[str]:
        """Return the first values, by name, that all jobs have as ``collection`` or ``submitter``, at
        most ``SUGGESTED_MAX``.

        Each takes one seek into the index, however many jobs have it. The values are those of all
        jobs, visible or not, so only callers without limits may see them. Raises ValueError for
        another kind.
        """
        if kind not in ("collection", "submitter"):
            raise ValueError(kind)
        sql = skip_scan.distinct("jobs", kind, f"{kind} is not null", most=SUGGESTED_MAX)
        with self._session.look() as tx:
            return tx.column(sql)
