"""The commands ``locks``, ``lock`` and ``unlock``: which jobs have which locks, the capacity of a lock, and
freeing one whose owner is gone.

``unlock`` is for accidents alone. Spinney itself gives back the locks of an attempt that has ended, also of
one whose node died; the command asks for confirmation, since the owner may still be running.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from spinney.commands import Performs, each
from spinney.commands.job_queries import ShowJob
from spinney.features.locks.commands import FreeLock, ListCapacities, ListLocks, SetCapacity, ShowLock
from spinney.model.errors import UsageError
from spinney.model.operators.locks import LockInfo
from spinney.model.settings.capacities import AMOUNT_MAX, Capacities, CapacityInfo
from spinney.model.values import names
from spinney.terminal import completion
from spinney.terminal.commands import Shown, steps
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import JsonOption, StoreOption, YesOption, argument, option
from spinney.terminal.output import display

_PAGE = 1_000
"""How many locks one query reads."""
_OWNERS_SHOWN = 5
"""How many owners are named in a question or sentence."""


app = typer.Typer()


@app.command()
def locks(
    capacities: Annotated[
        bool, typer.Option("--capacities", help="List the capacities that are set or declared instead.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the locks that jobs have or wait for."""
    with open_commands(store) as performer:
        if capacities:
            _list_capacities(performer.do(ListCapacities()).items, json=json)
            return
        infos = list(each(performer, ListLocks(limit=_PAGE)))
    display.print_list(
        infos,
        {
            "LOCK": lambda info: info.name,
            "JOB": _owner,
            "AMOUNT": lambda info: f"{info.amount:,}",
            "USED": lambda info: f"{info.used:,}",
            "CAPACITY": lambda info: f"{info.capacity:,}",
            "NODE": lambda info: info.node,
            "SINCE": lambda info: display.format_time(info.since_us),
            "WAITING": lambda info: f"{info.waiting:,}" if info.waiting else "",
        },
        json=json,
        empty="no job has a lock or waits for one",
    )


@steps(
    app,
    SetCapacity,
    "lock",
    name=argument(
        "LOCK",
        "The lock's name, or a prefix and '*' for all locks that begin so, for example 'download:*'.",
        completion.locks,
    ),
    capacity=option(
        default=None,
        metavar="N",
        min=1,
        max=AMOUNT_MAX,
        help_="The total amount that jobs may have at once; overrides what applications declare.",
    ),
)
def lock(
    change: SetCapacity,
    performer: Performs,
    *,
    default: Annotated[bool, typer.Option("--default", help="Reset the capacity to its default.")] = False,
) -> Shown:
    """Show a lock, or set its capacity. It applies to every node at once; no job loses a lock that it has."""
    names.lock_or_family(change.name)
    if change.capacity is not None and default:
        raise UsageError("--capacity sets the capacity and --default resets it; give only one of them")
    if change.capacity is not None or default:
        performer.do(change)
    elif change.reason is not None:
        raise UsageError("--reason is recorded with a change; add the change, for example --capacity N")
    details = _LockDetails.of(performer, change.name)
    return Shown(details, _facts(details))


