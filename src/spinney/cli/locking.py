"""``locks`` and ``unlock``: who has which lock, and taking one away from an owner that is gone."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.cli import completing, showing
from spinney.cli.arguments import ByOption, JsonOption, StoreOption
from spinney.cli.asking import require_yes
from spinney.cli.session import hand, opened
from spinney.model import names
from spinney.model.jobs import JOB_ID_MAX

if TYPE_CHECKING:
    from spinney.model.operators import LockInfo
    from spinney.stores.contract import Store

_PAGE = 1_000
_NAMED = 5
"""So many owners are named in a question."""


def add_to(app: typer.Typer) -> None:
    for command in (locks, unlock):
        app.command()(command)


def locks(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the locks that jobs have or wait for."""
    with opened(store) as s:
        found = list(_all(s))
    if json:
        showing.lines(found)
    elif not found:
        typer.echo("no job has a lock or waits for one")
    else:
        rows = [
            (i.name, _owner(i), i.node, showing.moment(i.since_us), f"{i.waiting:,}" if i.waiting else "")
            for i in found
        ]
        showing.table(("LOCK", "JOB", "NODE", "SINCE", "WAITING"), rows)


def unlock(
    name: Annotated[
        str,
        typer.Argument(metavar="LOCK", help="The lock's name.", show_default=False, autocompletion=completing.locks),
    ],
    reason: Annotated[
        str, typer.Option("--reason", help="Why its owner is taken to be gone; kept in the audit.", show_default=False)
    ],
    job: Annotated[
        int | None,
        typer.Option("--job", metavar="JOB", min=1, max=JOB_ID_MAX, show_default=False,
                     help="From this job alone, where several have it.", autocompletion=completing.lock_owners),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Take a lock away from the job that has it, so that the next goes on."""
    names.label("reason", reason)
    with hand(store, by) as control:
        infos = control.store.locks.of(name)
        losers = [i.owner_id for i in infos if i.owner_id is not None and job in (None, i.owner_id)]
        if losers:  # else it is refused, and nobody need be asked
            require_yes(_question(control.store, name, losers, infos[0].waiting), yes=yes)
        control.locks.free(name, reason=reason, job_id=job)
        left = control.store.locks.of(name)
    if json:
        now = [i.owner_id for i in left if i.owner_id is not None]
        waiting = left[0].waiting if left else 0
        showing.as_json({"lock": name, "taken_from": losers, "now_with": now, "waiting": waiting})
        return
    who = ", ".join(f"job {n}" for n in losers[:_NAMED])
    typer.echo(f"the lock {name} is taken from {who or 'its owners'}; {_next(left, losers)}")


def _all(store: "Store") -> "Iterator[LockInfo]":
    after = ""
    while found := store.locks.all(after=after, limit=_PAGE):
        yield from found
        after = found[-1].name


def _owner(info: "LockInfo") -> str:
    if info.owner_id is None:
        return "(nobody)"
    kept = {"job": " until it settles", "reserved": " (about to start)"}
    return f"{info.owner_id}{kept.get(info.until, '')}"


def _question(store: "Store", name: str, owners: Sequence[int], waiting: int) -> str:
    told = []
    for job in map(store.job, owners[:_NAMED]):
        where = f" on {job.node}" if job.state == "running" and job.node else ""
        told.append(f"job {job.id} ({job.type}, stage {job.stage}, {job.state}{where})")
    who = " and ".join(told) + (f" and {len(owners) - _NAMED} more" if len(owners) > _NAMED else "")
    waits = "1 job waits" if waiting == 1 else f"{waiting or 'no'} jobs wait"
    return showing.safe(
        f"The lock {name} is with {who}; {waits} for it. What is still at work there will not be alone any more. "
        f"Take the lock away?"
    )


def _next(left: "Sequence[LockInfo]", losers: Sequence[int]) -> str:
    following = [i.owner_id for i in left if i.owner_id is not None and i.owner_id not in losers]
    if following:
        return f"it is with job {', '.join(map(str, following[:_NAMED]))} now"
    return "nobody waits for it" if not left or not left[0].waiting else "who waits for it goes on in a moment"
