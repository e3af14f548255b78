"""Commands for operators of Merritt's queue: look, check, hold, release, requeue, fail, delete, lock.

They work on ZooKeeper alone, need neither a store of Spinney nor a running consumer, and follow the rules of
Merritt's own tools (``spinney.bridges.merritt``): a transition that the queue's state machine forbids is
refused.
"""

import json as json_module
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any, TypeVar, cast

import typer
from kazoo.exceptions import KazooException

from spinney.bridges.merritt import (
    AccessRequest,
    AccessState,
    Batch,
    BatchState,
    Job,
    JobState,
    MerrittError,
    MerrittLocked,
    MerrittQueue,
    layout,
)
from spinney.bridges.merritt.access import AccessQueue
from spinney.bridges.merritt_connection import ZooKeeperOption, connected
from spinney.command_line import Exit, JsonOption, YesOption, display, require_yes
from spinney.errors import Refused, StoreUnavailable, UsageError, counted

app = typer.Typer()
ItemArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A job (jid…), a batch (bid…) or an access request (small/qid…, large/qid…)."
    ),
]
_Item = Job | Batch | AccessRequest
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


class Kind(StrEnum):
    """What the commands can list of Merritt's queue."""

    JOBS = "jobs"
    BATCHES = "batches"
    ACCESS = "access"
    LOCKS = "locks"


@contextmanager
def _queue(hosts: str) -> Iterator[MerrittQueue]:
    """Yield the queue of a ZooKeeper tree, and turn the library's errors into those of the command line.

    Raises Refused for what the queue forbids, StoreUnavailable where ZooKeeper does not answer or forbids it,
    and UsageError for an invalid name.
    """
    with connected(hosts) as client:
        try:
            yield MerrittQueue(client)
        except MerrittError as error:
            raise Refused(str(error)) from error
        except KazooException as error:
            raise StoreUnavailable(
                f"ZooKeeper answers with {type(error).__name__}; check the rights of its nodes, and the server"
            ) from error
        except ValueError as error:
            raise UsageError(str(error)) from error


@app.command(name="ls")
def list_items(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="jobs, batches, access or locks.")] = Kind.JOBS,
    *,
    state: Annotated[str | None, typer.Option(help="Only those in this state, as Failed.")] = None,
    batch: Annotated[str | None, typer.Option(help="Only jobs of this batch: bid….")] = None,
    json: JsonOption = False,
    zookeeper: ZooKeeperOption,
) -> None:
    """List jobs, batches, access requests, or the locks of queues and collections."""
    with _queue(zookeeper) as queue:
        _print(list(_rows(queue, kind, state, batch)), json=json, empty="there is nothing")


