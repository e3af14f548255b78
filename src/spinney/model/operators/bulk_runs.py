"""What a bulk run would do, and what it has done so far.

A run begins with a ``Plan``, which a person may look at first. It has the highest job id of that moment, so
that jobs that are submitted later are not reached. Then it is a series of transactions, each of which returns
a ``BulkStep``, and a ``Report`` adds them up. A run that is interrupted may be
given again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spinney.model.errors import SpinneyError
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import Order


class TreePosition(NamedTuple):
    """How far the cancel of a tree has come."""

    lineage: str
    """The lineage of the last job that was looked at; empty: none was."""
    since_us: int
    """When it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkStep:
    """What one bounded transaction of a bulk verb did."""

    touched: Sequence[int]
    """Jobs to which the verb was applied."""
    reopened: Sequence[int] = ()
    """Other jobs that wait again because of it: ancestors and dependants."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """Jobs for which the verb was refused, and why; the others are done."""
    errors: Mapping[int, SpinneyError] = field(default_factory=dict, compare=False)
    """The exceptions of ``refused``, from which ``service.visibility`` words what a caller with limits is shown."""
    skipped: Sequence[int] = ()
    """Jobs that do not match any more: the verb was already applied to them, or their state has changed."""
    instead: Sequence[int] = ()
    """retry: jobs that failed because of their children; the children are to be retried instead
    (``failed_children``)."""
    unfinished: Sequence[int] = ()
    """Jobs that were not reached or not finished within one transaction: to be passed to the next step."""
    positions: Mapping[int, TreePosition] = field(default_factory=dict)
    """Where to go on in the trees of jobs in ``unfinished``: to be passed to the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCount:
    """How many jobs would run a stage."""

    type: str
    stage: str
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The jobs that a bulk run would try, and how many they are, for a person or program to confirm."""

    order: Order
    job_filter: Filter | None
    """The filter of the jobs; None: they are named by their ids."""
    ids: tuple[int, ...] = ()
    last: int = 0
    """The highest job id when the plan was made."""
    jobs: int = 0
    """How many jobs match (``matching``). In an exact plan: how many would be changed."""
    matching: int = 0
    """How many jobs match; of named jobs, how many are in a state that allows the verb."""
    more: bool = False
    """There are more than ``jobs``; counting ended there."""
    newest: tuple[int, ...] = ()
    """The newest of the jobs that were counted in ``jobs``, without those of ``and_after`` unless the plan is exact."""
    stages: Sequence[StageCount] | None = None
    """The stages that would run again, which an exact plan of a retry or rerun has; None: they were not looked for."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """In an exact plan: jobs for which the verb would be refused, and why."""


@dataclass(slots=True, kw_only=True)
class Report:
    """What a run has done so far."""

    touched: int = 0
    reopened: int = 0
    skipped: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    """Jobs for which the verb was refused, and why; one that a later step changes is removed."""
    stopped: str | None = None
    """Why a canary stopped the operation; None: none did."""

    def add(self, step: BulkStep) -> None:
        """Add what a step did. A job that was refused before and is changed now is no refusal any more."""
        self.touched += len(step.touched)
        self.reopened += len(step.reopened)
        self.skipped += len(step.skipped)
        for job_id in (*step.touched, *step.reopened, *step.skipped):
            self.refused.pop(job_id, None)
        self.refused |= step.refused
