"""The commands ``locks``, ``lock`` and ``unlock``: which jobs have which locks, the capacity of a lock, and freeing one
whose owner is gone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.settings.capacities import AMOUNT_MAX, Capacities, CapacityRules
from spinney.model.values import names
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import open_commands, open_control

if TYPE_CHECKING:
    from spinney.commands import Performs
    from spinney.model.rights.operators import CapacityInfo, LockInfo

_PAGE = 1_000
_NAMED = 5
"""So many owners are named in a question."""


def add_to(app: typer.Typer) -> None:
    for command in (locks, lock, unlock):
        app.command()(command)


def locks(
    capacities: Annotated[
        bool, typer.Option("--capacities", help="List the capacities that are set or declared instead.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the locks that jobs have or wait for."""
    from spinney.commands import each
    from spinney.features.locks.commands import ListCapacities, ListLocks

    with open_commands(store) as performer:
        if capacities:
            _list_capacities(performer.do(ListCapacities()).items, json=json)
            return
        found = list(each(performer, ListLocks(limit=_PAGE)))
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
            help="The lock's name, or a prefix and '*' for all locks that begin so, for example 'download:*'.",
        ),
    ],
    capacity: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=AMOUNT_MAX,
            show_default=False,
            help="The total amount that jobs may have at once; overrides what applications declare.",
        ),
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Reset the capacity to its default.")] = False,
    reason: Annotated[
        str | None, typer.Option(help="The reason, recorded in the audit log.", show_default=False)
    ] = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Show a lock, or set its capacity. It applies to every node at once; no job loses a lock that it has."""
    names.lock_or_family(name)
    if capacity is not None and default:
        raise UsageError("--capacity sets the capacity and --default resets it; give only one of them")
    changes = capacity is not None or default
    if reason is not None and not changes:
        raise UsageError("--reason is recorded with a change; add the change, for example --capacity N")
    from spinney.features.locks.commands import SetCapacity

    with open_commands(store, by if changes else None) as performer:
        if changes:
            performer.do(SetCapacity(name=name, capacity=capacity, reason=reason))
        told = _LockDetails.of(performer, name)
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
            "--reason",
            help="Why the owner is known to be gone, recorded in the audit log.",
            show_default=False,
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
            help="Free it only from this job, if several have it.",
            autocompletion=completion.lock_owners,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Free a lock from the job that has it, so that the next job gets it."""
    names.lock_name(name)
    names.label("reason", reason)
    from spinney.features.locks.commands import FreeLock, ShowLock

    with open_control(store, by) as control:
        infos = control.do(ShowLock(name=name)).items
        losers = [i.owner_id for i in infos if i.owner_id is not None and job in (None, i.owner_id)]
        if losers:  # else it is refused, and nobody need be asked
            require_yes(_question(control, name, losers, infos[0].waiting), yes=yes)
        control.do(FreeLock(name=name, reason=reason, job=job))
        left = control.do(ShowLock(name=name)).items
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
    def of(cls, performer: "Performs", name: str) -> "_LockDetails":
        from spinney.features.locks.commands import ListCapacities, ShowLock

        capacities = performer.do(ListCapacities()).items
        said = next((info for info in capacities if info.name == name), None)
        found = () if name.endswith("*") else performer.do(ShowLock(name=name)).items
        owners = [info for info in found if info.owner_id is not None]
        return cls(
            lock=name,
            capacity=found[0].capacity if found else _in_force(capacities, name.removesuffix("*")),
            set=said,
            used=sum(info.amount for info in owners),
            owners=owners,
            waiting=found[0].waiting if found else 0,
        )


def _in_force(said: "Sequence[CapacityInfo]", name: str) -> int:
    return Capacities(
        CapacityRules.of((info.name, info.capacity) for info in said if info.by is not None),
        CapacityRules.of((info.name, info.declared) for info in said if info.declared is not None),
    ).in_force(name)


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


def _owner(info: "LockInfo") -> str:
    if info.owner_id is None:
        return "(nobody)"
    kept = {"job": " until it settles", "reserved": " (about to start)"}
    return f"{info.owner_id}{kept.get(info.until, '')}"


def _question(performer: "Performs", name: str, owners: Sequence[int], waiting: int) -> str:
    from spinney.commands.job_queries import ShowJob

    told = []
    for job in (performer.do(ShowJob(job=owner)) for owner in owners[:_NAMED]):
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
