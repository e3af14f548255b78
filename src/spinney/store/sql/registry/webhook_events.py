"""Who is to be told that a job has settled: written down by the transaction that settles it.

The registry knows the webhooks, so that a transaction asks nothing where there are none, or none that fits. Where one
fits, one statement writes an event for all jobs that the transaction settles alike.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from spinney.model.access import AccessScope
from spinney.model.settings.webhooks import BATCH, EVERY, STATES, Webhook
from spinney.model.states import State
from spinney.store.sql.connection.database import Tx

_TOLD = frozenset(STATES)
_IS_BATCH = (
    "case when jobs.parent_id is null and exists "
    "(select 1 from jobs c where c.parent_id = jobs.id and c.parent_id is not null) then 1 else 0 end"
)


class SettledJob(NamedTuple):
    """A job of which there is to tell."""

    id: int
    type: str
    queue: str
    top: bool
    """It has no parent."""


class Subscription(NamedTuple):
    """What a webhook is told."""

    id: int
    events: frozenset[str]
    type: str | None
    collection: str | None
    queue: str | None
    roots_only: bool
    within: AccessScope

    def fits(self, job: SettledJob, state: State) -> bool:
        """Whether it may want this, by what need not be looked up."""
        return (
            (state in self.events or EVERY in self.events or (BATCH in self.events and job.top))
            and (job.top or not self.roots_only)
            and self.type in (None, job.type)
            and self.queue in (None, job.queue)
            and (self.within.queues is None or job.queue in self.within.queues)
        )


def subscription(webhook_id: int, webhook: Webhook) -> Subscription:
    """What this one is told."""
    return Subscription(
        webhook_id,
        frozenset(webhook.events),
        webhook.type,
        webhook.collection,
        webhook.queue,
        webhook.roots_only,
        webhook.within,
    )


def tell(
    tx: Tx, subscriptions: Sequence[Subscription], settled: Sequence[SettledJob], state: State, now_us: int
) -> None:
    """Write what the webhooks among these want to be told of jobs that have just come to this state."""
    if state not in _TOLD:
        return
    for each in subscriptions:
        ids = [job.id for job in settled if each.fits(job, state)]
        if ids:
            _write(tx, each, ids, state, now_us)


def _write(tx: Tx, each: Subscription, ids: Sequence[int], state: State, now_us: int) -> None:
    conditions, args = _conditions(each, state)
    first = tx.take("webhook_event", len(ids))
    tx.run(
        "insert into webhook_events (seq, webhook_id, job_id, event, batch, at_us, next_us, outcome) "
        "select cast(? as bigint) + row_number() over (order by t.id), cast(? as bigint), t.id, cast(? as text), "
        "t.batch, cast(? as bigint), cast(? as bigint), 'due' from "
        f"(select jobs.id as id, {_IS_BATCH} as batch, jobs.collection as collection from json_each(?) j "
        f"join jobs on jobs.id = j.value) t {conditions}",
        (first - 1, each.id, str(state), now_us, now_us, orjson.dumps(list(ids)).decode(), *args),
    )


def _conditions(each: Subscription, state: State) -> tuple[str, list[Any]]:
    """What only the jobs' rows can say."""
    said: list[str] = []
    args: list[Any] = []
    if each.collection is not None:
        said.append("t.collection = ?")
        args.append(each.collection)
    if each.within.collections is not None:
        said.append("t.collection in (select k.value from json_each(?) /* text */ k)")
        args.append(orjson.dumps(list(each.within.collections)).decode())
    if state not in each.events and EVERY not in each.events:
        said.append("t.batch = 1")
    return (f"where {' and '.join(said)}" if said else "", args)
