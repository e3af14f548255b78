"""Jobs of the ingest queue: one object each, on its way through the states."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kazoo.client import KazooClient

from spinney.bridges.merritt import codec, layout
from spinney.bridges.merritt.codec import Fields
from spinney.bridges.merritt.errors import MerrittStateError, MerrittZKNodeInvalid
from spinney.bridges.merritt.items import Items, read_item
from spinney.bridges.merritt.job_nodes import (
    DEFAULT_PRIORITY,
    PARTS,
    Head,
    Job,
    add_job,
    retry_count,
    status_fields,
    valid_priority,
)
from spinney.bridges.merritt.nodes import children, counts, data_of, existing, get_all, replace
from spinney.bridges.merritt.states import JobState, requeue_target, require_transition
from spinney.bridges.merritt.transactions import Transaction, create_numbered


class Jobs(Items[Job]):
    """The job queue: ``/jobs`` and the jobs' places in their batches."""

    def __init__(self, client: KazooClient, owner: str) -> None:
        super().__init__(client, owner)
        self._bids: dict[str, str] = {}
        """The batches of the jobs, by the jobs' ids, as ``of_batch`` knows them; they never change."""

    def create(
        self,
        bid: str,
        configuration: Fields,
        *,
        identifiers: Fields | None = None,
        metadata: Fields | None = None,
        inventory: Fields | None = None,
        store: Fields | None = None,
        priority: int = DEFAULT_PRIORITY,
        space_needed: int = 0,
        failed: str | None = None,
    ) -> Job:
        """Create a job in Pending, or in Failed with the reason ``failed``, with all its nodes in one transaction.

        Raises MerrittZKNodeInvalid where there is no such batch, MerrittStateError where the batch is done, and
        MerrittNodeTooLarge for a part that belongs into a file.
        """
        parts = {"identifiers": identifiers, "metadata": metadata, "inventory": inventory, "store": store}
        status = None if failed is None else status_fields({}, JobState.FAILED, failed, 0)

        def write(transaction: Transaction, job_id: str) -> None:
            add_job(
                self._client, transaction, job_id, bid, configuration, parts, priority, space_needed, status
            )
            if failed is not None:
                # The list of open jobs is there, although empty: that shows that all have ended.
                open_jobs = layout.batch_pointer(bid, JobState.PENDING, job_id)
                replace(self._client, transaction, (), [layout.parent(open_jobs)])

        return self.load(create_numbered(self._client, layout.JOBS, "jid", write))

    def load(self, job_id: str) -> Job:
        """Return a job. Raises MerrittZKNodeInvalid where a node is missing or cannot be read."""
        return self._read(f"{layout.JOBS}/{job_id}")

    def heads(self, ids: Sequence[str]) -> list[Head | None]:
        """Return the heads of several jobs, read in one round; None for each that is missing or cannot be read."""
        paths = [f"{layout.JOBS}/{job_id}/{name}" for job_id in ids for name in ("status", "priority")]
        read = [data_of(each) for each in get_all(self._client, paths)]
        return [_head(*both) for both in zip(read[::2], read[1::2], strict=True)]

    def acquire(self, state: JobState) -> Job | None:
        """Lock the first job in ``state`` that nobody holds, in order of priority and number; None when there is none.

        Two clients never acquire the same job. The lock ends with ``unlock``, or with the client's session.
        """

        def claim(transaction: Transaction, job: Job) -> None:
            transaction.check(job.pointers[0])

        paths = [f"{layout.JOBS}/{job_id}" for job_id in self.ids(state)]
        return next(self._acquire(paths, claim, (state,)), None)

    def set_status(
        self,
        job: Job,
        state: JobState,
        *,
        message: str = "",
        priority: int | None = None,
        retry: bool = False,
        unlock: bool = False,
        also: Callable[[Transaction], None] | None = None,
    ) -> Job:
        """Move a job to another state, in its status, its list and its batch, and return it as it is then.

        With ``priority`` it also gets that priority, with ``retry`` its retry count is raised, and with ``unlock`` its
        lock is released, all in the same transaction, to which ``also`` adds nodes of the caller's own. To set the
        state that it has changes nothing but the priority.

        Raises MerrittStateError where the state may not follow, MerrittLocked where another client holds the lock or
        this one has lost it, and MerrittConflict where the job was changed since it was read.
        """
        if state is not job.state:
            require_transition(job.path, job.state, state)
            status = status_fields(job.status, state, message, job.retry_count + retry)
        else:
            status = dict(job.status)
        after = job.priority if priority is None else valid_priority(priority)
        if status == job.status and after == job.priority and not unlock:
            return job

        def write(transaction: Transaction) -> None:
            self._move_pointers(transaction, job, state, after)
            if also is not None:
                also(transaction)

        return self._change(job, status, write, unlock=unlock, fields={"priority": after})

    def set_priority(self, job: Job, priority: int) -> Job:
        """Give a job another priority within its state, from 0 (served first) to 99. Raises as ``set_status`` does."""
        return self.set_status(job, job.state, priority=priority)

    def set_space_needed(self, job: Job, space_needed: int) -> Job:
        """Record how many bytes the job will take. Raises MerrittLocked and MerrittConflict as ``set_status``."""

        def write(transaction: Transaction) -> None:
            transaction.set(f"{job.path}/space_needed", str(space_needed).encode())

        return self._change(job, job.status, write, fields={"space_needed": space_needed})

    def set_parts(self, job: Job, **parts: Fields) -> Job:
        """Write ``identifiers``, ``metadata``, ``inventory`` and ``store`` of a job, those that are named, at once.
        Raises ValueError for another name, MerrittNodeTooLarge for one that belongs into a file, and MerrittLocked and
        MerrittConflict as ``set_status``."""
        if unknown := parts.keys() - set(PARTS):
            raise ValueError(f"A job has the parts {', '.join(PARTS)}, and not {', '.join(sorted(unknown))}.")
        data = {
            f"{job.path}/{name}": codec.object_bytes(f"{job.path}/{name}", fields)
            for name, fields in parts.items()
        }

        def write(transaction: Transaction) -> None:
            there = existing(self._client, data)
            for path, each in data.items():
                (transaction.set if path in there else transaction.create)(path, each)

        return self._change(job, job.status, write, fields=parts)

    def hold(self, job: Job) -> Job:
        """Park a pending job until it is released. Raises what ``set_status`` raises."""
        return self.set_status(job, JobState.HELD)

    def release(self, job: Job) -> Job:
        """Let a held job wait for a consumer again. Raises MerrittStateError unless it is held."""
        if job.state is not JobState.HELD:
            raise MerrittStateError(f"{job.path} is {job.state}; only a held job can be released.")
        return self.set_status(job, JobState.PENDING)

    def requeue(self, job: Job, state: JobState | None = None) -> Job:
        """Let a failed job go on after the last step that succeeded, or in ``state``, and raise its retry count. Raises
        MerrittStateError unless it has failed."""
        if job.state is not JobState.FAILED:
            raise MerrittStateError(f"{job.path} is {job.state}; only a failed job can be requeued.")
        return self.set_status(job, state or requeue_target(job.last_successful_status), retry=True)

    def fail(self, job: Job, message: str, *, break_locks: bool = False) -> Job:
        """Move a job to Failed.

        With ``break_locks`` the lock of the job and those of its object in storage and inventory are deleted, whoever
        holds them. Use that for work that hangs; what its holder writes to the job afterwards is refused.
        """
        if not break_locks:
            return self.set_status(job, JobState.FAILED, message=message)
        require_transition(job.path, job.state, JobState.FAILED)
        name = layout.object_lock_name(str(job.identifiers.get("primary_id") or ""))

        def write(transaction: Transaction) -> None:
            self._move_pointers(transaction, job, JobState.FAILED, job.priority)
            locks = [f"{layout.LOCKS}/{kind}/{name}" for kind in ("storage", "inventory") if name]
            for path in existing(self._client, locks):
                transaction.delete(path)

        status = status_fields(job.status, JobState.FAILED, message, job.retry_count)
        return self._change(job, status, write, break_lock=True)

    def delete(self, job: Job) -> None:
        """Delete a job that is Completed or Deleted, with all that points to it. Raises MerrittStateError otherwise."""
        self._delete_tree(job, job.pointers)

    def ids(self, state: JobState | None = None) -> list[str]:
        """Return the ids of all jobs in order, or of those in a state in the order in which they are served."""
        if state is None:
            return [name for name in children(self._client, layout.JOBS) if name != "states"]
        return [
            name[3:] for name in children(self._client, layout.job_states_path(state)) if name[2:3] == "-"
        ]

    def of_batch(self, bid: str, listed: Iterable[str], ids: Sequence[str]) -> Sequence[str]:
        """Return which of these jobs, all that there are, are of this batch. ``listed``: those that stand in its lists,
        which are its own; for others that are not known yet, the batch that they name is read."""
        bids = dict.fromkeys(listed, bid) | self._bids
        unread = [job_id for job_id in ids if job_id not in bids]
        read = get_all(self._client, [f"{layout.JOBS}/{job_id}/bid" for job_id in unread])
        bids |= {job_id: codec.read_text(node[0]) for job_id, node in zip(unread, read, strict=True) if node}
        self._bids = {job_id: bids[job_id] for job_id in ids if job_id in bids}
        return [job_id for job_id, each in self._bids.items() if each == bid]

    def list(self, state: JobState | None = None) -> list[Job]:
        """Return all jobs, or those in a state in the order in which they are served. One that cannot be read
        is left out with a warning."""
        return self._load_all([f"{layout.JOBS}/{job_id}" for job_id in self.ids(state)], state)

    def counts(self) -> dict[JobState, int]:
        """Return how many jobs are in each state, by what points to them; every state is a key, and no job is
        read."""
        numbers = counts(self._client, map(layout.job_states_path, JobState))
        return {state: number or 0 for state, number in zip(JobState, numbers, strict=True)}

    def _read(self, path: str) -> Job:
        names = ("bid", "priority", "space_needed", "configuration", *PARTS)
        item, (bid, priority, space_needed, *objects) = read_item(self._client, path, JobState, names)
        if bid is None:
            raise MerrittZKNodeInvalid(f"{path}/bid is missing; run a check to see what is left of the job.")
        parts: dict[str, Any] = {
            name: codec.read_object(f"{path}/{name}", each)
            for name, each in zip(names[3:], objects, strict=True)
        }
        return Job(
            **item,
            bid=codec.read_text(bid),
            priority=codec.read_number(f"{path}/priority", priority),
            space_needed=codec.read_number(f"{path}/space_needed", space_needed),
            **parts,
        )

    def _move_pointers(self, transaction: Transaction, job: Job, state: JobState, priority: int) -> None:
        """Add to a transaction what moves a job from one list to another, and its priority where that
        changes."""
        pointers = (layout.job_pointer(state, priority, job.id), layout.batch_pointer(job.bid, state, job.id))
        if priority != job.priority:
            transaction.set(f"{job.path}/priority", str(priority).encode())
        replace(self._client, transaction, job.pointers, pointers)


def _head(status: bytes | None, priority: bytes | None) -> Head | None:
    """Return the head of a job (its state and what depends on it) from the data of its nodes; None where they cannot be
    read."""
    try:
        fields = codec.read_object("status", status)
        state, number = JobState(fields.get("status", "")), codec.read_number("priority", priority)
    except (ValueError, TypeError, MerrittZKNodeInvalid):
        return None
    return Head(state, number, retry_count(fields))
