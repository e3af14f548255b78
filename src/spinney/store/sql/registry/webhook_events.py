"""Webhook events of settled jobs, written by the transaction that settles them.

The registry has the webhooks, so that a transaction runs no query where there are none, or none that matches. Where one
matches, one statement writes the events of all jobs that the transaction settles in the same state.

So an event exists if and only if its job has settled, whatever crashes. It is delivered later, and at least
once, by ``spinney.features.webhooks``. A paused webhook gets its events all the same, and they are sent when
it is resumed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from spinney.model.settings.webhooks import BATCH, EVERY, Webhook
from spinney.model.states import ENDED, State
from spinney.store.sql.connection.database import Tx, list_text

_REPORTED = frozenset(ENDED)
_IS_BATCH = (
    "case when jobs.parent_id is null and exists (select 1 from jobs c "
    "where c.parent_id = jobs.id and c.root_id = jobs.id and c.parent_id is not null) then 1 else 0 end"
)
"""Both columns, so that each of the two indexes of children has a condition: where PostgreSQL takes ``jobs`` for
empty, it may choose either."""


class SettledJob(NamedTuple):
    """A settled job that may have events."""

    id: int
    type: str
    queue: str
    top: bool
    """Whether it has no parent."""


class Subscription(NamedTuple):
    """The events that a webhook gets."""

    id: int
    webhook: Webhook

    def fits(self, job: SettledJob, state: State) -> bool:
        """Return whether the webhook may get this event, by conditions that need no query."""
        hook = self.webhook
        return (
            (state in hook.events or EVERY in hook.events or (BATCH in hook.events and job.top))
            and (job.top or not hook.roots_only)
            and hook.type in (None, job.type)
            and hook.queue in (None, job.queue)
            and (hook.within.queues is None or job.queue in hook.within.queues)
        )


def tell(
    tx: Tx, subscriptions: Sequence[Subscription], settled: Sequence[SettledJob], state: State, now_us: int
) -> None:
    """Write the events of these subscriptions for jobs that have just settled in this state."""
    if state not in _REPORTED:
        return
    for subscription in subscriptions:
        ids = [job.id for job in settled if subscription.fits(job, state)]
        if ids:
            _write(tx, subscription, ids, state, now_us)


def _write(tx: Tx, subscription: Subscription, ids: Sequence[int], state: State, now_us: int) -> None:
    conditions, args = _conditions(subscription.webhook, state)
    first = tx.take("webhook_event", len(ids))
    tx.run(
        "insert into webhook_events (seq, webhook_id, job_id, event, batch, at_us, next_us, outcome) "
        "select cast(? as bigint) + row_number() over (order by t.id), cast(? as bigint), t.id, cast(? as text), "
        "t.batch, cast(? as bigint), cast(? as bigint), 'due' from "
        f"(select jobs.id as id, {_IS_BATCH} as batch, jobs.collection as collection from jobs "
        f"where jobs.id in (select j.value from json_each(?) j)) t {conditions}",
        (first - 1, subscription.id, str(state), now_us, now_us, list_text(ids), *args),
    )


def _conditions(hook: Webhook, state: State) -> tuple[str, list[Any]]:
    """Return the conditions on the jobs' rows."""
    terms: list[str] = []
    args: list[Any] = []
    if hook.collection is not None:
        terms.append("t.collection = ?")
        args.append(hook.collection)
    if hook.within.collections is not None:
        terms.append("t.collection in (select k.value from json_each(?) /* text */ k)")
        args.append(list_text(hook.within.collections))
    if state not in hook.events and EVERY not in hook.events:
        terms.append("t.batch = 1")
    return (f"where {' and '.join(terms)}" if terms else "", args)
