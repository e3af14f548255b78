"""One verb for many jobs, named by number or found by a filter: asked about, done, told.

Up to ``NAMED`` jobs that are named one by one are told one by one. More, and what a filter finds, are told
by their number, with what was refused in groups of the same reason.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import Refused, UsageError
from spinney.model.rights.operators import BulkStep, Order, Verb
from spinney.terminal import display
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.connection import open_control, resolve_settings
from spinney.terminal.exit_codes import Exit
from spinney.terminal.filters import FilterOptions

if TYPE_CHECKING:
    from spinney.control import Control
    from spinney.features.bulk.service import Bulk
    from spinney.model.bulk_runs import Plan, Report
    from spinney.service.canary import Canary, CanaryRun

NAMED = 20
"""So many jobs, and so many others that go with one, are told one by one."""
CONFIRM_ABOVE = 1_000
"""More jobs are not touched without a question."""
REASONS = 5
"""Groups of refusals that are told."""


@dataclass(frozen=True, kw_only=True)
class VerbOptions:
    """What may be said of every verb."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say to how many it would be done.")] = False
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help=f"Do not ask, however many (else above {CONFIRM_ABOVE:,}).")
    ] = False
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; kept in the audit.", show_default=False)
    ] = None
    json: JsonOption = False
    by: ByOption = None
    store: StoreOption = None


@dataclass(frozen=True, kw_only=True)
class EachOptions(FilterOptions, VerbOptions):
    """The filter in a command whose own options mean whole queues, types, collections and submitters: with any
    of these, those narrow it down, and the verb is done to every single job that fits."""

    each: Annotated[
        bool, typer.Option("--each", help="Every single job that fits now, not what comes later.")
    ] = False
    queue: None = None
    type_: None = None
    collection: None = None
    submitter: None = None
    reason: None = None
    by: None = None
    store: None = None

    def selects_jobs(self, jobs: Sequence[int] | None, *, wide: bool) -> bool:
        """Whether a filter says which single jobs are meant. Raises UsageError where that is not clear."""
        found = (
            any(getattr(self, f.name) not in (None, False, []) for f in fields(FilterOptions)) or self.each
        )
        if found and wide:
            raise UsageError("--tree, --all and --hold mean holds as a whole; leave them out, or the filter")
        if self.json and not self.dry_run and not found and not jobs:
            raise UsageError("--json is for single jobs and for --dry-run; add --each, or name the jobs")
        return found

    def run_verb(
        self,
        order: Order,
        jobs: Sequence[int] | None,
        *,
        queue: str | None,
        type_: str | None,
        collection: str | None,
        submitter: str | None,
        by: str | None,
        store: str | None,
        print_step: "PrintStep",
    ) -> None:
        """Do it to all that fit, and end the command."""
        own = {f.name: getattr(self, f.name) for f in fields(FilterOptions)}
        named = {"queue": queue, "type_": type_, "collection": collection, "submitter": submitter}
        options = VerbOptions(
            dry_run=self.dry_run, yes=self.yes, json=self.json, reason=order.reason, by=by, store=store
        )
        run_verb(order, jobs, FilterOptions(**own | named), options, print_step=print_step)


@dataclass(frozen=True)
class VerbWording:
    """How a verb is told."""

    do: str
    """In a question: ``retry 12 jobs?``."""
    done: str
    """Of many: ``12 retried``."""
    one: str
    """Of one: ``job 5 goes on``."""


_WORDINGS = {
    Verb.RETRY: VerbWording("retry", "retried", "goes on"),
    Verb.RERUN: VerbWording("rerun", "run again", "runs again"),
    Verb.CANCEL: VerbWording("cancel", "cancelled", "is cancelled, or will be when what runs has ended"),
    Verb.HOLD: VerbWording("hold", "held", "is held, or will be when its stage has ended"),
    Verb.RELEASE: VerbWording("release", "released", "is released"),
    Verb.DELETE: VerbWording("delete", "deleted", "is deleted"),
    Verb.MOVE: VerbWording("move", "moved", "is moved"),
    Verb.PRIORITY: VerbWording("give a priority to", "given priority", "is given priority"),
}
_RETRY_VERBS = (Verb.RETRY, Verb.RERUN)
PrintStep = Callable[["Control", "Plan", BulkStep], None]
"""Tells what was done to a job that was named."""


