"""The doctor: it checks the invariants of a store and its folders, and repairs what is safe to repair.

An examination asks one checker after the other (the database first, then the folders that this process sees)
and only reads. A repair examines in the same order and repairs each violation where it is found, before the
next one is looked for; each repair is a transaction of its own that checks again first and writes its entry
into the audit log. So a crash or an interruption leaves every violation either repaired and recorded, or as
it was.
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
    """The violation as it was found, before the repair."""
    repaired: bool
    """Whether something was changed. False without an ``error``: the violation had gone by itself before its
    turn came."""
    error: str | None = None
    """Why it could not be repaired, in a sentence; None: there was nothing to object to. It is not tried
    again in this call."""


class Checker(Protocol):
    """Checks and repairs the invariants of one place: the database (``SqlDoctor``), the folders of jobs
    (``FolderCheck``) or the links to them (``ViewCheck``)."""

    def checks(self) -> Sequence[Check]:
        """Return the rules, in the order in which they are checked."""

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        """Check all rules, or only those named, and yield each violation as soon as it is found.

        Names of other checkers' rules are ignored. ``deep``: also the rules that take long. ``now_us``: the
        present, in microseconds since 1970 UTC, by which lateness is judged.
        """

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        """Repair a violation if it still exists, and return whether anything was changed.

        Raises SpinneyError when it cannot be repaired as things are.
        """


class Doctor(Service):
    """Checks and repairs a whole store. All of its methods require an operator without limits, and raise
    Forbidden for others, since violations name jobs and nodes of everybody.

    ``others`` are checkers of what lies outside of the database: the folders. ``only`` names the rules to
    check; None or empty: all.
    """

    def checks(self, others: Sequence[Checker] = ()) -> list[Check]:
        """Return all rules, those of the database first, in the order in which they are examined. This needs
        no rights."""
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
        """Repair whatever can be repaired, round after round until a round repairs nothing, and wake the
        nodes after each round.

        Yields a result for each violation that has a repair, also for those that were refused or had gone.
        Each repair is a transaction of its own, so that the caller may stop after any of them. Raises
        UsageError when ``only`` names a rule that does not exist; both checks are made before the first
        result is asked for.
        """
        self.require_everywhere(Role.OPERATOR, "repair the store")
        self._require_rules(only, others)
        return self._repaired(only or None, deep, others)

    def _repaired(
        self, only: Collection[str] | None, deep: bool, others: Sequence[Checker]
    ) -> Iterator[RepairResult]:
        """Repair in rounds, at most ``ROUNDS``, until a round repairs nothing: a repair may bring another
        violation to light. A violation that was refused is not tried again."""
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
        self,
        name: str,
        recover: Callable[[NodeInfo], Sequence[int]] | None = None,
        gone: Collection[int] = (),
    ) -> list[int]:
        """Declare all incarnations of a node dead on an operator's word, take their work back, and return the
        ids of their jobs.

        ``recover`` is called for each incarnation before its leases in the store are taken back, where the
        caller has more than the store to go by (what the dead node left on this host), and returns the jobs
        that it has taken back itself. ``gone``: ids of incarnations that the caller has proven to have ended. Raises
        Refused when another one of that name has sent a heartbeat within the last minute, or none is left.
        """
        self.require_everywhere(Role.OPERATOR, "declare nodes dead")
        jobs: list[int] = []
        for node in self.store.doctor.declare_dead(name, self.actor(), gone=gone, now_us=self.clock()):
            if recover is not None:
                jobs += recover(node)
            jobs += self.store.recover(node.id, None, now_us=self.clock())
        self.wake_nodes()
        return jobs

    def _all(self, others: Sequence[Checker]) -> list[Checker]:
        return [self.store.doctor, *others]

    def _require_rules(self, only: Collection[str] | None, others: Sequence[Checker]) -> None:
        """Raise UsageError, with the name that was probably meant, when ``only`` names a rule that no checker
        has."""
        rules = {check.rule for check in self.checks(others)}
        for rule in only or ():
            if rule not in rules:
                raise UsageError(
                    f"the doctor has no rule {rule!r}{did_you_mean(rule, rules)}; 'spinney doctor --rules' lists them"
                )
