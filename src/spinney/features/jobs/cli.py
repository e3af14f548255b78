"""The commands that show jobs: ``list``, ``show`` and ``tree``.

They read through commands, so they show the same of a store and of a server, within the rights of the caller.
Each has ``--json`` with the values behind the table, for programs.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.features.explain.obstacle_messages import obstacle_messages
from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX, Attempt, Job
from spinney.model.states import SETTLED, State
from spinney.model.values.products import products_of, summaries_of, without_entries
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import (
    SEQ_MAX,
    CsvOption,
    JobArgument,
    JsonOption,
    StoreOption,
    option,
)
from spinney.terminal.options.filters import FilterOptions
from spinney.terminal.options.option_groups import with_option_groups
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.commands.job_details import JobDetails

_SHOWN = 50
"""How many jobs ``list`` shows by default."""
_PAGE = 1_000
"""How many jobs one query reads; longer lists are read in pages, so that no transaction is long."""


app = typer.Typer()


@app.command("list")
@with_option_groups
def list_jobs(
    filter_options: FilterOptions,
    after: Annotated[
        int | None,
        typer.Option(
            metavar="JOB",
            min=1,
            max=JOB_ID_MAX,
            help="Start after this job, the last one of the previous page.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        option(min=1, max=10_000, help_=f"How many (default: {_SHOWN}; with --csv all)."),
    ] = None,
    oldest: Annotated[bool, typer.Option("--oldest", help="The oldest first, not the newest.")] = False,
    count: Annotated[
        bool, typer.Option("--count", help="Print only the number of jobs in each state.")
    ] = False,
    json: JsonOption = False,
    csv: CsvOption = False,
    store: StoreOption = None,
) -> None:
    """List jobs, the newest first."""
    from spinney.commands import each
    from spinney.commands.job_details import JobDetails, plain_job
    from spinney.commands.job_queries import CountJobs, ListJobs

    if csv and (json or count):
        raise UsageError(f"--csv and {'--json' if json else '--count'} exclude each other; leave one out")
    fields = filter_options.filter_fields()
    with open_commands(store) as performer:
        if count:
            _print_counts(performer.do(CountJobs(existing=True, **fields)), json)
            return
        most = limit or (None if csv else _SHOWN)
        size = _PAGE if most is None else min(most, _PAGE)
        page = ListJobs(existing=True, newest=not oldest, after=after or 0, limit=size, **fields)
        # Pages are read as they are printed, so a long CSV takes no memory.
        details = islice(each(performer, page), most)
        if csv:
            display.print_csv(JobDetails, details)
            return
        listed = [plain_job(job) for job in details]
        tell = obstacle_messages(performer, listed)
    columns: dict[str, Callable[[Job], Any]] = {
        "JOB": lambda job: job.id,
        "TYPE": lambda job: job.type,
        "SUBJECT": lambda job: job.subject,
        "STAGE": lambda job: job.stage,
        "STATE": display.state_text,
        "QUEUE": lambda job: job.queue,
        "CREATED": lambda job: display.format_time(job.created_us),
        "TOOK": lambda job: display.format_elapsed(job.started_us, job.settled_us),
        "MESSAGE": tell,
    }
    display.print_list(listed, columns, json=json, empty=_none_listed(fields, after))


def _none_listed(fields: Mapping[str, Any], after: int | None) -> str:
    """Return the sentence in place of an empty list: there is no job, or none that is chosen."""
    if after:
        return f"there is no job behind job {after}"
    return "no job matches" if fields else "there are no jobs; 'spinney submit TYPE' makes one"


@app.command()
def show(job: JobArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show one job: where it stands and why, its data, its history."""
    from spinney.commands.job_details import plain_job
    from spinney.commands.job_queries import CountChildren, ListAttempts, ShowData, ShowJob, ShowResults
    from spinney.features.holds.commands import ListHoldsOn

    with open_commands(store) as performer:
        details, history = performer.do(ShowJob(job=job)), performer.do(ListAttempts(job=job)).items
        data, results = performer.do(ShowData(job=job)), performer.do(ShowResults(job=job))
        children = performer.do(CountChildren(job=job))
        plain = plain_job(details)
        note = obstacle_messages(performer, [plain])(plain)
        holds = [] if plain.state in SETTLED else performer.do(ListHoldsOn(job=job)).items
    if json:
        display.print_json(
            {
                "job": plain,
                "note": note,
                "holds": holds,
                "allowed": details.allowed,
                "superseded_by": details.superseded_by,
                "results": results,
                "data": data,
                "children": children,
                "attempts": history,
            }
        )
        return
    out = display.console()
    for name, value in _facts(details, note, children):
        out.print(f"{name:<12} {value}")
    for hold in holds:
        out.print(f"{'under':<12} {display.safe(str(hold))}")
    for summary in summaries_of(data):
        out.print(f"{'summary':<12} {display.safe(f'#{summary.job}: {summary.text}')}")
    for product in products_of(data):
        place = product.url or f"#{product.job} {product.path}"
        out.print(f"{'product':<12} {display.safe(f'{product.title}: {place}')}")
    for title, values in (("results", results), ("data", without_entries(data))):
        for name, value in values.items():
            out.print(f"{title:<12} {display.safe(name)} = {display.safe(display.short_json(value, 200))}")
    if history:
        out.print()
        _print_history(history, plain.state)
        _print_last_error(history)


