"""``locks``, ``lock`` and ``unlock``: who has how much of which lock, how much there is, and taking one away from an
owner that is gone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.settings.capacities import AMOUNT_MAX
from spinney.model.values import names
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import open_control, open_queries

if TYPE_CHECKING:
    from spinney.model.rights.operators import CapacityInfo, LockInfo
    from spinney.service.queries import Queries

_PAGE = 1_000
_NAMED = 5
"""So many owners are named in a question."""


def add_to(app: typer.Typer) -> None:
    for command in (locks, lock, unlock):
        app.command()(command)


def locks(
    capacities: Annotated[
        bool, typer.Option("--capacities", help="What is set and declared of locks and families instead.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the locks that jobs have or wait for."""
    with open_queries(store) as look:
        if capacities:
            _list_capacities(look.capacities(), json=json)
            return
        found = list(_all(look))
    if json:
        display.print_json_lines(found)
    elif not found:
        typer.echo("no job has a lock or waits for one")
    else:
        rows = [
            (
                i.name,
                _owner(i),
                f"{i.amount:,}",
                f"{i.used:,}",
                f"{i.capacity:,}",
                i.node,
                display.format_time(i.since_us),
                f"{i.waiting:,}" if i.waiting else "",
            )
            for i in found
        ]
        display.print_table(("LOCK", "JOB", "AMOUNT", "USED", "CAPACITY", "NODE", "SINCE", "WAITING"), rows)


def lock(
    name: Annotated[
        str,
        typer.Argument(
            metavar="LOCK",
            show_default=False,
            autocompletion=completion.locks,
            help="The lock's name, or how those of a family begin and a '*', as in 'download:*'.",
        ),
    ],
    capacity: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=AMOUNT_MAX,
            show_default=False,
            help="How much of it jobs may have together; wins over what applications say.",
        ),
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Take back what was set.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the audit.", show_default=False)] = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Show a lock, or set how much there is of it: every node obeys at once, and nobody loses what he has."""
    names.lock_or_family(name)
    if capacity is not None and default:
        raise UsageError("--capacity sets it, --default takes that back; give one of the two")
    if capacity is None and not default:
        if reason is not None:
            raise UsageError("--reason is kept with a change; say what is to change, as with --capacity N")
        with open_queries(store) as look:
            told = _LockDetails.of(look, name)
    else:
        with open_control(store, by) as control:
            control.locks.set_capacity(name, capacity, reason=reason)
            told = _LockDetails.of(control.queries, name)
    if json:
        display.print_json(told)
    else:
        _show(told)


