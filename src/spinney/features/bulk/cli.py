"""What all verbs on jobs share on the command line: options, the question, progress, the report and the exit
code.

Up to ``NAMED`` jobs that are named are reported one by one. More jobs, and those that a filter finds, are
reported as numbers, with refusals grouped by their reason. The question, progress and refusals go to standard
error, so that the report can be processed.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import Refused, SpinneyError, UsageError
from spinney.model.operators.bulk_orders import Verb
from spinney.model.states import LEASED
from spinney.model.values.hints import first_of
from spinney.model.values.texts import counted
from spinney.model.values.times import from_us
from spinney.terminal.connection import open_commands
from spinney.terminal.exit_codes import Exit
from spinney.terminal.options.arguments import ByOption, JsonOption, ReasonOption, StoreOption
from spinney.terminal.options.filters import FilterOptions
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.commands import Performs
    from spinney.features.bulk.commands import CanaryFields, PlanBulk, RunBulk
    from spinney.schemas import BulkPreview, BulkProgress, BulkResult, CanaryProgress

NAMED = 20
"""Up to how many named jobs are reported one by one; and how many ids a line of the report lists."""
CONFIRM_ABOVE = 1_000
"""Above this number of jobs the command asks before it changes them."""
REASONS = 5
"""How many groups of refusals are printed."""


@dataclass(frozen=True, kw_only=True)
class VerbOptions(FilterOptions):
    """The options that every verb has: which jobs, and what is asked and printed."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print how many jobs would be changed.")] = (
        False
    )
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help=f"Do not ask for confirmation, also for more than {CONFIRM_ABOVE:,} jobs."
        ),
    ] = False
    reason: ReasonOption = None
    json: JsonOption = False
    by: ByOption = None
    store: StoreOption = None


@dataclass(frozen=True)
class VerbWording:
    """The words for a verb in questions and results of the command line."""

    do: str
    """The verb in a question: ``retry 12 jobs?``."""
    done: str
    """The verb in a report on many jobs: ``12 retried``."""
    one: str
    """The verb in a report on one job: ``job 5 goes on``."""


_WORDINGS = {
    Verb.RETRY: VerbWording("retry", "retried", "goes on"),
    Verb.RERUN: VerbWording("rerun", "run again", "runs again"),
    Verb.RUN_NOW: VerbWording("run now", "run now", "is due now"),
    Verb.CANCEL: VerbWording("cancel", "cancelled", "is cancelled"),
    Verb.HOLD: VerbWording("hold", "held", "is held, or will be when its stage has ended"),
    Verb.RELEASE: VerbWording("release", "released", "is released"),
    Verb.DELETE: VerbWording("delete", "deleted", "is deleted"),
    Verb.MOVE: VerbWording("move", "moved", "is moved"),
    Verb.PRIORITY: VerbWording("give a priority to", "given priority", "is given priority"),
}
_RETRY_VERBS = (Verb.RETRY, Verb.RERUN)
PrintStep = Callable[["Performs", "RunBulk", "BulkProgress"], None]
"""Prints what was done to a job that was named, from the step that did it."""


