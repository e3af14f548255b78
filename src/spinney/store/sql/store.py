"""The contract on SQL: each method runs a transaction around the module that implements it.

The contract's docstrings (``spinney.store.contract``) hold here; those below say only what is particular to
SQL. The methods that create jobs are in ``submit.submissions``, requests of running attempts in
``transitions.attempts``, and those that read jobs in ``read.job_queries``; features' parts are attributes
(``spinney.store.parts``).

What changes jobs is imported by the methods that do so: most commands only read, and would wait for it."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from spinney.model.errors import Refused, StoreReplaced, UsageError
from spinney.model.fleet import Load
from spinney.model.jobs import (
    ClaimRequest,
    FlushResult,
    NodeInfo,
    Reconciliation,
    Record,
)
from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.queues import QueueSpec
from spinney.model.types import TypeSpec
from spinney.model.values.store_urls import database_file, is_postgres, without_password
from spinney.store.contract import (
    Leadership,
    Listener,
    SweepResult,
)
from spinney.store.parts import Parts
from spinney.store.sql.claim.rotation import Rotation
from spinney.store.sql.connection.database import Database, RowChange, Tx, list_text
from spinney.store.sql.connection.sqlite import CACHE_KIB, SqliteDatabase
from spinney.store.sql.read.job_queries import SqlJobQueries
from spinney.store.sql.registry import homes, job_rows, nodes
from spinney.store.sql.session import Session
from spinney.store.sql.submit.submissions import SqlSubmissions
from spinney.store.sql.transitions.attempts import SqlAttemptRequests

STEP = 50
"""How many jobs one transaction of a walk through many changes: some 10 ms with a file, and 50 with a server, as each
job takes some ten statements. Twice as many of those that are due."""
STARTED_STEP = 1_000
"""The most fences in one list: a server would scan a longer one for each lease."""
LOST_BEATS = 5
"""How many of the latest heartbeats a server that crashed may have lost, as they are not synced. A store that lacks
more of them is an older copy."""
FORGET_EVERY_US = 60_000_000
"""How often the sweep of one store object removes what has expired: sessions, idempotency keys and the
like."""


def open_store(
    url: str,
    patience_s: float | None = None,
    cache_kib: int = CACHE_KIB,
    on_wait: Callable[[str], None] = lambda sentence: None,
) -> "SqlStore":
    """Return the store of a URL: ``sqlite:///file`` (relative), ``sqlite:////file`` (absolute), or
    ``postgresql://user@host/database?schema=name``.

    ``patience_s``: the time limit of a transaction with a server, and of a wait for a file that another program has
    locked; None: a limit for people. ``on_wait`` is called with a sentence about such a wait. ``cache_kib``: how much
    of a file each of its connections caches.

    Nothing is opened before the first use. Raises UsageError for other URLs.
    """
    if is_postgres(url):
        try:
            from spinney.store.sql.connection.postgres import PostgresDatabase
        except ImportError as error:
            raise UsageError(
                f"a store on PostgreSQL needs its driver ({error}); install it with 'pip install spinney[postgresql]'"
            ) from error
        return SqlStore(PostgresDatabase(url, patience_s))
    file = database_file(url)
    if file is None:
        raise UsageError(
            f"cannot open the store {without_password(url)!r}; write it as sqlite:///path/to/file.db"
        )
    return SqlStore(SqliteDatabase(file, cache_kib, patience_s, on_wait))


class SqlStore(SqlSubmissions, SqlAttemptRequests, SqlJobQueries, Parts):
    """``spinney.store.parts.Store`` on an SQL database: a file of SQLite, or PostgreSQL.

    It belongs to one thread at a time. What it remembers between calls (whose turn it is, how far a scan has
    come, whether something is left to place) saves work and may be lost: everything else is in the
    database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.session = session = Session(database)
        """The transactions and declarations that the parts share."""
        self._registry, self._write = session.registry, session.write
        self._look, self._read = session.look, session.read
        self._rotation = Rotation()
        self._unplaced = False
        """Whether a published submission has jobs that are not in ``ready`` yet."""
        self._last_beat = (0, 0)
        """The node of the last heartbeat, and its counter."""
        self._looked_at_failures = ""
        """The position of the scan that forgets old causes."""
        self._looked_at_locks = ""
        """The position of the scan that grants locks with room."""
        self._passes: dict[int, tuple[str, bool]] = {}
        """The position of the current pass through each tree with a cancel request, and whether it found open jobs."""
        self._forgot_us = 0
        """When expired sessions, idempotency keys and the like were last removed."""
        self._random = random.Random()  # noqa: S311  # it spreads retries, and is no secret

    # --- the store itself -----------------------------------------------------------------

    def create(self, *, local_folders: bool = False) -> None:
        """See ``Administration.create``. Whether folders are local is a row of ``meta`` that is written with
        the first tables and never changed, because jobs that have begun depend on it."""
        from spinney.store.sql.migrations.new_store import create

        for_new_store = {homes.FOLDERS: homes.LOCAL} if local_folders else {}
        create(self.database, for_new_store=for_new_store)
        if local_folders and self.facts().get(homes.FOLDERS) != homes.LOCAL:
            raise Refused(
                f"{self.database.name} has shared folders, and that stays so: whether folders are local is said when a "
                f"store is made; make another one for that, or leave out --local-folders"
            )

    def unfinished(self) -> Sequence[str]:
        from spinney.store.sql.migrations.new_store import unfinished

        return unfinished(self.database)

    def finish(self) -> Sequence[str]:
        from spinney.store.sql.migrations.upgrades import finish

        return finish(self.database)

    def grant(self, roles: Sequence[str]) -> None:
        """Grant these roles of the database access to the store, without the right to alter it. Raises UsageError where
        there are no roles, or not these."""
        self.database.grant(roles)

    def script(self, roles: Sequence[str] = ()) -> str:
        """Return what ``create`` and ``grant`` would do now, as SQL; nothing is done. Raises UsageError."""
        from spinney.store.sql.migrations.init_script import script  # with Alembic, which is slow to import

        return self.database.script(roles, script)

    def close(self) -> None:
        self.database.close()

    def facts(self) -> Mapping[str, str]:
        with self.database.look() as tx:
            meta = dict(tx.all("select name, value from meta"))
        return {**self.database.facts(), **meta}

    # --- declared -------------------------------------------------------------------------

    def register(
        self, types: Iterable[TypeSpec], queues: Iterable[QueueSpec], locks: Iterable[LockCapacity] = ()
    ) -> None:
        with self._write() as tx:
            self._registry.register(tx, types, queues, locks)

    def types(self) -> Mapping[str, TypeSpec]:
        with self._look():
            return dict(self._registry.types)

    def queues(self) -> Mapping[str, QueueSpec]:
        with self._look():
            return dict(self._registry.declared)

    # --- the hot path ---------------------------------------------------------------------

    def flush_and_claim(
        self, records: Sequence[Record], claim_request: ClaimRequest | None, *, now_us: int
    ) -> FlushResult:
        """See ``Kernel.flush_and_claim``. Records come first, so that their slots count as free for the
        claim; then locks that the claim has found taken, and others that changed, are worked off
        (``cascade.drain``).

        A flush with records is synced. A claim alone is not, since to lose it only means that the jobs are
        still pending. With a server it is, when it granted anything: the server may lose it while the node
        runs the jobs."""
        from spinney.store.sql.claim.claims import Claim
        from spinney.store.sql.record.recorder import Recorder
        from spinney.store.sql.recover.sweep_step import next_wake_us
        from spinney.store.sql.transitions.cascades import Cascade

        if self._unplaced:
            # Before any lease is granted, so that a failing step does not lose an answer.
            self._unplaced = self._staging_step(now_us) is not None
        # When a power failure undoes a claim without records, its jobs are still pending: no harm.
        with self._write(durable=bool(records)) as tx:
            cascade = Cascade(tx, self._registry, now_us)
            recorder = Recorder(cascade, self._random.random())
            recorder.run(records, claim_request)
            leases, starved, claim_again, idle = recorder.kept_leases, False, False, False
            if claim_request is not None:
                claim = Claim(cascade, self._rotation, claim_request, recorder.kept_leases)
                claimed = claim.run()
                if claimed and not records:
                    # A server may lose unsynced transactions while nodes live: they would continue to run jobs that
                    # were granted to others since, under the same fences.
                    tx.must_last = idle = True
                leases = leases + claimed
                cascade.drain()
                starved, claim_again = claim.starved, claim.claim_again
            # A node that was idle and has got jobs should begin at once; it gets the next due time with its records.
            wake_us, unplaced = (None, self._unplaced) if idle else next_wake_us(tx, self._registry, now_us)
            last_hold = self._registry.holds.last
            more = self._left_for_others(tx)
        self._unplaced = unplaced
        return FlushResult(
            leases=leases,
            refused=recorder.refused,
            starved=starved,
            claim_again=claim_again,
            wake_us=now_us if unplaced else wake_us,
            last_hold=last_hold,
            work_for_others=more,
        )

    def _left_for_others(self, tx: Tx) -> bool:
        """Return whether lanes to which this process added jobs still have some after this claim. A flush of plain jobs
        adds none, and runs no query."""
        filled = self._registry.filled
        if not filled:
            return False
        # A subquery with a limit, of which no planner makes a join: PostgreSQL would read all of ``ready`` where its
        # vacuum has seen that empty.
        left = tx.exists(
            "select 1 from json_each(?) j "
            "where (select 1 from ready where ready.lane = j.value limit 1) is not null limit 1",
            (list_text(sorted(filled)),),
        )
        filled.clear()  # behind the query: where it fails, the repeated flush asks again
        return left

    def reconcile(self, node_id: int, records: Sequence[Record]) -> Reconciliation:
        """See ``Kernel.reconcile``. It runs in a write transaction, which waits for the one in doubt: that one has been
        committed by then, or never will be. An attempt that has ended is in ``attempts``, or, as the final one of a
        plain job, in its row in ``jobs``. Both are looked up by job and compared by fence, because neither has an index
        on fences."""
        jobs = list_text([r.job_id for r in records])
        with self._write(durable=False) as tx:
            ended = {
                *tx.all(
                    "select a.job_id, a.fence from json_each(?) j join attempts a on a.job_id = j.value",
                    (jobs,),
                ),
                *tx.all(
                    "select jobs.id, final_fence from json_each(?) j join jobs on jobs.id = j.value", (jobs,)
                ),
            }
            leased = tx.all("select job_id, fence from leases where node_id = ? order by fence", (node_id,))
        recorded = frozenset(r.fence for r in records if (r.job_id, r.fence) in ended)
        return Reconciliation(leased=leased, recorded=recorded)

    def started(self, fences: Sequence[int], *, now_us: int) -> None:
        """See ``Kernel.started``. It is synced, because for a type that must not run twice unasked the mark decides
        after a crash whether an attempt has begun."""
        with self._write() as tx:
            for start in range(0, len(fences), STARTED_STEP):
                some = list_text(fences[start : start + STARTED_STEP])
                sql = "update leases set running_us = ? where fence in (select j.value from json_each(?) j)"
                tx.run(sql, (now_us, some))

    # --- nodes ----------------------------------------------------------------------------

    def join(self, node: NodeInfo, *, now_us: int) -> int:
        with self._write() as tx:
            home, moved = homes.enter(tx, node)
            if moved:
                self._registry.touch(tx)
            return nodes.join(tx, node, home, now_us)

    def beat(
        self,
        node_id: int,
        *,
        load: Load | None = None,
        trouble: str | None = None,
        urgent: bool = True,
        now_us: int,
    ) -> bool:
        # A heartbeat needs no registry. On a server it waits for nobody and so need not be urgent.
        with self.database.write(durable=False, urgent=urgent or self.database.has_row_locks) as tx:
            beat = nodes.beat(tx, node_id, now_us, load, trouble)
        self.database.let_in()
        before, self._last_beat = self._last_beat, (node_id, beat or 0)
        if urgent and beat is not None and before[0] == node_id and beat <= before[1] - LOST_BEATS:
            raise StoreReplaced(
                "the store has lost what was committed to it before: an older copy has taken its place (a standby that "
                "was behind, a backup), and what ran here may have been given to others; start this node again"
            )
        return beat is not None

    def keep_out(self, node_id: int) -> bool:
        """See ``Kernel.keep_out``. First other writers are excluded, then the node's row is read: nobody can
        have declared the node dead in between."""
        if not self.database.keep_out():
            return False
        with self.database.look() as tx:
            return tx.exists("select 1 from nodes where id = ? and state <> 'left'", (node_id,))

    def update_node(
        self, node_id: int, *, state: str, beat: int | None = None, died: bool = False, now_us: int
    ) -> bool:
        with self._write() as tx:
            return nodes.update(tx, node_id, state, now_us, beat, died=died)

    def nodes(self) -> Sequence[NodeInfo]:
        with self.database.look() as tx:
            return nodes.all_nodes(tx)

    def elect_leader(self, node_id: int, *, dead: int | None = None, now_us: int) -> Leadership:
        """See ``Kernel.elect_leader``. Every node calls it again and again, so it only reads as long as
        there is a leader; the transaction that takes the leadership checks again."""
        from spinney.store.sql.recover import leadership
        from spinney.store.sql.recover.sweep_step import next_wake_us

        with self._look() as tx:
            leader = leadership.leader(tx, dead)
            wake_us, _ = next_wake_us(tx, self._registry, now_us)
        if leader is None:
            with self._write() as tx:
                leader = leadership.take(tx, node_id, dead)
        return Leadership(leader=leader, wake_us=wake_us)

    def recover(self, node_id: int, running: Mapping[int, int] | None, *, now_us: int) -> Sequence[int]:
        """See ``Kernel.recover``. The leases are recorded as lost or returned in steps, by the same code that
        records what a node reports; a crash between two steps leaves leases of a node that has left, which
        the next call takes."""
        from spinney.store.sql.record.recorder import Recorder
        from spinney.store.sql.transitions.cascades import Cascade

        # It is marked as left first, so that its records are refused and it claims nothing more.
        self.update_node(node_id, state="left", died=True, now_us=now_us)
        concerned: list[int] = []
        while True:
            with self._write() as tx:
                records = nodes.lost(tx, node_id, running, self._registry.once_lanes(), STEP, now_us)
                cascade = Cascade(tx, self._registry, now_us)
                Recorder(cascade, self._random.random()).run(records, None)
            concerned += [r.job_id for r in records]
            if len(records) < STEP:
                return concerned

    def cancel_requests(self, node_id: int) -> Sequence[tuple[int, int]]:
        """See ``Kernel.cancel_requests``. The first half finds requests on the leased jobs themselves, the
        second those on a tree above: a lineage below ``x`` is greater than ``x.`` and less than ``x/``, the
        next character."""
        with self.database.look() as tx:
            rows = tx.all(
                "select l.job_id, l.fence from cancel_requests w join jobs on jobs.id = w.job_id join leases l on "
                "l.job_id = w.job_id where l.node_id = ?1 union "
                "select l.job_id, l.fence from cancel_requests w cross join leases l join jobs on jobs.id = l.job_id "
                "where w.tree = 1 and l.node_id = ?1 and jobs.lineage > w.lineage || '.' "
                "and jobs.lineage < w.lineage || '/'",
                (node_id,),
            )
        return [(job_id, fence) for job_id, fence in rows]

    # --- folders of deleted jobs ----------------------------------------------------------

    def deleted_folders(self, limit: int, *, after: int = 0, home: int | None = None) -> Sequence[int]:
        """See ``Kernel.deleted_folders``. A folder of a home that an operator has given up may be removed by
        any node, if it exists there."""
        sql = (
            f"select job_id from deleted_folders where job_id > ? and (? = 1 or {_WITHIN_REACH}) order "
            "by job_id limit ?"
        )
        with self.database.look() as tx:
            return tx.column(sql, (after, int(home is None), home or 0, limit))

    def note_removed_folders(self, job_ids: Sequence[int], *, home: int = 0) -> None:
        with self._write() as tx:
            tx.change(_REMOVED_FOLDER, [(job_id, home) for job_id in job_ids])

    # --- housekeeping ---------------------------------------------------------------------

    def sweep(self, *, now_us: int, limit: int = 500) -> SweepResult:
        """See ``Kernel.sweep``. A step is several transactions: one places what submissions have left, one
        drops a part of an abandoned one, one does the rest of housekeeping, and one goes on with each tree
        that is cancelled."""
        from spinney.store.sql.record import circuit_breaker, throughput
        from spinney.store.sql.recover.sweep_step import SweepStep, next_wake_us
        from spinney.store.sql.submit import idempotency, staging
        from spinney.store.sql.transitions import failures, trusted_clock

        with self._read() as tx:
            # Mostly there is nothing of these, and a transaction that writes waits for its turn.
            staged, met = tx.one("select exists (select 1 from staging), exists (select 1 from met_needs)")
        more = bool(staged or met) and self._staging_step(now_us) == 0
        if staged:
            with self._write() as tx:
                lost = staging.abandoned(tx, now_us)
                if lost is not None:
                    staging.drop(tx, *lost)
                    more = True
        with self._write() as tx:
            sweep = SweepStep(tx, self._registry, now_us, min(limit, 2 * STEP), limit)
            due = sweep.due()
            sweep.vanished_stages()
            self._looked_at_locks = sweep.free_locks(self._looked_at_locks)
            trees = sweep.trees_to_cancel()
            if self._registry.streaks:
                circuit_breaker.forget(tx, self._registry, now_us)
            self._looked_at_failures = failures.forget(tx, self._looked_at_failures, now_us)
            throughput.forget(tx, now_us)
            self.fetches.expire(tx, now_us)
            if not 0 <= now_us - self._forgot_us < FORGET_EVERY_US:
                self._forgot_us = now_us
                past_us = trusted_clock.past_us(tx, now_us)
                self.sign_in.expire(tx, past_us)
                idempotency.forget(tx, past_us)
            if self._registry.subscriptions:
                more = self.webhooks.expire(tx, now_us) or more
            wake_us, _ = next_wake_us(tx, self._registry, now_us)
        self._passes = {job_id: self._passes.get(job_id, ("", False)) for job_id in trees}
        for job_id in trees:
            more = self._sweep_tree(job_id, now_us) or more
        return SweepResult(due=due, more=more or sweep.more, wake_us=wake_us)

    def _sweep_tree(self, job_id: int, now_us: int) -> bool:
        """Do one step through a tree with a cancel request; return whether there is more of this pass. The request is
        deleted by a whole pass that has found no open job: a job may be added below, or settle, behind its position.
        Positions are kept in this object only: after a restart a pass begins anew."""
        from spinney.store.sql.transitions.job_operations import Operation

        after, found_open = self._passes[job_id]
        with self._write() as tx:
            operation = Operation(tx, self._registry, now_us, "")
            top = job_rows.find_visible(tx, job_id)
            until = operation.cancel_below(top, after, STEP)
            found_open = found_open or operation.left_open
            if until is None:
                operation.cancel_top(job_id)
                if not found_open:
                    operation.forget_cancel_request(job_id)
        self._passes[job_id] = ("", False) if until is None else (until, found_open)
        return until is not None

    # --- notifications --------------------------------------------------------------------

    def signature(self) -> int:
        return self.database.data_version()

    def notify(self, sender: str = "") -> None:
        self.database.notify(sender)

    def listen(self) -> Listener | None:
        return self.database.listen()


_WITHIN_REACH = "(home in (0, ?) or home in (select id from homes where gone = 1))"
"""The condition for deleted folders that are in this home, if they exist, or in one that no node reaches any more."""
_REMOVED_FOLDER = RowChange("deleted_folders", f"job_id = ? and {_WITHIN_REACH}")
