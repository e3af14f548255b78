"""What whoever watches does for parties: take from them what they have had for too long, or were silent with.

Anybody may do it at any time, several at once: each step looks again in its transaction, and a party that is alive
after all hears what it has lost.
"""

from collections.abc import Sequence

from spinney.model.external import Given, Party, overdue
from spinney.model.jobs import NodeInfo, Record
from spinney.model.outcomes import Outcome
from spinney.stores.contract import Store


def lapsed(store: Store, silent: NodeInfo, *, now_us: int) -> Sequence[int]:
    """Take back what a party had that was silent for longer than its lease; returns the jobs concerned. Nothing
    happens to one that has been heard of since."""
    if not store.parties.lapse(silent.id, silent.beat, now_us=now_us):
        return ()
    return store.recover(silent.id, None, now_us=now_us)


def take_overdue(store: Store, *, now_us: int) -> int:
    """Take from all parties the attempts that exceed their time limit, or go on long after a wish to cancel them;
    returns how many."""
    taken = 0
    for party in store.parties.all():
        given = store.parties.given(party.id)
        records = overdue_of(store, party, given, now_us=now_us)
        if records:
            taken += len(records) - len(store.exchange(records, None, now_us=now_us).refused)
    return taken


def overdue_of(store: Store, party: Party, given: Sequence[Given], *, now_us: int) -> list[Record]:
    """Records for the attempts that have to be taken from a party."""
    types = store.types() if given else {}
    records = []
    for one in given:
        stage = types[one.type].stage(one.stage) if one.type in types else None
        ending = overdue(one, stage, party.lease_s, now_us)
        if ending is not None:
            records.append(ended(one, *ending, now_us=now_us))
    return records


def ended(given: Given, outcome: Outcome, message: str | None, *, now_us: int) -> Record:
    """The record of an attempt that is over by this word."""
    return Record(given.job_id, given.fence, outcome, given.running_us, now_us, message=message)