def run_verb(
    verb: Verb,
    jobs: Sequence[int] | None,
    options: VerbOptions,
    *,
    canary: "CanaryFields | None" = None,
    print_step: PrintStep | None = None,
    **particulars: Any,
) -> None:
    """Run the whole command of a verb: ask for confirmation, carry it out, report, and end with its exit
    code: 1 when anything was refused, or a canary ended the run.

    ``jobs`` and ``options`` say which jobs; ``particulars`` are fields of ``RunBulk``; ``print_step``
    reports on a job that was named, in place of the usual line. Raises UsageError when no jobs are given.
    """
    if not jobs and not options.has_any:
        raise UsageError(
            f"name the jobs to {_WORDINGS[verb].do} by their numbers, or choose them with a filter such as "
            f"--state, --type or --batch; 'spinney {verb} --help' shows them all"
            + (
                "; --queue says where they go, --in-queue finds them"
                if verb in _RETRY_VERBS and particulars.get("queue")
                else ""
            )
        )
    from spinney.commands.job_filter import JobFilterBody
    from spinney.features.bulk.commands import RunBulk

    with open_commands(options.store, options.by) as performer:
        values = {name: value for name, value in particulars.items() if value is not None}
        if options.has_any:
            values["filter"] = JobFilterBody(**options.filter_fields())
        if jobs:
            values["ids"] = list(dict.fromkeys(jobs))
        one_by_one = not options.has_any and len(values["ids"]) <= NAMED and not options.json
        command = RunBulk(verb=verb, reason=options.reason, canary=canary, one_by_one=one_by_one, **values)
        if options.dry_run:
            _tell_plan(performer.do(_plan(command)), command, json=options.json)
            return
        if not _agreed(performer, command, yes=options.yes):
            typer.echo("nothing was done", err=True)
            raise typer.Exit(Exit.REFUSED)
        result = _run(performer, command, print_step or _tell_one)
        if options.json:
            display.print_json({k: value for k, value in asdict(result).items() if k != "refused_jobs"})
        elif not one_by_one:
            typer.echo(_counts_text(command, result))
        elif result.skipped:
            as_before = "is left as it is" if result.skipped == 1 else "are left as they are"
            typer.echo(f"{counted(result.skipped, 'job')} {as_before}: there was nothing to change")
        _tell_refused(result, one_by_one=one_by_one)
        if result.refused or result.stopped is not None:
            raise typer.Exit(1)


# --- before the run ---------------------------------------------------------------------------


def _plan(command: "RunBulk", **how: bool) -> "PlanBulk":
    """Return the command that previews what ``command`` would do, with the options that both have."""
    from spinney.features.bulk.commands import PlanBulk

    options: dict[str, Any] = {name: getattr(command, name) for name in command.model_fields_set}
    return PlanBulk(
        **{name: value for name, value in (options | how).items() if name in PlanBulk.model_fields}
    )


def _tell_plan(preview: "BulkPreview", command: "RunBulk", *, json: bool) -> None:
    """Print to how many jobs the verb would be applied, which stages would run again, and why the verb would be refused
    for others."""
    if json:
        left_out = ("sample", "refused_jobs")
        display.print_json({name: value for name, value in asdict(preview).items() if name not in left_out})
        return
    named = len(command.ids or ()) if command.filter is None else 0
    number = f"{preview.jobs:,} of {counted(named, 'job')}" if preview.jobs < named else _number(preview)
    none = "" if preview.jobs or preview.matching or preview.refused_jobs else "; no job fits"
    typer.echo(f"{number} would be {_WORDINGS[preview.verb].done}{_whereto(command)}{none}")
    for line in _stage_lines(preview.stages):
        typer.echo(line)
    _tell_groups(preview.refused, "would be refused")


def _agreed(performer: "Performs", command: "RunBulk", *, yes: bool) -> bool:
    """Return whether to go on, after a question at the terminal when more than ``CONFIRM_ABOVE`` jobs may be
    changed.

    Raises UsageError when there is no terminal to ask at.
    """
    if yes or (command.filter is None and len(command.ids or ()) <= CONFIRM_ABOVE):
        return True
    preview = performer.do(_plan(command, exact=False))
    if max(preview.jobs, len(command.ids or ())) <= CONFIRM_ABOVE:
        return True
    doing = _doing(preview, command)
    if not sys.stdin.isatty():
        raise UsageError(f"this would {doing}; look first with --dry-run, then confirm with --yes")
    return typer.confirm(f"{doing}?", err=True)


def _doing(preview: "BulkPreview", command: "RunBulk") -> str:
    """Return what the command would do, for the question: ``retry 12 jobs into queue urgent``."""
    if command.verb is Verb.PRIORITY:
        return f"give {_number(preview)} the priority {command.priority}"
    return f"{_WORDINGS[command.verb].do} {_number(preview)}{_whereto(command)}"


