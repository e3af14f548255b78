"""What whoever watches does for external workers: take from them what they have had for too long, or were silent with.

Anybody may do it at any time, several at once: each step looks again in its transaction, and an external worker that
is alive after all hears what it has lost.
"""

from collections.abc import Sequence

from spinney.model.external import ExternalLease, ExternalWorker, overdue
from spinney.model.jobs import NodeInfo, Record
from spinney.model.outcomes import Outcome
from spinney.store.contract import Store


def take_back_silent(store: Store, silent: NodeInfo, *, now_us: int) -> Sequence[int]:
    """Take back what an external worker had that was silent for longer than its lease; returns the jobs concerned.
    Nothing happens to one that has been heard of since."""
    if not store.external_workers.expire(silent.id, silent.beat, now_us=now_us):
        return ()
    return store.recover(silent.id, None, now_us=now_us)


def take_overdue(store: Store, *, now_us: int) -> int:
    """Take from all external workers the attempts that exceed their time limit, or go on long after a request to
    cancel them; returns how many."""
    taken = 0
    for external_worker in store.external_workers.all():
        given = store.external_workers.given(external_worker.id)
        records = overdue_of(store, external_worker, given, now_us=now_us)
        if records:
            taken += len(records) - len(store.flush_and_claim(records, None, now_us=now_us).refused)
    return taken


def overdue_of(
    store: Store, external_worker: ExternalWorker, given: Sequence[ExternalLease], *, now_us: int
) -> list[Record]:
    """Records for the attempts that have to be taken from an external worker."""
    types = store.types() if given else {}
    records = []
    for one in given:
        stage = types[one.type].stage(one.stage) if one.type in types else None
        ending = overdue(one, stage, external_worker.lease_s, now_us)
        if ending is not None:
            records.append(ended_record(one, *ending, now_us=now_us))
    return records


def ended_record(given: ExternalLease, outcome: Outcome, message: str | None, *, now_us: int) -> Record:
    """The record of an attempt that is over by this word."""
    return Record(given.job_id, given.fence, outcome, given.running_us, now_us, message=message)
