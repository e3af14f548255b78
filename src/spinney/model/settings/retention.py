"""How long settled jobs are kept: what operators set wins over what a job type declares.

The rule of the job at the top decides for its whole tree, whatever the types and states below it: a batch
whose children went before it could not be explained any more, nor retried.
"""

from collections.abc import Iterable, Mapping

from spinney.model.rights.operators import RetentionRule
from spinney.model.types import TypeSpec

ALL_TYPES = "*"
"""In place of a type: for all of them. No type can be named so."""


class RetentionRules:
    """What is in force, for one moment."""

    def __init__(self, set_: Iterable[RetentionRule], types: Mapping[str, TypeSpec]) -> None:
        """``set_``: what operators said."""
        self._set = {(k.type, k.state): k for k in set_}
        self._types = types

    def keep_s(self, type_: str, state: str) -> float | None:
        """Seconds for which jobs of this type are kept after they settled so; None: for ever.

        The first that says something: an operator for this type, an operator for all types, the type itself.
        """
        for name in (type_, ALL_TYPES):
            found = self._set.get((name, state))
            if found is not None:
                return found.keep_s
        spec = self._types.get(type_)
        return None if spec is None else spec.keep.get(state)

    @property
    def any(self) -> bool:
        """Whether anything at all is kept for less than ever."""
        return any(k.in_force and k.keep_s is not None for k in self.told())

    def told(self) -> list[RetentionRule]:
        """All that operators set and types declare, by type and state, with those that another overrules."""
        found = list(self._set.values())
        for spec in self._types.values():
            for state, keep_s in spec.keep.items():
                overruled = any((name, state) in self._set for name in (spec.name, ALL_TYPES))
                found.append(
                    RetentionRule(
                        type=spec.name, state=str(state), keep_s=keep_s, by="", in_force=not overruled
                    )
                )
        return sorted(found, key=lambda k: (k.type, k.state, not k.in_force))
