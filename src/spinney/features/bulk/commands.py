"""Verbs on many jobs as commands: the plan, and the run with its progress.

A server bounds what one request may name (``IDS_MAX``) and how many canaries it watches at once, because a canary waits
long in one of its few threads. The answer lists a bounded number of refusals; a caller with the store gets all of them.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from spinney.commands import Command
from spinney.commands.fields import BoundedNumber, Moment, Priority, Reason, Word
from spinney.commands.job_filter import JobFilterBody
from spinney.define.params.duration_field import DurationField
from spinney.features.bulk.service import Bulk
from spinney.features.bulk.step_run import STEP
from spinney.model.errors import Refused, TooManyAttempts, UsageError
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import BulkStep, Plan, Report
from spinney.schemas import BulkPreview, BulkProgress, BulkResult, CanaryProgress
from spinney.service.canary import Canary, CanaryRun
from spinney.service.service import Service

IDS_MAX = 10_000
"""The most jobs that a request may name through a server. A filter may match any number."""
REFUSALS_LISTED = 1_000
"""How many refusals an answer of a server lists; the others are only counted."""
CANARY_MOST_S = 3_600.0
"""How long a server waits for the jobs of a canary at most, each time, in seconds."""
AGAIN_S = 30.0
"""How many seconds a client is told to wait while a server watches another canary."""

_canary_watched = threading.Lock()
"""Held while this process, as a server, waits for a canary."""


class CanaryFields(BaseModel):
    """The settings of a canary: a few jobs run first, and all others only if few of those fail."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    first: Annotated[int, Field(ge=1, le=IDS_MAX)] = Field(
        description="How many jobs go first.", examples=[10]
    )
    stop_at: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.1, description="The share of failures, 0 to 1, at which the operation stops."
    )
    patience_s: Annotated[float, Field(gt=0), DurationField()] | None = Field(
        default=600.0,
        description="How long each check waits for jobs to settle: seconds, or text such as `5m`; null: as long as "
        "they take. A server waits an hour at most.",
    )

    def canary(self, service: Service) -> Canary:
        """Return the canary, with its patience limited to what a server can wait."""
        patience_s = self.patience_s
        if not service.is_local:
            patience_s = CANARY_MOST_S if patience_s is None else min(patience_s, CANARY_MOST_S)
        return Canary(first=self.first, stop_at=self.stop_at, patience_s=patience_s)


class _BulkCommand(Command, route="POST /jobs/verbs"):
    """The fields that plan and run have in common: the verb, to which jobs it is applied, and the particulars
    of some verbs."""

    verb: Annotated[Verb, Field(strict=False, description="The verb that is applied to the jobs.")]
    filter: JobFilterBody | None = Field(
        default=None,
        description="The jobs are all that match this filter; at least one of its fields must be set.",
    )
    ids: (
        Annotated[list[BoundedNumber], Field(min_length=1, json_schema_extra={"maxItems": IDS_MAX})] | None
    ) = Field(
        default=None, description="The numbers of the jobs; with a filter, only those of them that match."
    )
    reason: Reason = None
    stage: Word | None = Field(
        default=None, description="For retry and rerun: the stage from which jobs continue."
    )
    and_after: bool = Field(
        default=False,
        description="For retry and rerun: also run again what finished after the first failure of its tree.",
    )
    tree: bool = Field(default=False, description="For cancel: also cancel all jobs below them.")
    queue: Word | None = Field(
        default=None,
        description="For move: the new queue. For retry and rerun: the queue in which jobs run again.",
    )
    priority: Priority | None = Field(default=None, description="For priority: the new priority.")
    until: Moment | None = Field(default=None, description="For hold: when the holds end by themselves.")

    def _plan(self, service: Service, *, exact: bool) -> Plan:
        """Return the plan of this command. Raises UsageError when it names no jobs, or too many through a server, and
        what ``Bulk.plan`` raises."""
        if self.ids is None and (self.filter is None or not self.filter.model_fields_set):
            raise UsageError(
                f"name the jobs to {self.verb} in ids, or choose them with filter, with at least one field"
            )
        if len(self.ids or ()) > IDS_MAX and not service.is_local:
            raise UsageError(
                f"more than {IDS_MAX:,} jobs are named in ids; name fewer, or choose them with filter"
            )
        order = bulk_order(self.verb, **self.model_dump(include=_ORDER))
        job_filter = None if self.filter is None else self.filter.filter(service)
        return service.part(Bulk).plan(order, job_filter, self.ids or (), exact=exact)


_ORDER = {"reason", "stage", "and_after", "tree", "queue", "priority", "until"}
"""The fields of a command that belong to its order."""


