"""The latest time at which a clock was trusted to delete what is old, in the rows ``clock_trusted`` and
``clock_jumped`` of ``counters``. ``spinney.model.trusted_clock`` has the rule.

The leader observes its clock: once a minute with the charts, and before each step of retention. Where no node leads, a
server does. Other processes that delete old rows only read the time (``past_us``).
"""

from spinney.model.trusted_clock import TrustedClock, observed
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import upsert

_TRUSTED, _JUMPED = "clock_trusted", "clock_jumped"
"""The rows; the first is missing before the first look, the second is zero without a jump."""


def read(tx: Tx) -> TrustedClock | None:
    """Return the stored state of the trusted clock; None: no clock has been observed yet."""
    times = dict(tx.all(f"select name, value from counters where name in ('{_TRUSTED}', '{_JUMPED}')"))
    if _TRUSTED not in times:
        return None
    return TrustedClock(trusted_us=times[_TRUSTED], jumped_us=times.get(_JUMPED) or None)


def write(tx: Tx, clock: TrustedClock) -> None:
    """Store the state of the trusted clock, in place of the previous one."""
    upsert(tx, "counters", "name", {"name": _TRUSTED, "value": clock.trusted_us})
    upsert(tx, "counters", "name", {"name": _JUMPED, "value": clock.jumped_us or 0})


def observe(tx: Tx, now_us: int) -> TrustedClock:
    """Keep and return what a look at a clock that shows ``now_us`` makes of it."""
    before = read(tx)
    clock = observed(before, now_us)
    if clock != before:
        write(tx, clock)
    return clock


def past_us(tx: Tx, now_us: int) -> int:
    """Return the latest time that is surely past: ``now_us``, or the latest trusted time where that is earlier."""
    clock = read(tx)
    return now_us if clock is None else min(now_us, clock.trusted_us)
