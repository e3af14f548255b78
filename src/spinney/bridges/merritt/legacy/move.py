"""Moving legacy records into the layout: each is one transaction, which writes the new nodes and deletes the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient

from spinney.bridges.merritt import access, batches, items, job_nodes, layout, nodes
from spinney.bridges.merritt.codec import Fields, first_value, read_text
from spinney.bridges.merritt.errors import MerrittError, MerrittZKNodeInvalid
from spinney.bridges.merritt.legacy.records import LegacyQueue, LegacyRecord, LegacyStatus, list_records
from spinney.bridges.merritt.states import AccessState, BatchState, JobState
from spinney.bridges.merritt.transactions import Transaction, create_numbered, next_name

_JOB_STATES = {
    LegacyStatus.PENDING: JobState.PENDING,
    LegacyStatus.HELD: JobState.HELD,
    LegacyStatus.FAILED: JobState.FAILED,
}
_ACCESS_STATES = {LegacyStatus.PENDING: AccessState.PENDING, LegacyStatus.FAILED: AccessState.FAILED}
_CONFIGURATION = {
    "profile_name": ("profile", "profile_name"),
    "submitter": ("submitter",),
    "payload_url": ("payload_url", "url", "filename"),
    "payload_type": ("type", "payload_type"),
    "response_type": ("responseForm", "response_type"),
    "submissionDate": ("submissionDate", "date"),
}
_OF_THE_PAYLOAD: Mapping[str, Sequence[str]] = {
    **{name: (name,) for name in ("batchID", "jobID", "filename", "update")},
    "digest_type": ("digestType", "digest_type"),
    "digest_value": ("digestValue", "digest_value"),
}
"""Fields of the configuration that only some records have. By the first three, in this order, the payload is found that
Merritt's batch service has put below its folder."""
_PRIMARY_ID, _LOCAL_ID = ("primaryIdentifier", "objectID"), ("localIdentifier", "localID")
_METADATA = {"erc_who": ("creator",), "erc_what": ("title",), "erc_when": ("date",), "erc_where": _LOCAL_ID}
_BATCH_FIELDS = [
    "batchID",
    "profile",
    "submitter",
    "filename",
    "type",
    "responseForm",
    "notification",
    "submissionDate",
]


@dataclass(frozen=True, slots=True)
class Move:
    """What became of a legacy record, or would become."""

    path: str
    target: str | None
    """The node that it became; None in a dry run, and where it stayed."""
    action: str
    """What became of the record, in words."""


def move(client: KazooClient, *, dry_run: bool) -> list[Move]:
    """Move records that wait, are held or have failed into the layout, and return what became of each record; with
    ``dry_run``, what would become of it.

    Ingest records become jobs, those of one ``batchID`` in one batch. Inventory records become jobs in
    Recording, each in a batch of its own. Access records become requests. What is consumed, completed or
    deleted stays, and so does what cannot be read: the move says why. It can be repeated, since a moved
    record is gone."""
    records, errors = list_records(client)
    moves = [_move_one(client, record, dry_run) for record in records]
    return moves + [Move(str(error).split(" ", 1)[0], None, f"Stays: {error}") for error in errors]


def _move_one(client: KazooClient, record: LegacyRecord, dry_run: bool) -> Move:
    """Move one record, or say why it stays."""
    is_access = record.queue in (LegacyQueue.ACCESS_SMALL, LegacyQueue.ACCESS_LARGE)
    if record.status not in (_ACCESS_STATES if is_access else _JOB_STATES):
        reason = (
            "an old consumer works at it"
            if record.status is LegacyStatus.CONSUMED
            else "no consumer would take it"
        )
        return Move(record.path, None, f"Stays: it is {record.status.name.lower()}, so {reason}.")
    try:
        if not is_access:
            _require_movable(record)
        if dry_run:
            return Move(record.path, None, f"Would become {'an access request' if is_access else 'a job'}.")
        target = _to_access(client, record) if is_access else _to_job(client, record)
    except MerrittError as error:
        return Move(record.path, None, f"Stays: {error}")
    return Move(record.path, target, f"Became {target}.")