def run_verb(
    order: Order,
    jobs: Sequence[int] | None,
    which: FilterOptions,
    options: VerbOptions,
    *,
    canary: "Canary | None" = None,
    print_step: PrintStep | None = None,
) -> None:
    """The whole of a command: what it says and the code it ends with. Exit code 1 when anything was refused
    or a canary ended it."""
    if not jobs and not which.given:
        raise UsageError(
            f"name the jobs to {_WORDINGS[order.verb].do} by their numbers, or say which with a filter "
            "such as --state, "
            f"--type or --batch; 'spinney {order.verb} --help' shows them all"
            + (
                "; --queue says where they go, --in-queue finds them"
                if order.verb in _RETRY_VERBS and order.queue
                else ""
            )
        )
    with open_control(options.store, options.by) as control:
        bulk = control.bulk
        fits = which.filter(control.store) if which.given else None
        plan = bulk.plan(order, fits, jobs or (), exact=options.dry_run)
        if options.dry_run:
            _tell_plan(plan, bulk, json=options.json)
            return
        one_by_one = plan.which is None and len(plan.ids) <= NAMED and not options.json
        if not _agreed(plan, bulk, yes=options.yes):
            typer.echo("nothing was done", err=True)
            raise typer.Exit(Exit.REFUSED)
        report = _run(
            control, plan, canary, print_step or _tell_one, one_by_one=one_by_one, folders=options.store
        )
        if options.json:
            display.print_json(_summary(plan, report))
        elif not one_by_one:
            typer.echo(_counts_text(plan, report))
        _tell_refused(report, one_by_one=one_by_one)
        if report.refused or report.stopped is not None:
            raise typer.Exit(1)


# --- before -----------------------------------------------------------------------------------


def _tell_plan(plan: "Plan", bulk: "Bulk", *, json: bool) -> None:
    stages = bulk.stages(plan)
    if json:
        display.print_json({"verb": plan.order.verb, "jobs": plan.jobs, "more": plan.more, "stages": stages})
        return
    of = f" of {_jobs(len(plan.ids))}" if plan.which is None and plan.jobs != len(plan.ids) else ""
    typer.echo(f"{_number(plan)}{of} would be {_WORDINGS[plan.order.verb].done}{_whereto(plan.order)}")
    for line in _stage_lines(stages):
        typer.echo(line)


def _agreed(plan: "Plan", bulk: "Bulk", *, yes: bool) -> bool:
    """Whether to go on; asks where many jobs would be touched."""
    if yes or max(plan.jobs, len(plan.ids)) <= CONFIRM_ABOVE:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"this would {_doing(plan)}; look first with --dry-run, then say so with --yes")
    for line in _stage_lines(bulk.stages(plan)):
        typer.echo(line, err=True)
    return typer.confirm(f"{_doing(plan)}?", err=True)


def _doing(plan: "Plan") -> str:
    """``retry 12 jobs into queue urgent``."""
    if plan.order.verb is Verb.PRIORITY:
        return f"give {_number(plan)} the priority {plan.order.priority}"
    return f"{_WORDINGS[plan.order.verb].do} {_number(plan)}{_whereto(plan.order)}"


def _number(plan: "Plan") -> str:
    return f"more than {_jobs(plan.jobs)}" if plan.more else _jobs(plan.jobs)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _whereto(order: Order) -> str:
    if order.priority is not None:
        return f" {order.priority}"
    return f" into queue {display.safe(order.queue)}" if order.queue is not None else ""


def _stage_lines(stages: Sequence[Any]) -> Iterator[str]:
    """``would run again: stage 'copy' of 20 jobs, stage 'report' of 1 job``, a line for each type."""
    types = list(dict.fromkeys(count.type for count in stages))
    for type_ in types:
        told = ", ".join(f"stage {c.stage!r} of {_jobs(c.jobs)}" for c in stages if c.type == type_)
        yield f"  {type_} would run {told}"


# --- meanwhile --------------------------------------------------------------------------------


def _run(
    control: "Control",
    plan: "Plan",
    canary: "Canary | None",
    print_step: PrintStep,
    *,
    one_by_one: bool,
    folders: str | None,
) -> "Report":
    from spinney.features.bulk.step_run import STEP
    from spinney.folders import folders as job_folders

    root = resolve_settings(folders).folders
    with _progress(plan, live=not one_by_one and sys.stderr.isatty()) as shown:

        def on_step(report: "Report", step: BulkStep) -> None:
            if one_by_one and step.touched:
                print_step(control, plan, step)
            shown.step(report)

        return control.bulk.run(
            plan,
            remove=lambda job_id: job_folders.remove(root, job_id),
            canary=canary,
            at_once=1 if one_by_one else STEP,
            on_step=on_step,
            on_canary_check=shown.look,
        )


