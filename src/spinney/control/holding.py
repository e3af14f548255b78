"""Holds: laid and lifted in somebody's name, and swept until ``held`` says what they say.

A hold works from the moment it is laid; the sweep is for the eyes, and for jobs to go on after it is lifted.
It may be cut off between any two steps: a node goes on with it, or the next who asks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from spinney.control.hand import Hand
from spinney.model import names
from spinney.model.errors import Refused, UsageError
from spinney.model.holds import REST, Hold, Scope

NUDGE_EVERY = 5
"""After so many steps nodes are told that a sweep has let jobs go."""
LATEST_US = 253_402_300_800_000_000
"""The end of the year 9999: no hold ends later, unless it is released."""


def require_meant(reason: str | None, until_us: int | None, now_us: int) -> None:
    """Raise UsageError for a hold that cannot be meant: without a reason, or over before it begins."""
    names.label("reason", reason or "")
    if until_us is not None and until_us <= now_us:
        raise UsageError("the hold would end before it begins; give a time still to come")
    if until_us is not None and until_us > LATEST_US:
        raise UsageError("the hold would end after the year 9999; without an end it lasts until it is released")


@dataclass(frozen=True, kw_only=True)
class Holds(Hand):
    """Every change is audited."""

    rest: Callable[[float], None] = time.sleep

    def lay(self, scope: Scope, name: str = "", *, reason: str, until_us: int | None = None) -> Hold:
        """Lay a hold: when this returns nothing that it covers is claimed any more, and what nodes have been
        given ahead they hand back.

        Raises NoSuchJob, UnknownType, UsageError (no reason, a time that is over, a queue that nobody has
        named), Refused (a single job that has settled).
        """
        now_us = self.clock()
        require_meant(reason, until_us, now_us)
        hold = self.store.holds.lay(scope, name, reason, self.author(reason), until_us=until_us, now_us=now_us)
        self.nudge()
        return hold

    def lift(self, hold_id: int, *, reason: str | None = None) -> Hold:
        """Release a hold. What no other covers goes on, by ``sweep``; a single job goes on at once.

        Raises Refused when there is none.
        """
        hold = self.store.holds.lift(hold_id, self.author(reason), now_us=self.clock())
        self.nudge()
        return hold

    def lift_all(self, scope: Scope, name: str = "", *, reason: str | None = None) -> list[Hold]:
        """Release every hold that lies on just this. Raises Refused when there is none."""
        found = [hold for hold in self.store.holds.all() if (hold.scope, hold.name) == (scope, name)]
        if not found:
            what = "everything" if scope is Scope.EVERYTHING else f"{scope} {name!r}"
            raise Refused(f"there is no hold on {what}; 'spinney holds' shows those there are")
        return [self.lift(hold.id, reason=reason) for hold in found]

    def sweep(self) -> None:
        """Go on until every job stands as the holds say, resting between steps so that others can write."""
        steps = 0
        while self.store.holds.sweep(now_us=self.clock()):
            self.rest(REST * self.store.holds.took_s)
            steps += 1
            if steps % NUDGE_EVERY == 0:
                self.nudge()
        self.nudge()
