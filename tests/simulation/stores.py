"""The real store on a database in memory, with a gate before and behind each of its transactions.

Everybody has a store object of his own, as every process has; under them lies one SQLite connection, for a
transaction is never left open where another may begin. What is missing of the real thing is the file: its
turnstile, its journal, and what a loss of power takes back.

At a gate things go wrong: the process may die there (before a transaction, or when it is committed and nobody
has heard of it), the database may not answer, and in a verb of several transactions others may go first.
"""

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from spinney.features.bulk.sql import SqlBulk
from spinney.model.jobs import ClaimRequest, FlushResult, NodeInfo, Record, Submission
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import BulkStep
from spinney.model.rights.actor import Actor
from spinney.store.contract import SubmitResult
from spinney.store.sql import open_store
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.connection.sqlite_tx import SqliteTx, add_functions
from spinney.store.sql.session import Session
from spinney.store.sql.store import SqlStore

from .loop import PROCESS
from .oracle import Held, Oracle

_JOURNAL = slice(18, 20)
"""Where the file says that it is in WAL mode, which a database in memory cannot have."""


class Gates(Protocol):
    """What may happen around a transaction of this process."""

    records: bool
    """The transaction records what became of attempts."""

    def before(self, *, first: bool, writes: bool = False) -> None:
        """``first`` of its verb. May raise StoreUnusable, or not return at all."""

    def after(self) -> None:
        """It is committed. May raise StoreUnusable, or not return at all."""

    def note(self, text: str) -> None: ...


class Memory:
    """The one database of a simulated world."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=512
        )
        self.connection.deserialize(_empty())
        add_functions(self.connection)
        self.version = 0
        """How often something has been committed."""

    def close(self) -> None:
        self.connection.close()


@cache
def _empty() -> bytes:
    """A store to copy: to make one takes as long as ten lives."""
    with TemporaryDirectory(prefix="spinney-sim-") as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'spinney.db'}")
        store.create()
        with store.database.write() as tx:
            tx.run("update meta set value = 'sim' where name = 'folder_token'")
        store.close()
        source = sqlite3.connect(Path(folder) / "spinney.db")
        source.execute("pragma wal_checkpoint(truncate)")
        image = bytearray(source.serialize())
        source.close()
    image[_JOURNAL] = b"\x01\x01"
    return bytes(image)


class SimDatabase(SqliteDatabase):
    """One process's view of the database."""

    def __init__(self, memory: Memory, oracle: Oracle, gates: Gates) -> None:
        super().__init__(Path("/nowhere"))
        self._memory, self._oracle, self._gates = memory, oracle, gates
        self.calls = 0
        """Transactions since the present verb began."""
        self.leased_before: Mapping[int, Held] = {}
        """What was leased when the last of them began."""

    @contextmanager
    def write(self, **_: Any) -> Iterator[Tx]:
        self._gates.before(first=self.calls == 0, writes=True)
        self.calls += 1
        connection = self._memory.connection
        changes = connection.total_changes
        connection.execute("begin immediate")
        try:
            yield self._tx()
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
        if connection.total_changes != changes:
            self._memory.version += 1
        self.leased_before = self._oracle.leases
        self._oracle.committed(self._tx())
        self._gates.after()

    @contextmanager
    def look(self) -> Iterator[Tx]:
        self._gates.before(first=True)
        connection = self._memory.connection
        connection.execute("begin")
        try:
            yield self._tx()
        finally:
            if connection.in_transaction:
                connection.execute("rollback")

    def _tx(self) -> Tx:
        return SqliteTx(self._memory.connection)

    def data_version(self) -> int:
        self._gates.before(first=True)
        return self._memory.version

    def close(self) -> None:
        """The connection is the world's."""


class SimBulk(SqlBulk):
    """The real verbs on jobs, which also tell the oracle whose stages are to run again."""

    def __init__(self, session: Session, oracle: Oracle) -> None:
        super().__init__(session)
        self._oracle = oracle

    def apply(self, order: Order, job_ids: Sequence[int], actor: Actor, **how: Any) -> BulkStep:
        again = job_ids if order.verb in (Verb.RETRY, Verb.RERUN) else ()
        with self._oracle.asked_again(again, order.stage, rerun=order.verb is Verb.RERUN) as left:
            step = super().apply(order, job_ids, actor, **how)
            left(set(again).difference(step.touched))
        return step


class SimStore(SqlStore):
    """The real store, which also tells the oracle what it was asked and what it answered."""

    def __init__(self, memory: Memory, oracle: Oracle, gates: Gates, rng: random.Random) -> None:
        self._sim_database = SimDatabase(memory, oracle, gates)
        super().__init__(self._sim_database)
        self.oracle, self.gates = oracle, gates
        self._random = rng
        vars(self)["bulk"] = SimBulk(self.session, oracle)

    def begin_verb(self) -> None:
        self._sim_database.calls = 0

    @property
    def untouched(self) -> bool:
        """Whether the present verb has not changed anything yet."""
        return self._sim_database.calls == 0

    def submit(self, submissions: Sequence[Submission], *, now_us: int) -> SubmitResult:
        made = super().submit(submissions, now_us=now_us)
        self.oracle.accepted(made.ids)
        self.gates.note(f"submitted {list(made.ids)}")
        return made

    def flush_and_claim(
        self, records: Sequence[Record], want: ClaimRequest | None, *, now_us: int
    ) -> FlushResult:
        self.gates.records = bool(records)
        answer = super().flush_and_claim(records, want, now_us=now_us)
        self.gates.records = False
        self.oracle.exchanged(records, answer.refused, self._sim_database.leased_before)
        for record in records:
            refused = " (refused)" if record in answer.refused else ""
            self.gates.note(f"recorded {record.outcome} job={record.job_id} fence={record.fence}{refused}")
        for lease in answer.leases:
            self.gates.note(f"leased job={lease.job_id} {lease.stage} fence={lease.fence} slot={lease.slot}")
        return answer

    def spawn(
        self, job_id: int, fence: int, submissions: Sequence[Submission], *, now_us: int
    ) -> Sequence[int]:
        with self._under(fence):
            return super().spawn(job_id, fence, submissions, now_us=now_us)

    def put_data(self, job_id: int, fence: int, name: str, value: str | None, target: int) -> None:
        with self._under(fence):
            super().put_data(job_id, fence, name, value, target)

    def take_lock(
        self,
        job_id: int,
        fence: int,
        name: str,
        until: str,
        *,
        amount: int = 1,
        capacity: int | None = None,
        now_us: int,
    ) -> bool:
        with self._under(fence):
            return super().take_lock(
                job_id, fence, name, until, amount=amount, capacity=capacity, now_us=now_us
            )

    @contextmanager
    def _under(self, fence: int) -> Iterator[None]:
        """A write that bears an old fence must be refused."""
        late = fence not in self.oracle.leases
        yield
        if late:
            self.oracle.violated(f"a write of attempt {fence} was taken, whose lease was gone")

    def join(self, node: NodeInfo, *, now_us: int) -> int:
        machine = PROCESS.get().machine
        node_id = super().join(node if machine.says_lease else replace(node, lease_s=None), now_us=now_us)
        self.gates.note(f"joined as {node_id}")
        return node_id

    def recover(self, node_id: int, running: Mapping[int, int] | None, *, now_us: int) -> Sequence[int]:
        self.oracle.recovering(node_id)
        jobs = super().recover(node_id, running, now_us=now_us)
        self.gates.note(f"recovered node {node_id}: jobs {list(jobs)}")
        return jobs