@steps(
    app,
    FreeLock,
    "unlock",
    name=argument("LOCK", "The lock's name.", completion.locks),
    reason=option(help_="How you know that the owner has ended; recorded in the audit log."),
    job=option(
        metavar="JOB",
        help_="Free it only from this job, if several have it.",
        complete=completion.lock_owners,
    ),
)
def unlock(release: FreeLock, performer: Performs, *, yes: YesOption = False) -> Shown:
    """Free a lock from the job that has it, so that the next job gets it."""
    name = names.lock_name(release.name)
    infos = performer.do(ShowLock(name=name)).items
    losers = [i.owner_id for i in infos if i.owner_id is not None and release.job in (None, i.owner_id)]
    if losers:  # otherwise the release is refused, so no question is asked
        require_yes(_question(performer, name, losers, infos[0].waiting), yes=yes)
    performer.do(release)
    infos = performer.do(ShowLock(name=name)).items
    owners = [i.owner_id for i in infos if i.owner_id is not None]
    waiting = infos[0].waiting if infos else 0
    return Shown(
        {"lock": name, "taken_from": losers, "now_with": owners, "waiting": waiting},
        f"the lock {name} is taken from {_jobs_text(losers) or 'its owners'}; {_next(owners, losers, waiting)}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _LockDetails:
    """A lock or a family, as ``lock`` shows it."""

    lock: str
    capacity: int
    """The capacity in force; for a family, that of every lock in it without a more specific capacity."""
    set: CapacityInfo | None
    """What is set or declared for this very name; None: nothing is."""
    used: int
    """The amount that jobs have of it; 0 for a family."""
    owners: Sequence[LockInfo]
    waiting: int
    """How many jobs wait for it; 0 for a family."""

    @classmethod
    def of(cls, performer: Performs, name: str) -> "_LockDetails":
        """Read a lock or a family. Nobody has or waits for a family, so only its capacity is read."""
        capacities = performer.do(ListCapacities()).items
        infos = () if name.endswith("*") else performer.do(ShowLock(name=name)).items
        owners = [info for info in infos if info.owner_id is not None]
        return cls(
            lock=name,
            # Of a lock that no job has or waits for, only what is set and declared is known.
            capacity=infos[0].capacity
            if infos
            else Capacities.of(capacities).in_force(name.removesuffix("*")),
            set=next((info for info in capacities if info.name == name), None),
            used=sum(info.amount for info in owners),
            owners=owners,
            waiting=infos[0].waiting if infos else 0,
        )


def _facts(details: _LockDetails) -> list[tuple[str, str]]:
    """Return the facts of a lock as name and value, in the order in which they are shown; one for each
    owner."""
    facts = [("lock", details.lock), ("capacity", f"{details.capacity:,}{_origin(details)}")]
    if not details.lock.endswith("*"):
        facts += [("used", f"{details.used:,}"), ("waiting", f"{details.waiting:,}")]
    return facts + [
        ("job", f"{_owner(info)} has {info.amount:,}{f' on {info.node}' if info.node else ''}")
        for info in details.owners
    ]


def _origin(details: _LockDetails) -> str:
    """Return who has set or declared the capacity in force."""
    info = details.set
    if info is None:
        return ""
    if info.by is None:
        same = info.capacity == details.capacity
        return " (declared)" if same else f" (set for a family; declared: {info.capacity:,})"
    declared = "nothing is declared" if info.declared is None else f"declared: {info.declared:,}"
    return f" (set by {info.by or 'hand'}, {display.format_time(info.at_us)}; {declared})"


def _list_capacities(capacities: Sequence[CapacityInfo], *, json: bool) -> None:
    display.print_list(
        capacities,
        {
            "LOCK": lambda info: info.name,
            "CAPACITY": lambda info: f"{info.capacity:,}",
            "DECLARED": lambda info: None if info.declared is None else f"{info.declared:,}",
            "SET BY": lambda info: info.by,
            "SINCE": lambda info: display.format_time(info.at_us),
        },
        json=json,
        empty="nothing is set or declared: every lock has a capacity of 1, unless the job that takes it names one",
    )


def _owner(info: LockInfo) -> str:
    if info.owner_id is None:
        return "(nobody)"
    until = {"job": " until it settles", "reserved": " (about to start)"}
    return f"{info.owner_id}{until.get(info.until, '')}"


def _question(performer: Performs, name: str, owners: Sequence[int], waiting: int) -> str:
    """Return the question before a lock is taken away: which jobs have it, what they do, and how many
    wait."""
    texts = []
    for job in (performer.do(ShowJob(job=owner)) for owner in owners[:_OWNERS_SHOWN]):
        where = f" on {job.node}" if job.state == "running" and job.node else ""
        texts.append(f"job {job.id} ({job.type}, stage {job.stage}, {job.state}{where})")
    more = f" and {len(owners) - _OWNERS_SHOWN} more" if len(owners) > _OWNERS_SHOWN else ""
    waits = "1 job waits" if waiting == 1 else f"{waiting or 'no'} jobs wait"
    return display.safe(
        f"The lock {name} is with {' and '.join(texts)}{more}; {waits} for it. If that job still runs, another one "
        f"will run beside it. Take the lock away?"
    )


def _jobs_text(jobs: Sequence[int]) -> str:
    return ", ".join(f"job {job}" for job in jobs[:_OWNERS_SHOWN])


def _next(owners: Sequence[int], losers: Sequence[int], waiting: int) -> str:
    """Return the end of a sentence about a lock that was freed: who has it now, or what will happen to
    those that wait."""
    new_owners = [job for job in owners if job not in losers]
    if new_owners:
        return f"it is with {_jobs_text(new_owners)} now"
    return "the jobs that wait for it go on in a moment" if waiting else "no job waits for it"
