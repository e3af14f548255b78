"""What a job of Merritt's queue means to ``spinney ingest``: pure rules over the job's nodes, in both directions.

The names of fields are those of Merritt's queue design (``configuration``: ``profile_name``, ``submitter``,
``payload_url``, ``payload_type``, ``local_id``) and those that its services write besides."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter, ValidationError

from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder, Payload
from spinney.apps.ingest.manifests import About, PayloadKind, Row
from spinney.apps.ingest.merritt import progress
from spinney.apps.ingest.merritt.settings import Settings
from spinney.bridges.merritt import Batch, Job, JobState, MerrittZKNodeInvalid
from spinney.bridges.merritt.codec import first_value, read_object
from spinney.errors import UsageError
from spinney.files.digests import Digest, digest
from spinney.files.paths import NotAdmitted, component
from spinney.settings_files import faults

_ABOUT = TypeAdapter(About)
"""Checks what others have written, as the fields of an order are checked."""
_BIDS = uuid.UUID("0a1c7e0e-6c3b-4c0c-9a53-6f0f0f1d2b47")
KINDS: Mapping[str, PayloadKind] = {
    **{str(kind): kind for kind in PayloadKind},
    "manifest": PayloadKind.OBJECT_MANIFEST,
    "batchManifestFile": PayloadKind.SINGLE_FILE_BATCH_MANIFEST,
    "batchManifestContainer": PayloadKind.CONTAINER_BATCH_MANIFEST,
    "batchManifest": PayloadKind.BATCH_MANIFEST,
}
"""The kinds of payloads, by the names that Merritt's services and their clients use."""


def kind_of(fields: Mapping[str, Any], name: str = "type") -> PayloadKind:
    """Return the kind of a payload. Raises UsageError for one that does not exist."""
    try:
        return KINDS[str(fields.get(name))]
    except KeyError:
        raise UsageError(
            f"{name} {fields.get(name)!r} is no kind of payload; use one of {', '.join(KINDS)}"
        ) from None


def profile_of(fields: Mapping[str, Any]) -> str:
    """Return the profile of a submission or a job: ``profile_name``, or ``profile``, as the services write it."""
    return str(fields.get("profile_name") or fields.get("profile") or "")


def bid_of(batch: Batch) -> str:
    """Return the name of a batch here: its uuid there, or one that is always made of its id.

    The uuid, in lower case, is used where it has the form of a name of ours; other services submit batches
    with any.
    """
    uuid_ = batch.uuid.lower()
    return uuid_ if orders.BID.fullmatch(uuid_) else f"bid-{uuid.uuid5(_BIDS, batch.id)}"


def folder_of(batch: Batch) -> str:
    """Return the name of the folder where the payload of a batch is: its uuid, or its id where it has none.

    Raises UsageError for a uuid that cannot be a folder's name, such as one with a slash: it comes from a
    submission.
    """
    try:
        return component(batch.uuid or batch.id)
    except NotAdmitted as error:
        raise UsageError(f"the batch's submission: batchID: {error}; submit it again") from None


