"""Holds: laid and lifted in somebody's name, and swept until ``held`` says what they say.

A hold works from the moment it is laid; the sweep is for the eyes, and for jobs to go on after it is lifted.
It may be cut off between any two steps: a node goes on with it, or the next who asks.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinney.model.access import Role
from spinney.model.errors import Forbidden, NoSuch, NoSuchJob, UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.rights.operators import HoldPreview, Order, Verb
from spinney.model.settings.holds import SWEEP_REST_FACTOR, Hold, Scope, require_meant
from spinney.service.order_scope import OrderScope, lies_beyond
from spinney.service.service import ASK, Service, limits

NUDGE_EVERY = 5
"""After so many steps nodes are told that a sweep has let jobs go."""


@dataclass(frozen=True, kw_only=True)
class Holds(Service):
    """Every change is audited."""

    rest: Callable[[float], None] = time.sleep

    def lay(self, scope: Scope, name: str = "", *, reason: str, until_us: int | None = None) -> Hold:
        """Lay a hold: when this returns nothing that it covers is claimed any more, and what nodes have been
        given ahead they hand back.

        Raises NoSuchJob, UnknownType, UsageError (no reason, a time that is over, a queue that nobody has
        named), Refused (a single job that has settled), Forbidden.
        """
        if scope in (Scope.JOB, Scope.TREE):
            _require_number(name, Verb.HOLD)
        self._require(scope, name, Verb.HOLD)
        now_us = self.clock()
        require_meant(reason, until_us, now_us)
        hold = self.store.holds.lay(scope, name, reason, self.actor(reason), until_us=until_us, now_us=now_us)
        self.wake_nodes()
        return hold

    def lift(self, hold_id: int, *, reason: str | None = None) -> Hold:
        """Release a hold. What no other covers goes on, by ``sweep``; a single job goes on at once. A release that was
        cut off before its sweep may be asked for again.

        Raises NoSuch when there is none, Forbidden.
        """
        self.require(Role.SUBMITTER, "release holds")
        if not self._unlimited and (laid := self._laid(hold_id)) is not None:
            self._require_mine(laid)
        hold = self.store.holds.lift(hold_id, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return hold

    def lift_all(self, scope: Scope, name: str = "", *, reason: str | None = None) -> list[Hold]:
        """Release every hold that lies on just this. Raises NoSuch when there is none, Forbidden."""
        return [self.lift(hold.id, reason=reason) for hold in self.on(scope, name)]

    # --- before ---------------------------------------------------------------------------

    def would_hold(
        self, scope: Scope, name: str = "", *, reason: str, until_us: int | None = None
    ) -> HoldPreview:
        """What ``lay`` would come to, for a hold on more than one job. Raises what ``lay`` raises."""
        if scope is Scope.JOB:
            raise UsageError(
                "a hold on a single job is looked at as a verb on jobs; name more than one job's worth"
            )
        if scope is Scope.TREE:
            _require_number(name, Verb.HOLD)
        self._require(scope, name, Verb.HOLD)
        require_meant(reason, until_us, self.clock())
        return self.store.holds.would_hold(scope, name)

    def would_lift(self, hold_ids: Sequence[int]) -> HoldPreview:
        """How many jobs would go on if these holds were released together. Raises NoSuch, Forbidden."""
        self.require(Role.SUBMITTER, "release holds")
        for hold_id in hold_ids:
            laid = self._laid(hold_id)
            if laid is None:
                raise NoSuch(f"there is no hold {hold_id} (any more); 'spinney holds' shows those there are")
            self._require_mine(laid)
        return self.store.holds.would_go_on(hold_ids)

    def on(self, scope: Scope, name: str = "") -> list[Hold]:
        """The holds that ``lift_all`` would release. Raises NoSuch when there is none, Forbidden."""
        self._require(scope, name, Verb.RELEASE)
        found = [hold for hold in self.store.holds.all() if (hold.scope, hold.name) == (scope, name)]
        found = found or [hold for hold in self.lifted() if (hold.scope, hold.name) == (scope, name)]
        if not found:
            what = "everything" if scope is Scope.EVERYTHING else f"{scope} {name!r}"
            raise NoSuch(f"there is no hold on {what}; 'spinney holds' shows those there are")
        for hold in found:  # all or none, as far as the rights go
            self._require_mine(hold)
        return found

    def lifted(self) -> list[Hold]:
        """Holds in sight that were released while the jobs which they kept do not all go on yet."""
        found = self.store.holds.lifted()
        return [hold for hold in found if self._unlimited or self._sees(hold)]

    def sweep(self) -> None:
        """Go on until every job stands as the holds say, resting between steps so that others can write."""
        self.require(Role.SUBMITTER, "lay or release holds")
        steps = 0
        while self.store.holds.sweep(now_us=self.clock()):
            self.rest(SWEEP_REST_FACTOR * self.store.holds.took_s)
            steps += 1
            if steps % NUDGE_EVERY == 0:
                self.wake_nodes()
        self.wake_nodes()

    # --- who may --------------------------------------------------------------------------

    @property
    def _unlimited(self) -> bool:
        return self.rights.everywhere and self.rights.permits(Role.OPERATOR)

    def _require(self, scope: Scope, name: str, verb: Verb) -> None:
        """Raise Forbidden, NoSuchJob unless all that such a hold covers is within the limits."""
        if self._unlimited:
            return
        what = f"{verb} {'everything' if scope is Scope.EVERYTHING else f'the {scope} {name!r}'}"
        if scope in (Scope.JOB, Scope.TREE):
            self._require_reached(scope, name, verb)
            return
        self.require(Role.OPERATOR, what)
        within = self.rights.within
        wholly = (scope is Scope.QUEUE and within.collections is None and name in (within.queues or ())) or (
            scope is Scope.COLLECTION and within.queues is None and name in (within.collections or ())
        )
        if not wholly:
            raise Forbidden(
                f"{self.by} is limited to {limits(self.rights)} and may not {what}, which is more; {ASK}"
            )

    def _require_reached(self, scope: Scope, name: str, verb: Verb) -> None:
        """Of one job, or of it and all below."""
        order = Order(verb=Verb.HOLD)  # what lies on the job already is asked of the hold itself
        order_scope = OrderScope(service=self, order=order)
        order_scope.require()
        _require_number(name, verb)
        order_scope.require_job(int(name))
        job = self.store.job(int(name))
        if scope is Scope.TREE and lies_beyond(self, job):
            raise Forbidden(order_scope.beyond(job))

    def _laid(self, hold_id: int) -> Hold | None:
        there = (*self.store.holds.all(), *self.store.holds.lifted())
        return next((hold for hold in there if hold.id == hold_id), None)

    def _require_mine(self, hold: Hold) -> None:
        """Raise NoSuch where the hold is out of sight, Forbidden unless who asks might have laid it; a submitter
        releases what he laid himself."""
        if self._unlimited:
            return
        gone = NoSuch(f"there is no hold {hold.id} (any more); 'spinney holds' shows those there are")
        if not self._sees(hold):
            raise gone
        try:
            self._require(hold.scope, hold.name, Verb.RELEASE)
        except NoSuchJob:
            raise gone from None
        if hold.by != self.by and not self.rights.permits(Role.OPERATOR):
            raise Forbidden(
                f"{self.by} is a submitter and may not release hold {hold.id}, which {hold.by} laid: ask {hold.by}, "
                f"or an operator"
            )

    def _sees(self, hold: Hold) -> bool:
        """Whether a wide hold may be spoken of; one on a job or tree is seen with that."""
        within = self.rights.within
        names_seen = {Scope.QUEUE: within.queues, Scope.COLLECTION: within.collections}.get(hold.scope)
        if hold.scope is Scope.SUBMITTER:
            return self.rights.everywhere or hold.name == self.by
        return names_seen is None or hold.name in names_seen


def _require_number(name: str, verb: Verb) -> None:
    digits = name.isascii() and name.isdigit() and len(name) <= len(str(JOB_ID_MAX))
    if not digits or not 1 <= int(name) <= JOB_ID_MAX:
        raise UsageError(f"{name!r:.60} is no number of a job; name the job to {verb} by its number")
