"""Whether a wall clock is trusted to delete what is old, by what earlier looks at clocks have shown.

What is deleted because of its age cannot be restored, so one wrong clock must not decide it. The store keeps the latest
time at which a clock was trusted. A clock that has gone on from there is right. One that is far ahead was set forward,
or nobody looked for long; nothing in a store tells the two apart. Deletion then waits until such a clock has gone on
for a day, in which a person can set it right, and which costs a store that stood still nothing but a delay. The day is
measured by the clock itself, over any pauses of the nodes, so a second jump by a day or more ends it early.
"""

from dataclasses import dataclass

AHEAD_US = 3_600_000_000
"""How far a clock may be ahead of the latest trusted time. The leader looks at its clock every minute."""
PROBATION_US = 86_400_000_000
"""How long a clock that jumped ahead has to go on before it is trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedClock:
    """The latest time at which a clock was trusted, and a jump ahead from it that the last look has shown."""

    trusted_us: int
    jumped_us: int | None = None
    """The time that the clock showed after the jump, when it was first seen; None: the last clock was trusted."""

    @property
    def trusted_again_us(self) -> int | None:
        """Return the time from which on a clock that jumped is trusted; None: it did not jump."""
        return None if self.jumped_us is None else self.jumped_us + PROBATION_US


def observed(before: TrustedClock | None, now_us: int) -> TrustedClock:
    """Return the state to be kept after a look at a clock that shows ``now_us``. ``before``: what was kept; None: this
    is the first look, and trusted.

    A clock behind the trusted time is trusted, because it deletes less; it does not move that time back.
    """
    if before is None:
        return TrustedClock(trusted_us=now_us)
    if now_us <= before.trusted_us + AHEAD_US:
        return TrustedClock(trusted_us=max(before.trusted_us, now_us))
    jumped_us = now_us if before.jumped_us is None else min(before.jumped_us, now_us)
    if now_us >= jumped_us + PROBATION_US:
        return TrustedClock(trusted_us=now_us)
    return TrustedClock(trusted_us=before.trusted_us, jumped_us=jumped_us)


def confirmed(before: TrustedClock | None, now_us: int) -> TrustedClock:
    """Return the state to be kept after a person has vouched for a clock that shows ``now_us``: it is trusted however
    far it is ahead.

    A clock behind the trusted time does not move that time back either: were it slow, the leader, whose clock is right,
    would count as having jumped. Where the trusted time itself is wrong, it stops nothing; clocks up to an hour ahead
    of it are trusted until the right time has caught up.
    """
    return TrustedClock(trusted_us=now_us if before is None else max(before.trusted_us, now_us))