def _number(preview: "BulkPreview") -> str:
    """Return the number of jobs in words; where counting ended early, with "more than"."""
    return f"more than {counted(preview.jobs, 'job')}" if preview.more else counted(preview.jobs, "job")


def _whereto(command: "RunBulk") -> str:
    """Return the queue or the priority of the command, as the end of a sentence."""
    if command.priority is not None:
        return f" {command.priority}"
    return f" into queue {display.safe(command.queue)}" if command.queue is not None else ""


def _stage_lines(stages: Sequence[Any]) -> Iterator[str]:
    """Yield a line for each type: ``would run again: stage 'copy' of 20 jobs, stage 'report' of 1 job``."""
    types = list(dict.fromkeys(count.type for count in stages))
    for type_ in types:
        counts = ", ".join(
            f"stage {c.stage!r} of {counted(c.jobs, 'job')}" for c in stages if c.type == type_
        )
        yield f"  {type_} would run {counts}"


# --- during the run ---------------------------------------------------------------------------


def _run(performer: "Performs", command: "RunBulk", print_step: PrintStep) -> "BulkResult":
    """Carry out the command, show its progress, and return the result."""
    from spinney.schemas import CanaryProgress

    steps: list[BulkProgress] = []
    """The steps on the same job so far, such as those through a large tree, which are printed as one."""

    with _progress(command, live=not command.one_by_one and sys.stderr.isatty()) as shown:

        def tell(progress: "BulkProgress | CanaryProgress") -> None:
            if isinstance(progress, CanaryProgress):
                shown.look(progress)
                return
            if command.one_by_one:
                steps.append(progress)
                if not progress.more:
                    jobs = [job for step in steps for job in step.jobs]
                    waiting = [job for step in steps for job in step.waiting]
                    if jobs:
                        print_step(performer, command, replace(progress, jobs=jobs, waiting=waiting))
                    steps.clear()
            shown.step(progress)

        return performer.do(command, tell=tell)


def _tell_one(performer: "Performs", command: "RunBulk", step: "BulkProgress") -> None:
    """Print what was done to one named job: other jobs that were changed with it, and those that wait for it
    again."""
    job = next((n for n in step.jobs if n in (command.ids or ())), step.jobs[0])
    others = [n for n in step.jobs if n != job]
    with_ = f"; the same goes for {_listed(others)}" if others else ""
    wait = "waits" if len(step.waiting) == 1 else "wait"
    waits = f"; {_listed(step.waiting)} {wait} for it again" if step.waiting else ""
    runs = ", or will be when what runs has ended, unless that completes it"
    end = runs if command.verb is Verb.CANCEL and _runs(performer, job) else _whereto(command)
    typer.echo(f"job {job} {_WORDINGS[command.verb].one}{end}{with_}{waits}")


def _runs(performer: "Performs", job: int) -> bool:
    """Return whether a node has the job, or one below it."""
    from spinney.commands.job_queries import ListJobs, ShowJob

    leased = ListJobs(below=job, state=[*LEASED], limit=1)
    return performer.do(ShowJob(job=job)).state in LEASED or bool(performer.do(leased).items)


def _listed(ids: Sequence[int]) -> str:
    """Return job ids as text, at most ``NAMED`` of them."""
    return first_of(map(str, ids), NAMED)


class _Progress:
    """Remembers the last step, for the message after an interruption, and writes each anew in one line (``write``)."""

    last: "BulkProgress | None" = None

    def __init__(self, command: "RunBulk", write: Callable[[str], None]) -> None:
        self._command, self._write = command, write

    def step(self, progress: "BulkProgress") -> None:
        self.last = progress
        self._write(f"{_counts_text(self._command, progress)} …")

    def look(self, canary: "CanaryProgress") -> None:
        """Show that the run waits for the jobs of the canary."""
        so_far = "" if self.last is None else f"{_counts_text(self._command, self.last)} so far; "
        self._write(
            f"{so_far}waiting for {counted(canary.begun - canary.rested, 'job')} to come to rest; "
            f"{canary.bad:,} of {canary.rested:,} failed …"
        )