def object_order(job: Job, bid: str, settings: Settings) -> ObjectOrder:
    """Return the object that a job deposits, up to the step that is left to others.

    Identifiers in the job's own node come before those of its configuration. Raises UsageError where the job
    does not describe an object, and MerrittZKNodeInvalid where a file that belongs to it cannot be read.
    """
    others = settings.left_to_others(job.state) if job.state in settings.states else None
    configuration = job.configuration
    if configuration.keys() <= {"profile_name", "number"}:
        raise UsageError(
            "its batch's payload made no object of it; correct the payload, and submit the batch again"
        )
    kind = kind_of(configuration, "payload_type" if "payload_type" in configuration else "type")
    if kind.is_batch:
        raise UsageError(f"a job is one object, and {kind} is a kind of batch; submit it as a batch")
    identifiers, metadata = (_with_file(each, settings.queue) for each in (job.identifiers, job.metadata))
    try:
        url = _payload_url(configuration, settings.queue)
        name = str(configuration.get("payload_filename") or unquote(urlsplit(url).path.rpartition("/")[2]))
        if not url or not name:
            raise UsageError("the job's configuration has no payload_url with a file name; submit it again")
        return ObjectOrder(
            jid=orders.jid(bid, int(job.id.removeprefix("jid"))),
            bid=bid,
            profile=profile_of(configuration),
            submitter=str(configuration.get("submitter") or "unknown"),
            payload=Payload(
                kind=kind,
                url=url,
                name=name,
                size_bytes=_size(configuration.get("payload_size")),
                digest=_sum(configuration),
                mime_type=configuration.get("payload_mime_type"),
                modified=configuration.get("payload_modified"),
            ),
            about=_ABOUT.validate_python(
                {
                    "primary_id": identifiers.get("primary_id") or configuration.get("primary_id") or None,
                    "local_ids": _local_ids(
                        identifiers.get("local_id") or configuration.get("local_id") or []
                    ),
                    "creator": metadata.get("erc_who") or configuration.get("creator") or None,
                    "title": metadata.get("erc_what") or configuration.get("title") or None,
                    "date": metadata.get("erc_when") or configuration.get("date") or None,
                }
            ),
            update=_is_update(configuration),
            # What is recorded here is not what Merritt's inventory records, so that is left to others behind it.
            until=None if others is None else progress.STAGES.get(others, "notify"),
            returns=others is JobState.RECORDING and settings.comes_back_in is not None,
        )
    except (ValueError, NotAdmitted) as error:
        raise UsageError(f"the job's configuration: {_reason(error)}; submit it again") from None


def _with_file(fields: Mapping[str, Any], folder: Path | None) -> Mapping[str, Any]:
    """Return the fields of a node with those of the file that its ``url`` names, where a consumer has written that.

    Only files below the folder of batches are read, whatever a node names. Raises MerrittZKNodeInvalid."""
    text = str(fields.get("url") or "")
    try:
        url = urlsplit(text)
        path = Path(unquote(url.path)).resolve()
    except ValueError as error:  # an odd host, a NUL in the path
        raise MerrittZKNodeInvalid(f"{text!r} names no file: {error}") from error
    if url.scheme != "file":
        return fields
    if folder is None or not path.is_relative_to(folder.resolve()):
        raise MerrittZKNodeInvalid(f"{path} is not below the folder of batches, the setting 'queue'")
    try:
        return {**read_object(str(path), path.read_bytes()), **fields}
    except OSError as error:
        raise MerrittZKNodeInvalid(f"{path} cannot be read: {error.strerror}") from error


def _payload_url(configuration: Mapping[str, Any], folder: Path | None) -> str:
    """Return the URL of a job's payload, empty where the configuration names none. One that Merritt's batch service has
    put into the job's folder, below the folder of batches, has a file's name only, which jobs that were moved from an
    older queue have as their URL. Raises NotAdmitted for a name that no file can have."""
    url = str(configuration.get("payload_url") or "")
    names = [str(configuration.get(key) or "") for key in ("batchID", "jobID", "filename")]
    if folder is None or not all(names) or url not in ("", names[-1]):
        return url
    return folder.joinpath(*map(component, names)).as_uri()


def _local_ids(value: Any) -> tuple[str, ...]:
    """Return the local ids of an object. Raises ValueError for a value that is neither a text nor a list of texts."""
    texts = value.split(";") if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise ValueError(f"the local id {value!r} is neither text nor a list of texts")
    return tuple(each.strip() for each in texts if each.strip())