def unlock(
    name: Annotated[
        str,
        typer.Argument(
            metavar="LOCK", help="The lock's name.", show_default=False, autocompletion=completion.locks
        ),
    ],
    reason: Annotated[
        str,
        typer.Option(
            "--reason", help="Why its owner is taken to be gone; kept in the audit.", show_default=False
        ),
    ],
    job: Annotated[
        int | None,
        typer.Option(
            "--job",
            metavar="JOB",
            min=1,
            max=JOB_ID_MAX,
            show_default=False,
            help="From this job alone, where several have it.",
            autocompletion=completion.lock_owners,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Take a lock away from the job that has it, so that the next goes on."""
    names.label("reason", reason)
    with open_control(store, by) as control:
        infos = control.queries.lock(name)
        losers = [i.owner_id for i in infos if i.owner_id is not None and job in (None, i.owner_id)]
        if losers:  # else it is refused, and nobody need be asked
            require_yes(_question(control.queries, name, losers, infos[0].waiting), yes=yes)
        control.locks.free(name, reason=reason, job_id=job)
        left = control.queries.lock(name)
    if json:
        now = [i.owner_id for i in left if i.owner_id is not None]
        waiting = left[0].waiting if left else 0
        display.print_json({"lock": name, "taken_from": losers, "now_with": now, "waiting": waiting})
        return
    who = ", ".join(f"job {n}" for n in losers[:_NAMED])
    typer.echo(f"the lock {name} is taken from {who or 'its owners'}; {_next(left, losers)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _LockDetails:
    """A lock or a family, as ``lock`` shows it."""

    lock: str
    capacity: int
    """In force; of a family: for what begins so and about which nothing else is said."""
    set: "CapacityInfo | None"
    """What is said of this very name."""
    used: int
    owners: "Sequence[LockInfo]"
    waiting: int

    @classmethod
    def of(cls, look: "Queries", name: str) -> "_LockDetails":
        said = next((info for info in look.capacities() if info.name == name), None)
        found = [] if name.endswith("*") else look.lock(name)
        owners = [info for info in found if info.owner_id is not None]
        return cls(
            lock=name,
            capacity=look.store.locks.capacity(name.removesuffix("*")),
            set=said,
            used=sum(info.amount for info in owners),
            owners=owners,
            waiting=found[0].waiting if found else 0,
        )


def _show(told: _LockDetails) -> None:
    out = display.console()
    rows = [("lock", told.lock), ("capacity", f"{told.capacity:,}{_whose(told)}")]
    if not told.lock.endswith("*"):
        rows += [("used", f"{told.used:,}"), ("waiting", f"{told.waiting:,}")]
    rows += [("job", f"{_owner(i)} has {i.amount:,}{f' on {i.node}' if i.node else ''}") for i in told.owners]
    for what, value in rows:
        out.print(f"{what:<12} {display.safe(value)}")


def _whose(told: _LockDetails) -> str:
    said = told.set
    if said is None:
        return ""
    if said.by is None:
        return (
            " (declared)"
            if said.capacity == told.capacity
            else f" (set for a family; declared: {said.capacity:,})"
        )
    declared = "nothing is declared" if said.declared is None else f"declared: {said.declared:,}"
    return f" (set by {said.by or 'hand'}, {display.format_time(said.at_us)}; {declared})"


def _list_capacities(found: "Sequence[CapacityInfo]", *, json: bool) -> None:
    if json:
        display.print_json_lines(found)
    elif not found:
        typer.echo(
            "nothing is set or declared: every lock has a capacity of 1, unless who takes it says otherwise"
        )
    else:
        rows = [
            (
                i.name,
                f"{i.capacity:,}",
                "" if i.declared is None else f"{i.declared:,}",
                i.by,
                display.format_time(i.at_us),
            )
            for i in found
        ]
        display.print_table(("LOCK", "CAPACITY", "DECLARED", "SET BY", "SINCE"), rows)


def _all(look: "Queries") -> "Iterator[LockInfo]":
    after = ""
    while found := look.locks(after=after, limit=_PAGE):
        yield from found
        after = found[-1].name


def _owner(info: "LockInfo") -> str:
    if info.owner_id is None:
        return "(nobody)"
    kept = {"job": " until it settles", "reserved": " (about to start)"}
    return f"{info.owner_id}{kept.get(info.until, '')}"


def _question(look: "Queries", name: str, owners: Sequence[int], waiting: int) -> str:
    told = []
    for job in map(look.job, owners[:_NAMED]):
        where = f" on {job.node}" if job.state == "running" and job.node else ""
        told.append(f"job {job.id} ({job.type}, stage {job.stage}, {job.state}{where})")
    who = " and ".join(told) + (f" and {len(owners) - _NAMED} more" if len(owners) > _NAMED else "")
    waits = "1 job waits" if waiting == 1 else f"{waiting or 'no'} jobs wait"
    return display.safe(
        f"The lock {name} is with {who}; {waits} for it. What is still at work there will not be alone any more. "
        f"Take the lock away?"
    )


def _next(left: "Sequence[LockInfo]", losers: Sequence[int]) -> str:
    following = [i.owner_id for i in left if i.owner_id is not None and i.owner_id not in losers]
    if following:
        return f"it is with job {', '.join(map(str, following[:_NAMED]))} now"
    return (
        "nobody waits for it" if not left or not left[0].waiting else "who waits for it goes on in a moment"
    )
