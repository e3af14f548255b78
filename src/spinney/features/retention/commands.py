"""The commands for retention: how long settled jobs are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import Name, Reason
from spinney.define.params.duration_field import DurationField
from spinney.model.access import Role
from spinney.model.settings.retention import ALL_TYPES, RetentionRule
from spinney.model.trusted_clock import TrustedClock
from spinney.model.types import KEEP_MAX_S
from spinney.model.values.lists import All
from spinney.service.service import Service

TypeOrAll = Annotated[Name, Field(description="The job type, or `*` for all.", examples=["resize"])]
StateName = Annotated[Name, Field(description="A state of settled jobs.", examples=["completed"])]
Period = Annotated[
    float, WithJsonSchema({"type": "number", "minimum": 0, "maximum": KEEP_MAX_S}), DurationField()
]
_TO = "set how long jobs are kept"
"""The end of the sentence that refuses a caller without the role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionChange:
    """The rule that was set, and its effect on others."""

    keeping: RetentionRule
    overruled: Sequence[RetentionRule] = ()
    """Rules that types declare, and that it overrides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetResult:
    """Whether there was a rule to remove."""

    unset: bool
    """Whether a rule was removed; false: none was set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionClock:
    """The clock by which nodes remove jobs whose time is over."""

    trusted_us: int | None
    """The latest time at which the leader's clock, or a server's where no node leads, was trusted; null: none has
    looked yet."""
    jumped_us: int | None = None
    """The time that this clock showed after a jump ahead; until ``trusted_again_us`` nodes remove no jobs."""
    trusted_again_us: int | None = None
    """The time from which on that clock is trusted; null: it has not jumped."""

    @classmethod
    def of(cls, clock: TrustedClock | None) -> "RetentionClock":
        if clock is None:
            return cls(trusted_us=None)
        return cls(
            trusted_us=clock.trusted_us, jumped_us=clock.jumped_us, trusted_again_us=clock.trusted_again_us
        )


class ListRetention(Command, route="GET /retention"):
    """List how long settled jobs are kept.

    The rules that operators set, and those that types declare."""

    def run(self, service: Service) -> All[RetentionRule]:
        return All(items=service.store.retention.all())


class ShowRetentionClock(Command, route="GET /retention/clock"):
    """Show whether nodes remove jobs whose time is over.

    A leader whose clock has jumped ahead removes nothing, until it has gone on for a day or an admin sweeps."""

    def run(self, service: Service) -> RetentionClock:
        return RetentionClock.of(service.store.retention.clock())


class SetRetention(Command, route="PUT /retention/{type}/{state}", role=Role.ADMIN, everywhere=True, to=_TO):
    """Set how long settled jobs are kept.

    The rule for the job at the top of a tree applies to the whole tree."""

    type: TypeOrAll
    state: StateName
    keep_s: Period | None = Field(
        description="How long jobs are kept after they have settled: seconds, or text such as `30d`; null: for ever.",
        examples=[2_592_000],
    )
    reason: Reason = None

    def run(self, service: Service) -> RetentionChange:
        rules, actor = service.store.retention, service.actor(self.reason)
        done = rules.set(self.type, self.state, self.keep_s, actor, now_us=service.clock())
        overruled = [
            rule
            for rule in rules.all()
            if rule.state == self.state
            and self.type in (rule.type, ALL_TYPES)
            and not rule.in_force
            and rule.keep_s != self.keep_s
        ]
        return RetentionChange(keeping=done, overruled=overruled)


class UnsetRetention(
    Command, route="DELETE /retention/{type}/{state}", role=Role.ADMIN, everywhere=True, to=_TO
):
    """Remove a rule that was set.

    The rule that the type declares applies again."""

    type: TypeOrAll
    state: StateName
    reason: Reason = None

    def run(self, service: Service) -> UnsetResult:
        actor = service.actor(self.reason)
        unset = service.store.retention.unset(self.type, self.state, actor, now_us=service.clock())
        return UnsetResult(unset=unset)