class PlanBulk(_BulkCommand, route="POST /jobs/verbs", dry_run=True, long=True):
    """Count the jobs to which a verb would be applied, and say why it would be refused for others."""

    exact: bool = Field(
        default=True,
        description="With dry_run: try the operation, which takes as long as doing it and also lists the refusals and "
        "the stages that would run again; false: only count the jobs that match.",
    )

    def run(self, service: Service) -> BulkPreview:
        plan = self._plan(service, exact=self.exact)
        return BulkPreview(
            verb=self.verb,
            jobs=plan.jobs,
            more=plan.more,
            stages=plan.stages or (),
            sample=sorted(plan.newest),
            matching=plan.matching,
            refused=_listed(plan.refused, service),
            refused_jobs=len(plan.refused),
        )


class RunBulk(
    _BulkCommand,
    route="POST /jobs/verbs",
    long=True,
    progress={"step": BulkProgress, "canary": CanaryProgress},
):
    """Apply a verb to many jobs.

    The jobs are those in `ids`, all that match `filter`, or those in `ids` that match it. Look first with `dry_run`,
    then give the number that it reports as `expect`. A client that disconnects stops the run after the step that is
    being done; the same request, given again, does the rest. A rerun by `filter` needs `settled_before` in it for that,
    as the steps report it: otherwise it also takes what has run again since.
    """

    expect: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Refuse the operation unless it would apply to exactly this many jobs, as the dry run reported.",
    )
    canary: CanaryFields | None = Field(
        default=None,
        description="For retry and rerun: run a few jobs first, and the others only if few of those fail.",
    )
    one_by_one: bool = Field(
        default=False, description="Make each of `ids` a step of its own, with its own report."
    )

    def uses_folders(self) -> bool:
        return self.verb is Verb.DELETE

    def run(self, service: Service) -> BulkResult:
        """Plan, compare the number with ``expect``, and carry the plan out, reporting each step and the state
        of the canary as progress."""
        plan = self._plan(service, exact=self.expect is not None)
        if self.expect is not None and (plan.jobs != self.expect or plan.more):
            raise Refused(
                f"the operation would now apply to {'more than ' if plan.more else ''}{plan.jobs:,} jobs, not to "
                f"{self.expect:,}; look again with dry_run"
            )
        canary = None if self.canary is None else self.canary.canary(service)

        def tell_step(report: Report, step: BulkStep) -> None:
            service.tell(_progress(plan, report, step))

        def tell_canary(_: Report, run: CanaryRun) -> None:
            service.tell(CanaryProgress(begun=run.begun, rested=run.rested, bad=run.bad))

        with _room_for(canary, service):
            report = service.part(Bulk).run(
                plan,
                canary=canary,
                at_once=1 if self.one_by_one else STEP,
                on_step=tell_step,
                on_canary_check=tell_canary,
            )
        return BulkResult(
            verb=self.verb,
            touched=report.touched,
            reopened=report.reopened,
            skipped=report.skipped,
            refused=_listed(report.refused, service),
            refused_jobs=len(report.refused),
            stopped=report.stopped,
        )


def bulk_order(verb: Verb, *, until: int | None = None, **particulars: Any) -> Order:
    """Return the order that the fields of a command give."""
    return Order(verb=verb, until_us=until, **particulars)


def _listed(refused: Mapping[int, str], service: Service) -> Mapping[int, str]:
    """Return the refusals that an answer lists: a caller with the store gets all of them."""
    return dict(islice(refused.items(), None if service.is_local else REFUSALS_LISTED))


def _progress(plan: Plan, report: Report, step: BulkStep) -> BulkProgress:
    """Return what a step reports to the caller: the counts so far, and the jobs of this step."""
    return BulkProgress(
        touched=report.touched,
        reopened=report.reopened,
        skipped=report.skipped,
        refused=len(report.refused),
        jobs=step.touched,
        waiting=step.reopened,
        more=bool(step.unfinished),
        settled_before=None if plan.job_filter is None else plan.job_filter.settled_before_us,
    )


@contextmanager
def _room_for(canary: Canary | None, service: Service) -> Iterator[None]:
    """Let one canary at a time run in a server, because it waits long in one of its few threads.

    Raises TooManyAttempts when another is being watched. A caller with the store waits in a process of its
    own.
    """
    if canary is None or service.is_local:
        yield
        return
    if not _canary_watched.acquire(blocking=False):
        raise TooManyAttempts(AGAIN_S, why="another canary is being watched by this server")
    try:
        yield
    finally:
        _canary_watched.release()