@app.command()
def tree(
    job: JobArgument,
    limit: Annotated[int, typer.Option(min=1, max=SEQ_MAX, help="How many jobs at most.")] = 1000,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show a job and all below it."""
    from spinney.commands.job_details import plain_job
    from spinney.commands.job_queries import ShowTree

    with open_commands(store) as performer:
        listed = performer.do(ShowTree(job=job, limit=limit + 1)).items
        jobs = [plain_job(details) for details in listed]
        tell = obstacle_messages(performer, jobs)
    superseded = {details.id for details in listed if details.superseded_by is not None}
    shown = jobs[:limit]
    if json:
        display.print_json_lines(shown)
        return
    # The indentation counts from the job itself, which need not be at the top of its tree.
    top = min(j.lineage.count(".") for j in shown)
    display.print_table(
        ("JOB", "TYPE", "STAGE", "STATE", "MESSAGE"),
        (
            (
                "  " * (j.lineage.count(".") - top) + str(j.id),
                j.type,
                j.stage,
                f"{display.state_text(j)}{' (superseded)' if j.id in superseded else ''}",
                tell(j),
            )
            for j in shown
        ),
    )
    if len(jobs) > limit:
        display.console().print(f"… and more; --limit {limit * 10} shows them")


def _print_counts(counts: Mapping[str, int], json: bool) -> None:
    """Print how many jobs are in each state, by the name of the state; states without jobs are left out
    of the table."""
    if json:
        display.print_json(counts)
    else:
        display.print_table(("STATE", "JOBS"), sorted((str(state), n) for state, n in counts.items() if n))


def _facts(job: "JobDetails", note: str, children: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the facts of a job as name and text, in the order in which they are shown; what it does not
    have is left out.

    ``note``: why the job is in its state. ``children``: its direct subjobs by state, without superseded ones.
    """
    above = job.superseded_by
    places = (
        ("queue", job.queue),
        ("priority", job.priority),
        ("share", job.share),
        ("collection", job.collection),
        ("submitter", job.submitter),
        ("key", job.key),
        ("parent", job.parent_id),
    )
    facts: list[tuple[str, Any]] = [
        ("job", f"{job.id} {job.type}"),
        ("state", display.state_text(job)),
        ("superseded", None if above is None else f"job {above} was set to run again without it"),
        ("message", note),
        ("stage", job.stage),
        *places,
        ("children", ", ".join(f"{n} {state}" for state, n in children.items() if n)),
        ("params", display.short_json(job.params, 500)),
        ("created", display.format_time(job.created_us)),
        ("due", display.format_time(job.wake_us)),
        ("started", display.format_time(job.started_us)),
        ("settled", display.format_time(job.settled_us)),
        ("node", job.node),
        ("code", job.code),
        ("trace", job.trace),
        ("allowed", ", ".join(job.allowed)),
    ]
    return [(name, display.cell(value)) for name, value in facts if value not in (None, "")]


def _print_history(history: Sequence[Attempt], state: State) -> None:
    """Print the attempts of a job in this state, oldest first. A stage's second attempt and later ones have their
    number after its name."""
    open_state = State.CLAIMED if state is State.CLAIMED else State.RUNNING
    display.print_table(
        ("ATTEMPT", "STAGE", "OUTCOME", "STARTED", "TOOK", "NODE", "MESSAGE"),
        (
            (
                a.fence,
                a.stage if a.attempt <= 1 else f"{a.stage} #{a.attempt}",
                f"{a.outcome or open_state}{' (superseded)' if a.superseded else ''}",
                display.format_time(a.started_us),
                display.format_elapsed(a.started_us, a.ended_us),
                a.node,
                a.message,
            )
            for a in history
        ),
    )


def _print_last_error(history: Sequence[Attempt]) -> None:
    """Print the traceback of the latest attempt that ended with an error, even if a later one passed;
    nothing without one."""
    error = next((a.error for a in reversed(history) if a.error), None)
    if error and error.get("traceback"):
        display.console().print("\n" + display.safe_lines(str(error["traceback"]).rstrip()))
