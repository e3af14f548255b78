"""What a job is in ZooKeeper: its nodes, its status, and where lists point to it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from kazoo.client import KazooClient

from spinney.bridges.merritt import codec, layout
from spinney.bridges.merritt.codec import Fields
from spinney.bridges.merritt.errors import MerrittStateError
from spinney.bridges.merritt.items import Item, read_item
from spinney.bridges.merritt.nodes import replace
from spinney.bridges.merritt.states import STEPS, BatchState, JobState, is_deletable
from spinney.bridges.merritt.transactions import Transaction

DEFAULT_PRIORITY = 5
"""The priority of a job for which nothing else is said."""
PARTS = ("identifiers", "metadata", "inventory", "store")
"""The nodes of a job that it may lack, each with a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Item):
    """A job as it was when it was read; it does not follow later changes."""

    bid: str
    """The batch it belongs to."""
    state: JobState
    priority: int
    """From 0 to 99; lower numbers are served first."""
    space_needed: int
    """How many bytes it takes while it is worked at; 0 until that is estimated."""
    configuration: dict[str, Any]
    """The decoded JSON of its node ``configuration``; each of the four below is that of the node of its name."""
    identifiers: dict[str, Any]
    metadata: dict[str, Any]
    inventory: dict[str, Any]
    store: dict[str, Any]

    @property
    def retry_count(self) -> int:
        """How often an operator has requeued the job; 0 where somebody has written something other than a number."""
        return retry_count(self.status)

    @property
    def last_successful_status(self) -> str | None:
        """The last state whose step succeeded, from which a requeued job goes on; None: none has."""
        return self.status.get("last_successful_status")

    @property
    def pointers(self) -> tuple[str, str]:
        """The nodes by which the job is found: in its state and in its batch."""
        return (
            layout.job_pointer(self.state, self.priority, self.id),
            layout.batch_pointer(self.bid, self.state, self.id),
        )


class Head(NamedTuple):
    """What of a job is read where only its state matters."""

    state: JobState
    priority: int
    retry_count: int


def retry_count(status: Fields) -> int:
    """Return the retry count in a status. A wrong one counts as 0: it must stop no work on the job or on others."""
    try:
        return int(status.get("retry_count") or 0)
    except (ValueError, TypeError, OverflowError):
        return 0


def job_identifiers(primary_id: str | None, local_id: str | None) -> dict[str, Any]:
    """Return the identifiers of a job; ``local_id`` may name several, with ``;`` between them."""
    return {
        "primary_id": primary_id or "",
        "local_id": [each for each in (local_id or "").split(";") if each],
    }


def job_metadata(who: str, what: str, when: str, where: str) -> dict[str, Any]:
    """Return the description of a job's object, in the terms of ERC (Electronic Resource Citation): who,
    what, when and where."""
    return {"erc_who": who, "erc_what": what, "erc_when": when, "erc_where": where}


def status_fields(before: Fields, state: JobState, message: str, retry_count: int) -> dict[str, Any]:
    """Return the status of a job that enters ``state``; fields that others added stay.

    ``last_successful_status`` changes only where a step was done, so that a job that failed twice still knows where to
    go on. Merritt's library for Java writes "Failed" there when a job leaves Failed.
    """
    last = before.get("last_successful_status")
    old = before.get("status")
    if old in STEPS and state in STEPS:
        last = old
    return {
        **before,
        "status": state,
        "last_successful_status": last,
        "last_modified": codec.now_text(),
        "retry_count": retry_count,
        "message": codec.short_message(message),
    }


def add_job(
    client: KazooClient,
    transaction: Transaction,
    job_id: str,
    bid: str,
    configuration: Fields,
    parts: dict[str, Fields | None],
    priority: int,
    space_needed: int,
    status: Fields | None = None,
) -> None:
    """Add the nodes of a new job to a transaction that creates the job's own node, with its pointers and the lists that
    these need. ``parts``: by name; an empty one gets no node. ``status``: the status of a job that is not in Pending.

    The batch must exist, or be created by the same transaction; in the first case the transaction fails where
    the batch's status changes. Raises MerrittZKNodeInvalid for a missing batch, MerrittStateError for one that is done,
    and ValueError for an invalid priority."""
    path = f"{layout.JOBS}/{job_id}"
    batch = f"{layout.BATCHES}/{bid}"
    if not transaction.has("create", batch):
        item, _ = read_item(client, batch, BatchState)
        if is_deletable(item["state"]):
            raise MerrittStateError(f"{batch} is {item['state']}; create another batch for more jobs.")
        transaction.check(f"{batch}/status", item["version"])
    state = JobState((status or {}).get("status", JobState.PENDING))
    transaction.create(f"{path}/bid", bid.encode())
    transaction.create(f"{path}/priority", str(valid_priority(priority)).encode())
    transaction.create(f"{path}/space_needed", str(space_needed).encode())
    for name, fields in {"configuration": configuration, **parts}.items():
        if fields or name == "configuration":
            transaction.create(f"{path}/{name}", codec.object_bytes(f"{path}/{name}", fields or {}))
    whole = status or status_fields({}, state, "", 0)
    transaction.create(f"{path}/status", codec.object_bytes(f"{path}/status", whole))
    pointers = layout.job_pointer(state, priority, job_id), layout.batch_pointer(bid, state, job_id)
    replace(client, transaction, (), pointers)


def valid_priority(priority: int) -> int:
    """Return the priority. Raises ValueError for an invalid one."""
    if priority not in layout.PRIORITIES:
        raise ValueError(f"A priority is a number from 0 to 99, of which 0 is the first, and not {priority}.")
    return priority
