"""Take back attempts of external workers that are overdue, or whose worker sends no heartbeats.

Any process may do it at any time, also several at once: each step checks again in its transaction, and an external
worker that is alive after all learns what it has lost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spinney.model.jobs import NodeInfo, Record
from spinney.model.outcomes import Outcome
from spinney.store.parts import Store

if TYPE_CHECKING:
    from spinney.model.external import ExternalLease, ExternalWorker


def take_back_silent(store: Store, silent: NodeInfo, *, now_us: int) -> Sequence[int]:
    """Take back the leases of an external worker that was silent for longer than its lease; return the jobs concerned.
    Nothing happens when it has sent a heartbeat since."""
    if not store.external_workers.expire(silent.id, silent.beat, now_us=now_us):
        return ()
    return store.recover(silent.id, None, now_us=now_us)


def take_overdue(store: Store, *, now_us: int) -> int:
    """Take from all external workers the attempts that exceed their time limit, or continue long after a cancel
    request; return how many."""
    recorded = 0
    for external_worker in store.external_workers.all():
        leases = store.external_workers.leases(external_worker.id)
        records = overdue_of(store, external_worker, leases, now_us=now_us)
        if records:
            recorded += len(records) - len(store.flush_and_claim(records, None, now_us=now_us).refused)
    return recorded


def overdue_of(
    store: Store, external_worker: "ExternalWorker", leases: "Sequence[ExternalLease]", *, now_us: int
) -> list[Record]:
    """Return records for the attempts that have to be taken from an external worker."""
    from spinney.model.external import overdue  # which nodes and stores without such workers never load

    types = store.types() if leases else {}
    records = []
    for lease in leases:
        stage = types[lease.type].stage(lease.stage) if lease.type in types else None
        ending = overdue(lease, stage, external_worker.lease_s, now_us)
        if ending is not None:
            records.append(ended_record(lease, *ending, now_us=now_us))
    return records


def ended_record(lease: "ExternalLease", outcome: Outcome, message: str | None, *, now_us: int) -> Record:
    """Return the record of an attempt that ends with this outcome. ``message``: for people."""
    return Record(lease.job_id, lease.fence, outcome, lease.running_us, now_us, message=message)