@contextmanager
def _progress(command: "RunBulk", *, live: bool) -> Iterator[_Progress]:
    """Show the progress of a run, if ``live``, within the block. When the user interrupts it, or an error ends it (the
    server is gone, the disk is full), print what was done and how to continue."""
    shown = _Progress(command, lambda line: None)
    try:
        if not live:
            yield shown
            return
        from rich.live import Live
        from rich.text import Text

        with Live(console=display.console(stderr=True), refresh_per_second=10, transient=True) as picture:
            shown = _Progress(command, lambda line: picture.update(Text(line)))
            yield shown
    except KeyboardInterrupt:
        done = _counts_text(command, shown.last) if shown.last is not None else "nothing was done"
        typer.echo(f"spinney: interrupted: {done}; {_how_to_go_on(command, shown.last)}", err=True)
        raise
    except SpinneyError:
        # The error, which says nothing of this, is printed behind it.
        if shown.last is not None and shown.last.touched:
            done = _counts_text(command, shown.last)
            typer.echo(f"spinney: cut off: {done}; {_how_to_go_on(command, shown.last)}", err=True)
        raise


def _how_to_go_on(command: "RunBulk", last: "BulkProgress | None") -> str:
    """Return the sentence that says how to do the rest after an interruption.

    For a rerun that is not simply the same command: jobs that have run again have completed, and would match
    once more.
    """
    again, option = "the same command", ""
    if command.verb is Verb.RERUN and last is not None:
        if command.filter is None:
            return f"{again} would run those once more"
        if command.filter.settled_before is None and last.settled_before is not None:
            option = f" with --settled-before {from_us(last.settled_before).isoformat()}"
    return f"{again}{option} goes on with the rest"


# --- the report -------------------------------------------------------------------------------


def _counts_text(command: "RunBulk", done: "BulkProgress | BulkResult") -> str:
    """Return the counts in words: ``1,234 retried; 12 wait for them again; 3 refused``."""
    refused = done.refused if isinstance(done.refused, int) else done.refused_jobs
    if not (done.touched or done.skipped or refused):
        return "no job fits; nothing was done"
    parts = [f"{done.touched:,} {_WORDINGS[command.verb].done}{_whereto(command)}"]
    if done.reopened:
        parts.append(f"{done.reopened:,} {'waits' if done.reopened == 1 else 'wait'} for them again")
    if done.skipped:
        parts.append(f"{done.skipped:,} left as {'it is' if done.skipped == 1 else 'they are'}")
    if refused:
        parts.append(f"{refused:,} refused")
    return "; ".join(parts)


def _tell_refused(result: "BulkResult", *, one_by_one: bool) -> None:
    """Print what was refused: each sentence, or for many jobs groups of them. Raises Refused for the only job that was
    named."""
    if result.stopped is not None:
        typer.echo(f"spinney: stopped: {display.safe(result.stopped)}", err=True)
    if one_by_one:
        if len(result.refused) == 1 and not result.touched and not result.stopped:
            raise Refused(next(iter(result.refused.values())))
        for sentence in result.refused.values():
            typer.echo(f"spinney: {display.safe(sentence)}", err=True)
        return
    _tell_groups(result.refused, "refused")


def _tell_groups(refused: Mapping[int, str], how: str) -> None:
    """Print refusals in groups of sentences that differ in numbers alone, the largest group first."""
    groups: Counter[str] = Counter(map(_shape, refused.values()))
    first = {_shape(s): s for s in reversed([*refused.values()])}
    for shape, count in groups.most_common(REASONS):
        like = f" (and {count - 1:,} like it)" if count > 1 else ""
        typer.echo(f"spinney: {how}: {display.safe(first[shape])}{like}", err=True)
    if len(groups) > REASONS:
        typer.echo(f"spinney: and {len(groups) - REASONS:,} reasons more; --json lists them all", err=True)


def _shape(sentence: str) -> str:
    """Return a sentence with its numbers replaced, so that sentences that differ in numbers alone are one group."""
    return re.sub(r"\d+", "#", sentence)
