"""How long settled jobs are kept: operators' rules take precedence over those that a job type declares.

The rule of the root decides for its whole tree, whatever the types and states below it: a batch whose children were
deleted first could neither be explained nor retried.

The time counts from the moment at which the root settled, or was deleted. A root that is opened again begins
anew when it settles. An operator's rule "for ever" is a rule, too: it overrides the one of the type."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spinney.model.types import TypeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """How long settled jobs of a type and state are kept."""

    type: str
    """The job type; ``*``: all types."""
    state: str
    keep_s: float | None
    """Seconds after settling; None: for ever."""
    by: str
    """The operator who set it; empty: the type declares it."""
    in_force: bool = True
    """False: an operator's rule overrides it."""


ALL_TYPES = "*"
"""The name that stands for all types. No type can have it."""


class RetentionRules:
    """The rules in force, as of one moment."""

    def __init__(self, set_: Iterable[RetentionRule], types: Mapping[str, TypeSpec]) -> None:
        """``set_``: the rules that operators have set; ``types``: the job types, whose own rules count where those say
        nothing."""
        self._set = {(k.type, k.state): k for k in set_}
        self._types = types

    def keep_s(self, type_: str, state: str) -> float | None:
        """Return the seconds for which jobs of this type are kept after they settled in this state; None: for ever.

        The first rule counts of: an operator's for this type, an operator's for all types, the type's own.
        """
        for name in (type_, ALL_TYPES):
            rule = self._set.get((name, state))
            if rule is not None:
                return rule.keep_s
        spec = self._types.get(type_)
        return None if spec is None else spec.keep.get(state)

    @property
    def any(self) -> bool:
        """Return whether any jobs are not kept for ever; if not, nobody has to look for trees whose time is
        over."""
        return any(k.in_force and k.keep_s is not None for k in self.all_rules())

    def all_rules(self) -> list[RetentionRule]:
        """Return all rules of operators and types, by type and state, including those that another overrides."""
        rules = list(self._set.values())
        for spec in self._types.values():
            for state, keep_s in spec.keep.items():
                overruled = any((name, state) in self._set for name in (spec.name, ALL_TYPES))
                rules.append(
                    RetentionRule(
                        type=spec.name, state=str(state), keep_s=keep_s, by="", in_force=not overruled
                    )
                )
        return sorted(rules, key=lambda rule: (rule.type, rule.state, not rule.in_force))