def batch_order(batch: Batch) -> BatchOrder:
    """Return the submission of a batch, as accepted now.

    Keys are read by the names in ``_SUBMITTED_AS``, and messages name the key that was submitted. Raises
    UsageError where it does not describe a batch.
    """
    submission = batch.submission
    folder_of(batch)
    keys = {
        field: next((key for key in names if submission.get(key)), names[0])
        for field, names in _SUBMITTED_AS.items()
    }
    texts = {field: submission.get(key) or None for field, key in keys.items()}
    name = texts.pop("name")
    try:
        return BatchOrder(
            bid=bid_of(batch),
            profile=profile_of(submission),
            kind=kind_of(submission),
            name=str(name or ""),
            submitter=str(submission.get("submitter") or "unknown"),
            update=_is_update(submission),
            digest=_sum(submission),
            about=_ABOUT.validate_python(
                texts
                | {"local_ids": _local_ids(first_value(submission, ("localIdentifier", "localID")) or [])}
            ),
            accepted=datetime.now(UTC),
        )
    except (ValueError, NotAdmitted) as error:
        raise UsageError(f"the batch's submission: {_reason(error, keys)}; submit it again") from None


def job_nodes(order: BatchOrder, number: int, row: Row | None, payload_url: str) -> dict[str, Any]:
    """Return the nodes of the job that deposits a row of a batch's manifest, or its only payload, by their names.

    ``number``: its place in the batch, by which it is known after a crash."""
    about = order.about if row is None else row.about
    given_digest = order.digest if row is None else row.digest
    kind = order.kind.of_rows
    configuration: dict[str, Any] = {
        "profile_name": order.profile,
        "submitter": order.submitter,
        "payload_url": payload_url if row is None else row.url,
        "payload_type": "manifest" if kind.is_manifest else str(kind),
        "payload_filename": order.name if row is None else row.name,
        "response_type": "json",
        "update": order.update,
        "number": number,
    }
    if given_digest is not None:
        configuration |= {"digest_type": given_digest.algorithm, "digest_value": given_digest.value}
    if row is not None:
        details = {"size": row.size_bytes, "mime_type": row.mime_type, "modified": row.modified}
        configuration |= {f"payload_{name}": value for name, value in details.items() if value is not None}
    nodes: dict[str, Any] = {"configuration": configuration}
    if about.primary_id or about.local_ids:
        nodes["identifiers"] = {"primary_id": about.primary_id or "", "local_id": list(about.local_ids)}
    if about.creator or about.title or about.date:
        values = (about.creator or "", about.title or "", about.date or "")
        nodes["metadata"] = dict(zip(("erc_who", "erc_what", "erc_when"), values, strict=True))
    return nodes


_SUBMITTED_AS = {
    "name": ("filename", "payload_filename"),
    "primary_id": ("primaryIdentifier", "objectID"),
    "creator": ("creator", "erc_who"),
    "title": ("title", "erc_what"),
    "date": ("date", "erc_when"),
}
"""The keys of submissions from which each field of an order is read; the first that has a value counts."""


def _reason(error: Exception, keys: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return why an order is refused; ``keys``: by fields of the order, the keys from which they were read."""
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    parted = (fault.partition(":") for fault in faults(error))
    return "; ".join(f"{keys.get(field, field)}{colon}{reason}" for field, colon, reason in parted)


def _is_update(fields: Mapping[str, Any]) -> bool:
    """Return whether files are added to the object's newest version: ``update``, or ``submission_mode`` as
    services write it."""
    mode = fields.get("update", fields.get("submission_mode"))
    return mode is True or str(mode).lower() in ("true", "update")


def _size(value: Any) -> int | None:
    """Return a size in bytes; None for a value that is not a whole number, which counts as unknown and not as an
    error."""
    return int(value) if str(value).isascii() and str(value).isdigit() else None


def _sum(fields: Mapping[str, Any]) -> Digest | None:
    """Return the digest of a payload; raises NotAdmitted for one that cannot be."""
    algorithm = fields.get("digest_type") or fields.get("digestType")
    value = fields.get("digest_value") or fields.get("digestValue")
    return digest(str(algorithm), str(value)) if algorithm and value else None
