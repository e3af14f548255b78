"""The doctor: what must not be, in words, and its repairs, each looked at again and under audit."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from spinney.model.access import Role
from spinney.model.errors import SpinneyError, UsageError
from spinney.model.jobs import NodeInfo
from spinney.model.rights.operators import Actor, Check, Violation
from spinney.model.values.hints import did_you_mean
from spinney.service.service import Service

ROUNDS = 20
"""A repair may bring to light what was hidden behind it; so it is examined anew until a round repairs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult:
    """What became of one violation."""

    violation: Violation
    repaired: bool
    """False: it was gone already, or see ``error``."""
    error: str | None = None
    """Why it could not be repaired."""


class Checker(Protocol):
    """Checks and repairs invariants: of the database (``SqlDoctor``), or of the folders (``FolderCheck``)."""

    def checks(self) -> Sequence[Check]:
        """Return the rules, in the order in which they are checked."""

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        """Check all rules (or only these), and yield each violation as it is found. ``deep``: also the rules that take
        long."""

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        """Repair a violation if it still exists, and return whether anything was changed. Raises SpinneyError when it
        cannot be repaired as things are."""


class Doctor(Service):
    """``others`` examine what lies outside of the database: folders. It sees all there is, so it takes an operator
    without limits; others get Forbidden."""

    def checks(self, others: Sequence[Checker] = ()) -> list[Check]:
        """All invariants that are known."""
        return [check for examiner in self._all(others) for check in examiner.checks()]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, others: Sequence[Checker] = ()
    ) -> Iterator[Violation]:
        """Everything that must not be, rule by rule, as it is found. Changes nothing.

        Raises UsageError when ``only`` names a rule that there is not.
        """
        self.require_everywhere(Role.OPERATOR, "examine the store")
        self._require_known(only, others)
        return self._examined(only, deep, others)

    def _examined(
        self, only: Collection[str] | None, deep: bool, others: Sequence[Checker]
    ) -> Iterator[Violation]:
        now_us = self.clock()
        for examiner in self._all(others):
            yield from examiner.examine(only, deep=deep, now_us=now_us)

    def repair(
        self, only: Collection[str] | None = None, *, deep: bool = False, others: Sequence[Checker] = ()
    ) -> Iterator[RepairResult]:
        """Repair whatever can be, round after round, until there is nothing left that can. Each is a step of its
        own, and this may be left off after any. The nodes are woken in the end."""
        self.require_everywhere(Role.OPERATOR, "repair the store")
        self._require_known(only, others)
        return self._repaired(only, deep, others)

    def _repaired(
        self, only: Collection[str] | None, deep: bool, others: Sequence[Checker]
    ) -> Iterator[RepairResult]:
        actor = self.actor()
        given_up: set[tuple[str, str]] = set()
        for _ in range(ROUNDS):
            repaired = 0
            for examiner in self._all(others):
                for violation in examiner.examine(only, deep=deep, now_us=self.clock()):
                    which = (violation.rule, violation.subject)
                    if violation.repair is None or which in given_up:
                        continue
                    try:
                        done = examiner.repair(violation, actor, now_us=self.clock())
                    except SpinneyError as error:
                        given_up.add(which)
                        yield RepairResult(violation=violation, repaired=False, error=str(error))
                        continue
                    repaired += done
                    yield RepairResult(violation=violation, repaired=done)
            self.wake_nodes()
            if not repaired:
                return

    def recover_dead_node(
        self, name: str, recover: Callable[[NodeInfo], Sequence[int]] | None = None
    ) -> list[int]:
        """Take back the work of a node that somebody knows to be dead; returns the jobs concerned.

        ``recover`` does so for one incarnation, where somebody knows more of it than the store does.
        Raises Refused when it has beaten lately, or is not there.
        """
        self.require_everywhere(Role.OPERATOR, "declare nodes dead")
        concerned: list[int] = []
        for node in self.store.doctor.declare_dead(name, self.actor(), now_us=self.clock()):
            if recover is not None:
                concerned += recover(node)
            concerned += self.store.recover(node.id, None, now_us=self.clock())
        self.wake_nodes()
        return concerned

    def _all(self, others: Sequence[Checker]) -> list[Checker]:
        return [self.store.doctor, *others]

    def _require_known(self, only: Collection[str] | None, others: Sequence[Checker]) -> None:
        known = {check.rule for check in self.checks(others)}
        for rule in only or ():
            if rule not in known:
                raise UsageError(
                    f"the doctor has no rule {rule!r}{did_you_mean(rule, known)}; 'spinney doctor --rules' lists them"
                )