def _tell_one(control: "Control", plan: "Plan", step: BulkStep) -> None:
    job = next((n for n in step.touched if n in plan.ids), step.touched[0])
    others = [n for n in step.touched if n != job]
    with_ = f"; so with {_listed(others)}" if others else ""
    waits = f"; {_listed(step.reopened)} waits for it again" if step.reopened else ""
    typer.echo(f"job {job} {_WORDINGS[plan.order.verb].one}{_whereto(plan.order)}{with_}{waits}")


def _listed(ids: Sequence[int]) -> str:
    shown = ", ".join(str(n) for n in ids[:NAMED])
    return f"{shown} and {len(ids) - NAMED:,} more" if len(ids) > NAMED else shown


class _NoProgress:
    """What is shown meanwhile where nobody looks: nothing."""

    report: "Report | None" = None

    def step(self, report: "Report") -> None:
        self.report = report

    def look(self, report: "Report", trial: "CanaryRun") -> None:
        self.report = report


class _LiveProgress(_NoProgress):
    """A line that is written anew."""

    def __init__(self, plan: "Plan", write: Callable[[str], None]) -> None:
        self._plan, self._write = plan, write

    def step(self, report: "Report") -> None:
        super().step(report)
        self._write(f"{_counts_text(self._plan, report)} …")

    def look(self, report: "Report", trial: "CanaryRun") -> None:
        super().look(report, trial)
        open_ = trial.begun - trial.rested
        self._write(
            f"{_counts_text(self._plan, report)} so far; waiting for {_jobs(open_)} to come to rest; "
            f"{trial.bad:,} of {trial.rested:,} failed …"
        )


@contextmanager
def _progress(plan: "Plan", *, live: bool) -> Iterator[_NoProgress]:
    """Shows how far it is, where it is looked at; says so when somebody interrupts it."""
    shown = _NoProgress()
    try:
        if not live:
            yield shown
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(console=Console(stderr=True), refresh_per_second=10, transient=True) as picture:
            shown = _LiveProgress(plan, lambda line: picture.update(Text(line)))
            yield shown
    except KeyboardInterrupt:
        done = _counts_text(plan, shown.report) if shown.report is not None else "nothing was done"
        typer.echo(f"spinney: interrupted: {done}; the same command goes on with the rest", err=True)
        raise


# --- afterwards -------------------------------------------------------------------------------


def _counts_text(plan: "Plan", report: "Report") -> str:
    """``1,234 retried; 12 above them wait again; 3 refused``."""
    parts = [f"{report.touched:,} {_WORDINGS[plan.order.verb].done}{_whereto(plan.order)}"]
    if report.reopened:
        parts.append(f"{report.reopened:,} {'waits' if report.reopened == 1 else 'wait'} for them again")
    if report.skipped:
        parts.append(f"{report.skipped:,} left as {'it is' if report.skipped == 1 else 'they are'}")
    if report.refused:
        parts.append(f"{len(report.refused):,} refused")
    return (
        "; ".join(parts) if plan.jobs or report.touched or report.refused else "no job fits; nothing was done"
    )


def _summary(plan: "Plan", report: "Report") -> dict[str, Any]:
    return {
        "verb": plan.order.verb,
        "touched": report.touched,
        "reopened": report.reopened,
        "skipped": report.skipped,
        "refused": report.refused,
        "stopped": report.stopped,
    }


def _tell_refused(report: "Report", *, one_by_one: bool) -> None:
    if report.stopped is not None:
        typer.echo(f"spinney: stopped: {display.safe(report.stopped)}", err=True)
    if one_by_one:
        if len(report.refused) == 1 and not report.touched and not report.stopped:
            raise Refused(next(iter(report.refused.values())))
        for sentence in report.refused.values():
            typer.echo(f"spinney: {display.safe(sentence)}", err=True)
        return
    groups: Counter[str] = Counter(map(_shape, report.refused.values()))
    first = {_shape(s): s for s in reversed(report.refused.values())}
    for shape, count in groups.most_common(REASONS):
        like = f" (and {count - 1:,} like it)" if count > 1 else ""
        typer.echo(f"spinney: refused: {display.safe(first[shape])}{like}", err=True)
    if len(groups) > REASONS:
        typer.echo(f"spinney: and {len(groups) - REASONS:,} reasons more; --json lists them all", err=True)


def _shape(sentence: str) -> str:
    """One of all sentences that differ in numbers alone."""
    return re.sub(r"\d+", "#", sentence)
