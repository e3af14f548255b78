"""Bulk verbs: one verb applied to many jobs, in bounded transactions, one for each step.

Each job is changed under a savepoint of its own: a job for which the verb is refused gets its sentence and
keeps its state, and the others go through. The caller decides about the order of the jobs and the end of the
run (``spinney.features.bulk.service``); nothing is remembered here between two steps.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

from spinney.features.bulk.verb_step import VerbStep
from spinney.model.access import AccessScope
from spinney.model.jobs import JOB_ID_MAX, Filter
from spinney.model.operators.bulk_orders import Order
from spinney.model.operators.bulk_runs import BulkStep, TreePosition
from spinney.model.rights.actor import Actor
from spinney.model.states import SETTLED
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.read import access_paths, filter_queries
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import Session
from spinney.store.sql.transitions.job_operations import Operation

TRIED_S = 0.03
"""How long, in seconds, a trial keeps others from writing before it is rolled back, and how long it lets them write
before it continues in another transaction."""
_NAMED_BY = 1_000
"""From how many of the newest visible jobs a caller with limits learns the names of collections and
submitters."""


class SqlBulk:
    """Operators' verbs on many jobs, one bounded step at a time."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.perf_counter) -> None:
        self._session, self._clock = session, clock

    def apply(
        self,
        order: Order,
        job_ids: Sequence[int],
        actor: Actor,
        *,
        job_filter: Filter | None = None,
        named: Collection[int] = (),
        positions: Mapping[int, TreePosition] | None = None,
        now_us: int,
        retried: Filter | None = None,
    ) -> BulkStep:
        """Apply the order to each of these jobs (at most about 50) that allows it, and report why the others
        do not.

        ``job_filter``: the filter that found them. Jobs that do not match it any more are skipped, as are
        jobs (retry, rerun) that are superseded since a stage above them ran again, and jobs (cancel, hold) to
        which the verb was applied already. With a filter, the cancel of a job with open children is not
        refused: the job is cancelled when they have settled. ``named``: jobs that the caller named, so that they and
        the jobs below them count although they, or jobs above them, are superseded. ``positions``: what
        the step before returned, for jobs in its ``unfinished``. ``retried``: the jobs that the run retries, of those
        in ``named`` if there are any; cancelled ones wait for the jobs below them that a retry opens.

        The result names in ``instead``, for jobs of a retry that failed because of their children, the
        children to retry, and in ``unfinished`` the jobs that did not fit into the transaction. A step that
        changed something has one audit entry.
        """
        with self._session.write() as tx:
            working = VerbStep(
                tx,
                self._session,
                order,
                actor,
                job_filter,
                named,
                positions or {},
                now_us,
                self._clock,
                retried,
            )
            step = working.run(job_ids)
            if step.touched or working.moved:
                details = _given_fields(order, "verb", "reason") | {"jobs": step.touched}
                if working.unfinished:
                    details["below"] = working.unfinished
                if job_filter is not None:
                    details["which"] = _given_fields(job_filter, "ids")
                note(tx, now_us, actor, order.verb, details, len(step.touched))
        return step

    @contextmanager
    def trial(self) -> Iterator[Callable[[], bool]]:
        """Undo at the end of the block everything that was done with this store object within it.

        Other writers wait meanwhile, so call the function that the block receives between two steps: when
        others have waited for long, it rolls back what was done until then, lets them in, and returns True. A
        deletion that would take long is counted, not done.
        """
        begun = self._clock()
        with ExitStack() as trying:
            trying.enter_context(self._session.trial())

            def let_others() -> bool:
                nonlocal begun
                if self._clock() - begun <= TRIED_S:
                    return False
                trying.close()
                # As long a pause as the trial was. When others could write only one transaction between two trials,
                # a node reached an eighth of its throughput during a long dry run.
                time.sleep(TRIED_S)
                trying.enter_context(self._session.trial())
                begun = self._clock()
                return True

            yield let_others

    def failed_children(self, job_id: int, *, after: int = 0, limit: int = 50) -> list[int]:
        """Return the ids of the children because of which a job failed, or will fail, and which are to be retried in
        its place."""
        with self._session.look() as tx:
            return Operation(tx, self._session.registry, 0, "").failed_children(
                job_id, after=after, limit=limit
            )

    def trees(self, *, before: int = 0, limit: int = 100) -> list[int]:
        """Return roots of trees with more than one job, the newest first, from below ``before`` (0: from the
        last)."""
        root_ids: list[int] = []
        with self._session.look() as tx:
            while len(root_ids) < limit:
                # One entry of the index each, however many children a tree has.
                last = tx.value(
                    "select max(root_id) from jobs where parent_id is not null and root_id < ?",
                    (before or JOB_ID_MAX + 1,),
                )
                if last is None:
                    break
                before = last
                root_ids.append(last)
        return root_ids

    def stages_left(self, job_ids: Iterable[int]) -> Mapping[int, tuple[str, Sequence[str]]]:
        """Return the type of each of these jobs that is open, and the stages that it will run. Jobs of unknown types
        are left out."""
        left = {}
        with self._session.look() as tx:
            types = self._session.registry.types
            for row in (job_rows.find(tx, job_id) for job_id in job_ids):
                if row.state not in SETTLED and (spec := types.get(row.type)) is not None:
                    passed = job_rows.passed_stages(tx, row.id, spec)
                    left[row.id] = row.type, [s.name for s in spec.stages if s.name not in passed]
        return left

    def first_failure_us(self, root_id: int) -> int | None:
        """Return when the first of a tree's failed jobs settled; None where none has failed. Superseded jobs
        and those below them do not count."""
        with self._session.look() as tx:
            at_us: int | None = tx.value(
                "select min(settled_us) from jobs where state = 'failed' and "
                f"(id = ? or (parent_id is not null and root_id = ?)) and {job_rows.COUNTS_IN_TREE}",
                (root_id, root_id),
            )
            return at_us

    def names(self, kind: str, *, within: AccessScope | None = None) -> Collection[str]:
        """Return the values that a filter may have for ``queue``, ``node``, ``collection`` or ``submitter``.

        They are those of all jobs, and the declared queues. This reads all jobs, and is meant for the message
        about a filter that matched nothing. ``within``: the queues of these limits, and the collections and
        submitters of the newest thousand jobs within them.
        """
        with self._session.look() as tx:
            if kind == "queue":
                queues = None if within is None else within.queues
                return {q for q in self._session.registry.queue_names() if queues is None or q in queues}
            if kind == "node":
                return tx.column("select distinct name from nodes")
            if kind not in ("collection", "submitter"):
                raise ValueError(kind)
            if within is not None and not within.everywhere:
                newest = filter_queries.ids(tx.all, Filter(within=within), limit=_NAMED_BY, newest=True)
                listed = list_text(newest)
                sql = f"select distinct {kind} from jobs where id in (select j.value from json_each(?) j)"
                return {name for name in tx.column(sql, (listed,)) if name is not None}
            return set(access_paths.distinct(tx.all, kind, f"{kind} is not null", []))


def _given_fields(of: Order | Filter, *but: str) -> dict[str, Any]:
    """Return the fields of an order or filter that are set, without those named in ``but``, for the audit
    log."""
    return {k: v for k, v in asdict(of).items() if v is not None and v is not False and k not in but}