def _require_movable(record: LegacyRecord) -> None:
    """Raise MerrittZKNodeInvalid for a record that cannot become a job: its uuid is no name of a node, or its
    identifiers are no texts."""
    batches.require_uuid(record.fields)
    for name in (*_PRIMARY_ID, *_LOCAL_ID):
        if not isinstance(record.fields.get(name), str | None):
            raise MerrittZKNodeInvalid(f"{name} in {record.path} is no text; move it by hand.")


def _to_access(client: KazooClient, record: LegacyRecord) -> str:
    """Move a record to an access queue, and return the request's path."""
    queue: access.AccessQueue = "small" if record.queue is LegacyQueue.ACCESS_SMALL else "large"

    def write(transaction: Transaction, name: str) -> None:
        status = items.status_fields({}, _ACCESS_STATES[record.status])
        access.add_request(transaction, queue, name, record.fields, status)
        transaction.delete(record.path, record.version)

    return f"{layout.ACCESS}/{queue}/{create_numbered(client, f'{layout.ACCESS}/{queue}', 'qid', write)}"


def _to_job(client: KazooClient, record: LegacyRecord) -> str:
    """Move a record to the ingest queue, and return the job's path. Its batch is the one with its uuid, or is
    made with it."""
    uuid = batches.require_uuid(record.fields)
    (pointer,) = nodes.get_all(client, [f"{layout.BATCH_UUIDS}/{uuid}"]) if uuid else (None,)
    bid = read_text(nodes.data_of(pointer))

    def write_job(transaction: Transaction, job_id: str) -> None:
        # Where the batch is not there yet, it is made by the same transaction.
        in_batch = bid or create_beside(transaction)
        _add_job(client, transaction, record, job_id, in_batch)

    def create_beside(transaction: Transaction) -> str:
        name = next_name(client, layout.BATCHES, "bid")
        transaction.create(f"{layout.BATCHES}/{name}")
        submission = {key: record.fields[key] for key in _BATCH_FIELDS if record.fields.get(key)}
        status = items.status_fields({}, BatchState.PROCESSING)
        batches.add_batch(client, transaction, name, submission, status)
        return name

    return f"{layout.JOBS}/{create_numbered(client, layout.JOBS, 'jid', write_job)}"


def _add_job(
    client: KazooClient, transaction: Transaction, record: LegacyRecord, job_id: str, bid: str
) -> None:
    """Add the nodes of the job that a record becomes, and the deletion of the record. Names of fields differ
    between the programs that wrote records; the first that is there counts."""
    fields = record.fields
    configuration = {key: first_value(fields, names) or "" for key, names in _CONFIGURATION.items()}
    configuration |= _present(fields, _OF_THE_PAYLOAD)
    state, inventory = _JOB_STATES[record.status], None
    if record.queue is LegacyQueue.INVENTORY:
        urls = [value for value in fields.values() if str(value).startswith(("http://", "https://"))]
        inventory = {"manifest_url": urls[0] if urls else "", "mode": fields.get("mode", "")}
        state = JobState.RECORDING if state is JobState.PENDING else state
    last = JobState.STORING if inventory else None
    status = job_nodes.status_fields({"last_successful_status": last}, state, "moved from " + record.path, 0)
    parts: dict[str, Fields | None] = {
        "identifiers": job_nodes.job_identifiers(
            first_value(fields, _PRIMARY_ID), first_value(fields, _LOCAL_ID)
        ),
        "metadata": _present(fields, _METADATA),
        "inventory": inventory,
    }
    priority = job_nodes.DEFAULT_PRIORITY if record.priority is None else record.priority
    job_nodes.add_job(client, transaction, job_id, bid, configuration, parts, priority, 0, status)
    transaction.delete(record.path, record.version)


def _present(fields: Fields, sources: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the values for these keys that are there, each from the first of its fields that has one."""
    values = {key: first_value(fields, names) for key, names in sources.items()}
    return {key: value for key, value in values.items() if value is not None}
