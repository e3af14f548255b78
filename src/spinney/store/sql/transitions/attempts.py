"""Requests of a running attempt, checked by its fence. The jobs that it creates are in ``spawns``.

A worker has no connection to the database: its node, or the API for an external worker, calls these methods of the
store for it. Each begins its transaction by requiring the lease, so that a late attempt whose lease was recovered or
taken back changes nothing.

Data and priority stay as they were written, whatever becomes of the attempt. A lock is released when the
attempt ends, unless it was taken until the job settles."""

import shlex

import orjson

from spinney.model.errors import Refused, StaleFence, UsageError
from spinney.model.settings.capacities import require_amount
from spinney.model.types import require_priority
from spinney.model.values import names
from spinney.model.values.unreadable import Unreadable, json_value
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.records import upsert
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import Session


def require_lease(tx: Tx, job_id: int, fence: int) -> None:
    """Raise StaleFence unless this attempt still owns the job.

    There is one writer at a time, so the lease cannot be taken away before the caller's transaction ends.
    """
    if not tx.exists("select 1 from leases where job_id = ? and fence = ?", (job_id, fence)):
        raise StaleFence(job_id, fence)


class SqlAttemptRequests:
    """The methods of ``spinney.store.contract.Kernel`` that running attempts call. What they need is imported by them,
    because a program that only reads should not wait for it."""

    session: Session

    # --- data ---------------------------------------------------------------------------------

    def put_data(self, job_id: int, fence: int, name: str, value: str | None, target: int) -> None:
        with self.session.write() as tx:
            _require_entry(tx, job_id, fence, name, target)
            if value is None:
                tx.run("delete from data where job_id = ? and name = ?", (target, name))
            else:
                _put(tx, name, value, target)

    def append_data(self, job_id: int, fence: int, name: str, value: str, target: int) -> int:
        """See ``Kernel.append_data``. The list is read and written in one transaction, so jobs that append to the data
        of their root at the same time lose nothing. The limit of size is that of the whole list."""
        with self.session.write() as tx:
            _require_entry(tx, job_id, fence, name, target)
            stored = tx.value("select value from data where job_id = ? and name = ?", (target, name))
            items = [] if stored is None else json_value(stored, f"the data entry {name!r} of job {target}")
            if isinstance(items, Unreadable):
                raise Refused(f"{items}; put the entry again, or append to another name")
            if not isinstance(items, list):
                raise Refused(f"data entry {name!r} of job {target} is no list; append to another name")
            items.append(orjson.loads(value))
            _put(tx, name, list_text(items), target)
            return len(items)

    # --- locks --------------------------------------------------------------------------------

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
        """See ``Kernel.take_lock``. ``until``: ``attempt``, or ``job`` to keep the lock until the job settles. The rest
        of a larger amount that the job had is offered to jobs that wait."""
        from spinney.store.sql.transitions import locks
        from spinney.store.sql.transitions.cascades import Cascade

        names.lock_name(name)
        for number in (amount, 1 if capacity is None else capacity):
            require_amount(number)
        with self.session.write() as tx:
            registry = self.session.registry
            require_lease(tx, job_id, fence)
            state = locks.look(tx, registry, locks.LockRequest(name, amount, capacity), job_id)
            if not state.others and amount > max(state.capacity, state.own or 0):
                raise UsageError(
                    f"the lock {name!r} has a capacity of {state.capacity}, so that nobody can take {amount} of it; "
                    f"take less, or raise the capacity with 'spinney lock {shlex.quote(name)} --capacity N'"
                )
            if not state.fits:
                return False
            # A lock that is kept until the job settles (fence null) stays so when an attempt takes it once more.
            tx.run(
                "insert into locks (name, job_id, fence, since_us, amount) values (?, ?, ?, ?, ?) "
                "on conflict (name, job_id) do update set amount = excluded.amount, "
                "fence = case when locks.fence is null or excluded.fence is null then null else excluded.fence end",
                (name, job_id, None if until == "job" else fence, now_us, amount),
            )
            # Its locks must be released when it ends, so its lease is no longer plain.
            tx.run("update leases set plain = 0 where job_id = ?", (job_id,))
            if amount < (state.own or 0):
                cascade = Cascade(tx, registry, now_us)
                cascade.lock_freed(name)
                cascade.drain()
            return True

    # --- priority and progress ----------------------------------------------------------------

    def prioritise(self, job_id: int, fence: int, priority: int) -> None:
        """See ``Kernel.prioritise``. Only the job's row has to change, because a leased job has no row in ``ready``."""
        with self.session.write() as tx:
            require_lease(tx, job_id, fence)
            require_priority(priority)
            tx.run("update jobs set priority = ? where id = ?", (priority, job_id))

    def progress(self, job_id: int, fence: int, fraction: float, message: str | None) -> None:
        """See ``Kernel.progress``. The fraction is kept within 0 and 1."""
        shown = {"fraction": min(1.0, max(0.0, fraction)), "message": message}
        with self.session.write(durable=False) as tx:
            require_lease(tx, job_id, fence)
            upsert(tx, "progress", "job_id", {"job_id": job_id, "fence": fence, **shown})


def _require_entry(tx: Tx, job_id: int, fence: int, name: str, target: int) -> None:
    """Raise StaleFence, BadName, or Refused unless the attempt may write an entry of this name into the data of
    ``target``: its own job, its parent or its root."""
    require_lease(tx, job_id, fence)
    if target != job_id:
        row = job_rows.find(tx, job_id)
        if target not in (row.parent_id, row.root_id):
            raise Refused(
                f"job {job_id} may write its own data, its parent's and its root's, not those of job {target}"
            )
    names.label("data entry", name)


def _put(tx: Tx, name: str, value: str, target: int) -> None:
    from spinney.define.job.data import require_small

    require_small(name, value)
    upsert(tx, "data", "job_id, name", {"job_id": target, "name": name, "value": value})
