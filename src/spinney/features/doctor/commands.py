"""The commands of the doctor: list the rules, examine the store, repair it. They concern the whole store, and
take an admin without limits.

Examination and repair are long commands: they report each violation or repair as progress while they run, and
stop between two of them when the caller goes away. The answer at the end has the counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import Word
from spinney.features.doctor.checks import Check, Violation
from spinney.features.doctor.folder_check import FolderCheck
from spinney.features.doctor.service import Checker, Doctor, RepairResult
from spinney.features.doctor.view_check import ViewCheck
from spinney.model.access import Role
from spinney.model.values.lists import All
from spinney.service.service import Service

VIOLATIONS_LISTED = 1_000
"""How many violations stand in the answer of an examination; all of them are reported as progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """How many violations the doctor has found, with the first ``VIOLATIONS_LISTED`` of them."""

    violations: int
    """How many violations were found."""
    repairable: int
    """How many of them can be repaired."""
    items: Sequence[Violation]
    """The first violations, in the order in which they were found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """How many violations the doctor has repaired, and how many it could not."""

    repaired: int
    """How many violations were repaired."""
    refused: int
    """How many could not be repaired as things are."""


class ListRules(Command, route="GET /doctor/rules", role=Role.ADMIN, everywhere=True, to="examine the store"):
    """List the rules of the doctor.

    Each rule says what must hold; they are listed in the order in which they are examined.
    """

    def run(self, service: Service) -> All[Check]:
        return All(items=service.part(Doctor).checks(_others(service)))


class _RulesCommand(Command, route="POST /doctor/examine"):
    only: list[Word] = Field(
        default=[],
        max_length=1_000,
        description="Check only these rules; empty: all rules.",
        examples=[["pending-nowhere"]],
    )
    deep: bool = Field(default=False, description="Also check the rules that take long.")

    def uses_folders(self) -> bool:
        return True


class ExamineStore(
    _RulesCommand,
    route="POST /doctor/examine",
    role=Role.ADMIN,
    everywhere=True,
    to="examine the store",
    long=True,
    progress={"violation": Violation},
):
    """Examine the store and its folders.

    Changes nothing, and is safe while nodes work. A server examines the folders that it sees itself."""

    def run(self, service: Service) -> Examination:
        """Report each violation as progress; the answer has the counts and the first violations."""
        violations = repairable = 0
        listed: list[Violation] = []
        for violation in service.part(Doctor).examine(self.only, deep=self.deep, others=_others(service)):
            service.go_on()
            service.tell(violation)
            violations += 1
            repairable += violation.repair is not None
            if len(listed) < VIOLATIONS_LISTED:
                listed.append(violation)
        return Examination(violations=violations, repairable=repairable, items=listed)


class RepairStore(
    _RulesCommand,
    route="POST /doctor/repair",
    role=Role.ADMIN,
    everywhere=True,
    to="repair the store",
    long=True,
    progress={"repair": RepairResult},
):
    """Repair what can be repaired safely.

    Each repair examines again before it changes anything, and is in the audit. A client that disconnects
    stops it after the repair that is being made.
    """

    def run(self, service: Service) -> Repairs:
        """Report each repair as progress; the answer has the counts."""
        repaired = refused = 0
        for result in service.part(Doctor).repair(self.only, deep=self.deep, others=_others(service)):
            repaired += result.repaired
            refused += result.error is not None
            service.tell(result)
            service.go_on()
        return Repairs(repaired=repaired, refused=refused)


def _others(service: Service) -> list[Checker]:
    """Return the checkers of the folders, where this process sees them. A server without folders checks the
    database only."""
    root = service.folder_root
    return [] if root is None else [FolderCheck(root, service.store), ViewCheck(root, service.store)]
