"""How the latest tries of each webhook went, for operators who check whether anything arrives.

It is computed from the deliveries, whose number may be large behind a receiver that is down, so only a
bounded number of each webhook is read, by two indexes: by number, and by the next time. No counters are kept
beside the rows.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from spinney.model.settings.webhooks import DeliveryOutcome, WebhookHealth
from spinney.store.sql.connection.database import Tx

NEWEST = 1_000
"""How many of the newest deliveries of a webhook are looked at, tried or not."""
DUE = 1_000
"""How many of those that are tried again are looked at, beside the newest: behind a receiver that is down, thousands
of newer ones may not have been tried yet. The deliveries with the latest times are looked at, and a failed try has
one of these until as many newer deliveries have been made. A receiver that is down is tried every five seconds and
counts as unwell after three tries, so that this is noticed unless some hundred jobs settle in a second."""
_COLUMNS = "seq, outcome, status, answer, tried_us, tries"
_TRIED = "tried_us is not null and (outcome <> 'due' or status is not null or answer is not null)"
"""Deliveries of which a try has ended. While the first one runs there is a time of the try, but neither
status nor answer."""


class _Try(NamedTuple):
    """A delivery that was tried, with the result of its latest try. ``tries``: how many there have been."""

    seq: int
    outcome: str
    status: int | None
    answer: str | None
    tried_us: int
    tries: int

    @property
    def accepted(self) -> bool:
        """Whether the receiver has accepted the delivery."""
        return self.outcome == DeliveryOutcome.DELIVERED


def of_each(tx: Tx) -> dict[str, WebhookHealth]:
    """Return how the latest tries of each webhook went, by its name. Webhooks that were never tried are
    missing."""
    by_name = {
        name: _health(_tries(tx, webhook_id)) for webhook_id, name in tx.all("select id, name from webhooks")
    }
    return {name: health for name, health in by_name.items() if health is not None}


def _tries(tx: Tx, webhook_id: int) -> list[_Try]:
    """Return the latest tries of a webhook, the last one first, each delivery once."""
    rows: list[Sequence[Any]] = []
    # By next time in descending order: a try that failed puts it off, so these have been tried, unlike those
    # that only wait.
    for where, order, most in (("seq > 0", "seq", NEWEST), ("next_us is not null", "next_us", DUE)):
        rows += tx.all(
            f"select {_COLUMNS} from (select {_COLUMNS} from webhook_events where webhook_id = ? and {where} "
            f"order by {order} desc limit ?) latest where {_TRIED}",
            (webhook_id, most),
        )
    tries = {row[0]: _Try(*row) for row in rows}
    return sorted(tries.values(), key=lambda try_: (-try_.tried_us, -try_.seq))


def _health(tries: Sequence[_Try]) -> WebhookHealth | None:
    """Return the health of a webhook: its last try, and how many since the last accepted one have failed;
    None without tries."""
    if not tries:
        return None
    last = tries[0]
    failing = list(takewhile(lambda try_: not try_.accepted, tries))
    return WebhookHealth(
        accepted=last.accepted,
        tried_us=last.tried_us,
        status=last.status,
        answer=last.answer,
        failing=len(failing),
        tries=max((try_.tries for try_ in failing), default=0),
    )