def _rows(queue: MerrittQueue, kind: Kind, state: str | None, batch: str | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each item of this kind, with the values to print by the names of their columns. Raises
    UsageError for a state that the kind does not have."""
    if kind is Kind.JOBS:
        for job in queue.jobs.list(_state(JobState, state)):
            if batch in (None, job.bid):
                yield _job_row(job)
    elif kind is Kind.BATCHES:
        for each in queue.batches.list(_state(BatchState, state)):
            yield _batch_row(each)
    elif kind is Kind.ACCESS:
        access_state = _state(AccessState, state)
        for name in layout.ACCESS_QUEUES:
            for request in queue.access.list(name):
                if access_state in (None, request.state):
                    yield {"id": request.id, "queue": name, "state": str(request.state), **request.token}
    else:
        if state is not None:
            raise UsageError("locks have no state; leave out --state")
        for queue_name in layout.QUEUE_LOCKS:
            if queue.locks.queue_is_locked(queue_name):
                yield {"lock": "queue", "name": queue_name}
        for collection in queue.locks.locked_collections():
            yield {"lock": "collection", "name": collection}


def _job_row(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "batch": job.bid,
        "state": str(job.state),
        "priority": job.priority,
        "retries": job.retry_count,
        "profile": job.configuration.get("profile_name", job.configuration.get("profile", "")),
        "message": job.message,
    }


def _batch_row(batch: Batch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "uuid": batch.uuid,
        "state": str(batch.state),
        "failures": batch.has_failure,
        "profile": batch.submission.get("profile", batch.submission.get("profile_name", "")),
        "message": batch.message,
    }


_State = TypeVar("_State", JobState, BatchState, AccessState)


def _state(states: type[_State], name: str | None) -> _State | None:
    """Return the state of this name; None where none is named. Raises UsageError that lists the states."""
    try:
        return None if name is None else states(name)
    except ValueError:
        raise UsageError(f"{name!r} is no state; use one of {', '.join(states)}") from None


@app.command()
def show(item: ItemArgument, *, zookeeper: ZooKeeperOption) -> None:
    """Show all nodes of a job, a batch or an access request, as JSON."""
    with _queue(zookeeper) as queue:
        whole = _load(queue, item)
        fields = asdict(whole)
        del fields["status_bytes"], fields["lock"]
        fields["locked_by"] = queue.locks.holder(whole.lock_path)
        if isinstance(whole, Batch):
            fields |= {"jobs": queue.batches.jobs(whole), "report": queue.batches.report(whole)}
    typer.echo(json_module.dumps(fields, indent=2, default=str, ensure_ascii=False))


@app.command()
def check(*, json: JsonOption = False, zookeeper: ZooKeeperOption) -> None:
    """Report orphans, duplicates, missing and unreadable nodes, and old locks, by the rules of Merritt's own dump."""
    with _queue(zookeeper) as queue:
        rows = [
            {"severity": each.severity, "kind": each.kind, "path": each.path, "message": each.message}
            for each in queue.check()
        ]
    _print(rows, json=json, empty="nothing is wrong")
    if rows:
        raise typer.Exit(Exit.REFUSED)


@app.command()
def repair(
    *,
    dry_run: DryRunOption = False,
    also_recent: Annotated[
        bool, typer.Option("--also-recent", help="Also repair what is younger than an hour.")
    ] = False,
    break_locks: Annotated[bool, typer.Option("--break-locks", help="Also delete old locks.")] = False,
    json: JsonOption = False,
    zookeeper: ZooKeeperOption,
) -> None:
    """Repair the findings of 'check' that need no decision."""
    with _queue(zookeeper) as queue:
        repairs = queue.repair(dry_run=dry_run, also_recent=also_recent, break_locks=break_locks)
    rows = [{"path": each.finding.path, "action": each.action, "done": each.done} for each in repairs]
    _print(rows, json=json, empty="nothing is wrong")


@app.command()
def hold(item: ItemArgument, *, zookeeper: ZooKeeperOption) -> None:
    """Hold a pending job or batch until it is released. Merritt's own services do not heed a batch that is held."""
    if isinstance(_change(zookeeper, item, "Held"), Batch):
        typer.echo(
            "Consumers of Spinney leave it. Merritt's own services know a pending batch by its missing node 'states', "
            "and may take it all the same: lock the queue ingest to stop them.",
            err=True,
        )


@app.command()
def release(item: ItemArgument, *, zookeeper: ZooKeeperOption) -> None:
    """Release a held job or batch."""
    with _queue(zookeeper) as queue:
        state = _load(queue, item).state
        if state != JobState.HELD:
            raise Refused(f"{item} is {state}; only what is Held can be released")
    _change(zookeeper, item, "Pending")


@app.command()
def requeue(
    item: ItemArgument,
    *,
    state: Annotated[
        str | None,
        typer.Option(
            help="The state from which a job continues (default: after the last step that was done)."
        ),
    ] = None,
    zookeeper: ZooKeeperOption,
) -> None:
    """Requeue a failed job, all failed jobs of a batch, or an access request. A batch that failed reports again."""
    with _queue(zookeeper) as queue:
        whole = _load(queue, item)
        if isinstance(whole, AccessRequest):
            queue.access.set_status(whole, AccessState.PROCESSING)
        else:
            batch = whole if isinstance(whole, Batch) else queue.batches.load(whole.bid)
            ids = queue.batches.jobs(batch)["batch-failed"] if isinstance(whole, Batch) else [whole.id]
            target = _state(JobState, state)
            faults = []
            for job_id in ids:
                try:
                    queue.jobs.requeue(queue.jobs.load(job_id), target)
                except MerrittError as error:
                    faults.append(f"{job_id}: {error}")
            if faults and isinstance(whole, Job):
                raise Refused(faults[0])
            if batch.state is BatchState.FAILED:
                queue.batches.set_status(batch, BatchState.UPDATE_REPORTING)
            if faults:
                raise Refused(f"{len(faults)} of {len(ids)} jobs are not requeued: {' '.join(faults)}")
        typer.echo(f"{item} is {_load(queue, item).state}")


@app.command()
def fail(
    item: ItemArgument,
    *,
    reason: Annotated[str, typer.Option(help="The message of the item.")] = "failed by an operator",
    break_locks: Annotated[
        bool,
        typer.Option(
            "--break-locks",
            help="Also delete the locks of the job and its object, whoever holds them: for work that hangs.",
        ),
    ] = False,
    zookeeper: ZooKeeperOption,
) -> None:
    """Fail a job, a batch or an access request whose work hangs.

    A consumer of Spinney cancels the work of a job that was failed; the jobs of a batch go on."""
    with _queue(zookeeper) as queue:
        whole = _load(queue, item)
        if isinstance(whole, Job):
            try:
                whole = queue.jobs.fail(whole, reason, break_locks=break_locks)
            except MerrittLocked as error:
                raise Refused(f"{error} If that hangs, --break-locks deletes the lock.") from error
        elif break_locks:
            raise UsageError(
                "--break-locks is for jobs; 'spinney merritt repair --break-locks' deletes others"
            )
        else:
            whole = _moved(queue, whole, "Failed", reason)
    typer.echo(f"{item} is {whole.state}")


@app.command()
def cleanup(*, yes: YesOption = False, zookeeper: ZooKeeperOption) -> None:
    """Delete all batches, with their jobs, and access requests that are Completed or Deleted, after confirmation."""
    require_yes("Delete all batches and access requests that are Completed or Deleted?", yes=yes)
    with _queue(zookeeper) as queue:
        batches, requests = queue.batches.delete_completed(), queue.access.delete_completed()
    typer.echo(
        f"{counted(len(batches), 'batch', 'batches')} and {counted(len(requests), 'access request')} deleted"
    )


@app.command()
def delete(
    item: ItemArgument,
    *,
    failed: Annotated[
        bool, typer.Option("--failed", help="Also failed and held ones, which become Deleted first.")
    ] = False,
    zookeeper: ZooKeeperOption,
) -> None:
    """Delete a job, a batch or an access request that has ended."""
    with _queue(zookeeper) as queue:
        whole = _load(queue, item)
        if failed and whole.state in ("Failed", "Held"):
            whole = _moved(queue, whole, "Deleted")
        _verbs(queue, whole).delete(whole)
    typer.echo(f"{item} is deleted")


LockKind = Annotated[
    str, typer.Argument(metavar="KIND", help="queue (ingest, accessSmall, accessLarge) or collection.")
]
LockName = Annotated[str, typer.Argument(metavar="NAME", help="The queue's or collection's name.")]


@app.command()
def lock(kind: LockKind, name: LockName, *, zookeeper: ZooKeeperOption) -> None:
    """Stop consumers of a queue, or have new jobs of a collection held."""
    _set_lock(zookeeper, kind, name, locked=True)


@app.command()
def unlock(kind: LockKind, name: LockName, *, zookeeper: ZooKeeperOption) -> None:
    """Let consumers of a queue continue, or stop holding new jobs of a collection."""
    _set_lock(zookeeper, kind, name, locked=False)


@app.command()
def legacy(
    *,
    move: Annotated[
        bool, typer.Option("--move", help="Move what waits, is held or has failed into the present layout.")
    ] = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    zookeeper: ZooKeeperOption,
) -> None:
    """List the records of the older queues (mrtQ-…), or move them."""
    with _queue(zookeeper) as queue:
        rows: list[dict[str, Any]]
        if move:
            rows = [asdict(each) for each in queue.move_legacy(dry_run=dry_run)]
        else:
            records, errors = queue.legacy()
            rows = [
                {"path": each.path, "status": each.status.name, "time": each.time.isoformat()}
                for each in records
            ] + [{"error": str(error)} for error in errors]
    _print(rows, json=json, empty="there is no record of an older queue")


def _set_lock(hosts: str, kind: str, name: str, *, locked: bool) -> None:
    """Lock or unlock a queue or a collection, and print whether that changed anything."""
    with _queue(hosts) as queue:
        if kind not in ("queue", "collection"):
            raise UsageError(f"a lock is that of a queue or of a collection; {kind!r} is neither")
        changed = getattr(queue.locks, f"{'lock' if locked else 'unlock'}_{kind}")(name)
    typer.echo(f"{kind} {name}: {'' if changed else 'already '}{'locked' if locked else 'unlocked'}")


def _change(hosts: str, item: str, state: str) -> _Item:
    """Move an item to a state, print its state, and return the item."""
    with _queue(hosts) as queue:
        changed = _moved(queue, _load(queue, item), state)
    typer.echo(f"{changed.id} is {changed.state}")
    return changed


def _verbs(queue: MerrittQueue, item: _Item) -> Any:
    """Return the part of the library that handles items of this kind."""
    return {Job: queue.jobs, Batch: queue.batches, AccessRequest: queue.access}[type(item)]


def _moved(queue: MerrittQueue, item: _Item, state: str, message: str = "") -> _Item:
    """Move an item to a state. Raises UsageError for an access request in a state that only others have: Held."""
    verbs, kind = _verbs(queue, item), type(item.state)
    if isinstance(item, AccessRequest) and state not in [*kind]:
        raise UsageError(
            f"{item.queue}/{item.id} is an access request, which cannot be {state}; 'spinney merritt lock queue "
            f"access{item.queue.capitalize()}' stops the consumers of its queue"
        )
    return cast(_Item, verbs.set_status(item, kind(state), message=message))


def _load(queue: MerrittQueue, item: str) -> _Item:
    """Return the item of this id: a job, a batch by its number there or its uuid, or an access request as
    ``QUEUE/ID``.

    Raises UsageError for a uuid without a batch, and MerrittError where the item does not exist.
    """
    if item.startswith("bid-"):
        batch = queue.batches.find_by_uuid(item)
        if batch is None:
            raise UsageError(f"there is no batch {item}; 'spinney merritt ls batches' lists them")
        return batch
    kind, _, request = item.partition("/")
    if kind in layout.ACCESS_QUEUES:
        return queue.access.load(cast(AccessQueue, kind), request)
    return queue.batches.load(item) if item.startswith("bid") else queue.jobs.load(item)


def _print(rows: Sequence[Mapping[str, Any]], *, json: bool, empty: str) -> None:
    """Print rows with the columns that any of them has, in the order in which these first appear."""
    columns = {name.upper(): _column(name) for name in dict.fromkeys(name for row in rows for name in row)}
    display.print_list(rows, columns, json=json, empty=empty)


def _column(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: str(row.get(name, ""))
