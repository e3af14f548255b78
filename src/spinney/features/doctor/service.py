"""The doctor: it checks the invariants of a store and its folders, and repairs what is safe to repair.

Every repair checks again first, and has its entry in the audit log.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from spinney.features.doctor.checks import Check, Violation
from spinney.model.access import Role
from spinney.model.errors import SpinneyError, UsageError
from spinney.model.jobs import NodeInfo
from spinney.model.rights.actor import Actor
from spinney.model.values.hints import did_you_mean
from spinney.service.service import Service

ROUNDS = 20
"""A repair may uncover a violation that was hidden behind it, so everything is examined again until a round repairs
nothing; but no more often than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult:
    """The outcome of the repair of one violation, or of the steps that it took."""

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
    """Checks and repairs a whole store, so that it takes an operator without limits; others get Forbidden.

    ``others`` are checkers of what lies outside of the database: the folders. ``only`` names the rules to check.
    """

    def checks(self, others: Sequence[Checker] = ()) -> list[Check]:
        """Return all rules, those of the database first, in the order in which they are examined."""
        return [check for checker in self._all(others) for check in checker.checks()]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, others: Sequence[Checker] = ()
    ) -> Iterator[Violation]:
        """Yield every violation, rule by rule, as it is found. Changes nothing.

        ``deep`` also checks what takes long. Raises UsageError when ``only`` names a rule that does not exist.
        """
        self.require_everywhere(Role.OPERATOR, "examine the store")
        self._require_rules(only, others)
        now_us = self.clock()
        return chain.from_iterable(
            checker.examine(only or None, deep=deep, now_us=now_us) for checker in self._all(others)
        )

    def repair(
        self, only: Collection[str] | None = None, *, deep: bool = False, others: Sequence[Checker] = ()
    ) -> Iterator[RepairResult]:
        """Repair whatever can be repaired, round after round until a round repairs nothing, and wake the nodes.

        Each repair is a transaction of its own, so that the caller may stop after any of them.
        """
        self.require_everywhere(Role.OPERATOR, "repair the store")
        self._require_rules(only, others)
        return self._repaired(only or None, deep, others)

    def _repaired(
        self, only: Collection[str] | None, deep: bool, others: Sequence[Checker]
    ) -> Iterator[RepairResult]:
        """Repair in rounds, at most ``ROUNDS``, until a round repairs nothing: a repair may bring another violation to
        light. One that was refused is not tried again."""
        actor = self.actor()
        refused: set[tuple[str, str]] = set()
        for _ in range(ROUNDS):
            repaired = 0
            for checker in self._all(others):
                for violation in checker.examine(only, deep=deep, now_us=self.clock()):
                    key = (violation.rule, violation.subject)
                    if violation.repair is None or key in refused:
                        continue
                    try:
                        done = checker.repair(violation, actor, now_us=self.clock())
                    except SpinneyError as error:
                        refused.add(key)
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
        """Take back the work of a node that an operator knows to be dead, and return the ids of its jobs.

        ``recover`` does so for one incarnation of the node, where the caller has more than the store to go by (the
        records on its host). Raises Refused when the node has sent a heartbeat lately, or does not exist.
        """
        self.require_everywhere(Role.OPERATOR, "declare nodes dead")
        jobs: list[int] = []
        for node in self.store.doctor.declare_dead(name, self.actor(), now_us=self.clock()):
            if recover is not None:
                jobs += recover(node)
            jobs += self.store.recover(node.id, None, now_us=self.clock())
        self.wake_nodes()
        return jobs

    def _all(self, others: Sequence[Checker]) -> list[Checker]:
        return [self.store.doctor, *others]

    def _require_rules(self, only: Collection[str] | None, others: Sequence[Checker]) -> None:
        rules = {check.rule for check in self.checks(others)}
        for rule in only or ():
            if rule not in rules:
                raise UsageError(
                    f"the doctor has no rule {rule!r}{did_you_mean(rule, rules)}; 'spinney doctor --rules' lists them"
                )
