"""What people look at: ``list``, ``show``, ``tree``, ``wait``."""

from typing import Annotated, Any

import typer

from spinney.cli import showing
from spinney.cli.arguments import JobArgument, JobsArgument, JsonOption, StoreOption
from spinney.cli.session import opened
from spinney.cli.unserved import teller
from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX, Attempt, Filter, Job
from spinney.model.states import TRANSITIONS, State


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_jobs)
    app.command()(show)
    app.command()(tree)
    app.command()(wait)


def list_jobs(
    state: Annotated[list[str] | None, typer.Option("--state", help="Only of this state; may be repeated.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only of this job type.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only in this queue.")] = None,
    stage: Annotated[str | None, typer.Option(help="Only at this stage.")] = None,
    collection: Annotated[str | None, typer.Option(help="Only of this collection.")] = None,
    submitter: Annotated[str | None, typer.Option(help="Only of this submitter.")] = None,
    root: Annotated[
        int | None, typer.Option(metavar="JOB", min=1, max=JOB_ID_MAX, help="Only in the tree of this job.")
    ] = None,
    parent: Annotated[
        int | None, typer.Option(metavar="JOB", min=1, max=JOB_ID_MAX, help="Only direct subjobs of this job.")
    ] = None,
    roots: Annotated[bool, typer.Option("--roots", help="Only jobs at the top of a tree.")] = False,
    after: Annotated[
        int | None,
        typer.Option(metavar="JOB", min=1, max=JOB_ID_MAX,
                     help="From behind this job on (the last line of the page before)."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 50,
    oldest: Annotated[bool, typer.Option("--oldest", help="The oldest first, not the newest.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Only how many stand in each state.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List jobs, the newest first."""
    which = Filter(
        states=_states(state), type=type_, queue=queue, stage=stage, collection=collection, submitter=submitter,
        root_id=root, parent_id=parent, roots_only=roots,
    )  # fmt: skip
    with opened(store) as s:
        if count:
            _print_counts(dict(s.counts(which)), json)
            return
        found = s.jobs(which, after=after or 0, limit=limit, newest=not oldest)
        tell = teller(s.nodes())
    if json:
        showing.as_json(found)
        return
    showing.table(
        ("JOB", "TYPE", "STAGE", "STATE", "QUEUE", "CREATED", "MESSAGE"),
        (
            (j.id, j.type, j.stage, showing.standing(j), j.queue, showing.moment(j.created_us), tell(j))
            for j in found
        ),
    )


def show(job: JobArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show one job: where it stands and why, its data, its history."""
    with opened(store) as s:
        found, history = s.job(job), s.attempts(job)
        data, results = dict(s.get_data(job)), dict(s.results(job))
        children = dict(s.counts(Filter(parent_id=job)))
        note = teller(s.nodes())(found)
    if json:
        showing.as_json({"job": found, "note": note, "allowed": _allowed(found), "results": results, "data": data,
                         "children": children, "attempts": history})  # fmt: skip
        return
    out = showing.console()
    for name, value in _facts(found, note, children):
        out.print(f"{name:<12} {value}")
    for title, values in (("results", results), ("data", data)):
        for name, value in values.items():
            out.print(f"{title:<12} {showing.safe(name)} = {showing.safe(showing.short(value, 200))}")
    if history:
        out.print()
        _print_history(history)
        _print_last_error(history)


def tree(
    job: JobArgument,
    limit: Annotated[int, typer.Option(min=1, help="How many jobs at most.")] = 1000,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show a job and all below it."""
    with opened(store) as s:
        found = s.tree(job, limit=limit + 1)
        tell = teller(s.nodes())
    shown = found[:limit]
    if json:
        showing.as_json(shown)
        return
    top = min(j.lineage.count(".") for j in shown)
    showing.table(
        ("JOB", "TYPE", "STAGE", "STATE", "MESSAGE"),
        (
            ("  " * (j.lineage.count(".") - top) + str(j.id), j.type, j.stage, showing.standing(j), tell(j))
            for j in shown
        ),
    )
    if len(found) > limit:
        showing.console().print(f"… and more; --limit {limit * 10} shows them")


def wait(jobs: JobsArgument, store: StoreOption = None) -> None:
    """Wait until jobs have settled; exit code 1 unless all completed."""
    from spinney.cli.waiting import wait_for

    with opened(store) as s:
        completed = wait_for(s, jobs)
    raise typer.Exit(0 if completed else 1)


def _states(names: list[str] | None) -> tuple[State, ...] | None:
    if not names:
        return None
    from spinney.params.hints import did_you_mean

    known = [str(state) for state in State]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no state {name!r}{did_you_mean(name, known)}; use one of: {', '.join(known)}")
    return tuple(State(n) for n in names)


def _print_counts(counts: dict[str, int], json: bool) -> None:
    if json:
        showing.as_json(counts)
    else:
        showing.table(("STATE", "JOBS"), sorted((str(state), n) for state, n in counts.items() if n))


def _facts(job: Job, note: str, children: dict[str, int]) -> list[tuple[str, str]]:
    places = (("queue", job.queue), ("priority", job.priority), ("share", job.share), ("collection", job.collection),
              ("submitter", job.submitter), ("key", job.key), ("parent", job.parent_id))  # fmt: skip
    told: list[tuple[str, Any]] = [
        ("job", f"{job.id} {job.type}"),
        ("state", showing.standing(job)),
        ("message", note),
        ("stage", job.stage),
        *places,
        ("children", ", ".join(f"{n} {state}" for state, n in children.items() if n)),
        ("params", showing.short(job.params, 500)),
        ("created", showing.moment(job.created_us)),
        ("due", showing.moment(job.wake_us)),
        ("started", showing.moment(job.started_us)),
        ("settled", showing.moment(job.settled_us)),
        ("node", job.node),
        ("code", job.code),
        ("allowed", ", ".join(_allowed(job))),
    ]
    return [(name, showing.cell(value)) for name, value in told if value not in (None, "")]


def _allowed(job: Job) -> list[str]:
    """The verbs that may be used on it now, by the table of transitions."""
    after = TRANSITIONS[job.state]
    settled = job.state in (State.FAILED, State.CANCELLED, State.ORPHANED)
    verbs = {
        "cancel": State.CANCELLED in after and not job.cancelling,
        "release": job.state is State.HELD,
        "retry": settled,
        "rerun": settled or job.state is State.COMPLETED,
        "delete": State.DELETED in after,
    }
    return [verb for verb, lawful in verbs.items() if lawful]


def _print_history(history: list[Attempt]) -> None:
    showing.table(
        ("ATTEMPT", "STAGE", "OUTCOME", "STARTED", "TOOK", "NODE", "MESSAGE"),
        (
            (
                a.fence,
                a.stage if a.attempt <= 1 else f"{a.stage} #{a.attempt}",
                f"{a.outcome or 'running'}{' (superseded)' if a.superseded else ''}",
                showing.moment(a.started_us),
                showing.span(a.started_us, a.ended_us),
                a.node,
                a.message,
            )
            for a in history
        ),
    )


def _print_last_error(history: list[Attempt]) -> None:
    error = next((a.error for a in reversed(history) if a.error), None)
    if error and error.get("traceback"):
        showing.console().print("\n" + showing.safe_lines(str(error["traceback"]).rstrip()))
