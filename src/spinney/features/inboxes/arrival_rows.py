"""The rows of what came into an inbox, dropped or uploaded, and the jobs that are made of it.

All functions here run in a transaction of their caller (``sql``), which writes an arrival and its job
together.
"""

from dataclasses import asdict
from typing import Any, NamedTuple

import orjson

from spinney.model.jobs import Submission
from spinney.model.rights.actor import Actor
from spinney.model.settings.inboxes import (
    DATA_NAME,
    FILE_PARAM,
    Arrival,
    ArrivalOutcome,
    Drop,
    Duplicates,
    Inbox,
    Upload,
)
from spinney.model.types import TypeSpec
from spinney.store.sql import records
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.submit import new_jobs
from spinney.store.sql.transitions import hold_rows

ARRIVALS = records.RowMap(Arrival, "inbox_arrivals")


class Duplicate(NamedTuple):
    """What is known of bytes that came before; both fields are None for bytes that are accepted."""

    reason: str | None
    """Why they are refused; None: they are not."""
    job_id: int | None
    """The job that was made of the first ones."""


def duplicate(tx: Tx, inbox: Inbox, sha256: str | None) -> Duplicate:
    """Return why bytes with this digest are refused as a duplicate, and the job that has them; both are None when they
    are new, have no digest, or the inbox accepts duplicates."""
    if inbox.duplicates is Duplicates.ACCEPT or sha256 is None:
        return Duplicate(None, None)
    first = ARRIVALS.one(
        tx,
        # Rejected ones do not count: bytes that never became a job may come again.
        "where inbox = ? and sha256 = ? and outcome in ('taking', 'taken') order by id limit 1",
        (inbox.name, sha256),
    )
    if first is None:
        return Duplicate(None, None)
    reason = f"its bytes came before, as {first.name!r} of {first.owner}, and became job {first.job_id}"
    return Duplicate(reason, first.job_id)


def of_upload(tx: Tx, upload: Upload) -> Arrival | None:
    """Return the arrival of an upload; None: it has none yet. ``identity`` is the upload's own, so two
    uploads of the same bytes are told apart."""
    return ARRIVALS.one(
        tx,
        "where inbox = ? and sha256 = ? and identity = ?",
        (upload.inbox, upload.sha256, upload.identity),
    )


def insert(
    tx: Tx,
    inbox: Inbox,
    drop: Drop,
    outcome: ArrivalOutcome,
    job_id: int | None,
    reason: str | None,
    now_us: int,
) -> Arrival:
    """Write the arrival of a drop, or of an upload, and return it."""
    facts = asdict(drop)
    del facts["fault"]
    arrival = Arrival(
        id=tx.take("inbox_arrival"),
        inbox=inbox.name,
        at_us=now_us,
        outcome=outcome,
        job_id=job_id,
        reason=reason,
        **facts,
    )
    records.insert(tx, "inbox_arrivals", asdict(arrival))
    return arrival


def submission_of(inbox: Inbox, drop: Drop, spec: TypeSpec, **more: Any) -> Submission:
    """Return the submission of the job of a drop.

    The parameter ``file``, if the type has one, is the name of what was dropped; the job's data says
    where it came from. The submitter is the owner of the file, unless the options of the inbox name one.
    ``more``: options that count more than those of the inbox.
    """
    params = dict(inbox.params)
    if FILE_PARAM in spec.schema.get("properties", {}):
        params[FILE_PARAM] = drop.name
    facts = {
        field: getattr(drop, field) for field in ("name", "kind", "size", "sha256", "owner", "dropped_us")
    }
    options = {"submitter": drop.owner} | {k: v for k, v in inbox.options.items() if v is not None} | more
    return Submission(
        type=inbox.type,
        params=(orjson.dumps(params).decode(),),
        data={DATA_NAME: orjson.dumps({"inbox": inbox.name, **facts}).decode()},
        **options,
    )


def held_job(
    tx: Tx, registry: Registry, inbox: Inbox, submission: Submission, reason: str, now_us: int
) -> int:
    """Create a job that is held for this reason, and return its id. Nobody can claim it in between: it is
    one transaction."""
    (job_id,) = new_jobs.inline(tx, registry, [new_jobs.plan(registry, submission)], now_us)
    hold_rows.hold_one(tx, registry, job_rows.find(tx, job_id), reason, actor_of(inbox.name), None, now_us)
    return job_id


def release_job(tx: Tx, registry: Registry, arrival: Arrival, reason: str, now_us: int) -> None:
    """End the hold with which ``held_job`` made the job of an arrival; other holds on the job stay."""
    if arrival.job_id is not None:
        own = (reason, actor_of(arrival.inbox).by)
        holds = [h for h in hold_coverage.on_job(tx, arrival.job_id) if (h.reason, h.by) == own]
        hold_rows.end(tx, registry, holds, now_us)


def actor_of(name: str) -> Actor:
    """Return the actor of what an inbox does by itself, for holds and the audit."""
    return Actor(by=f"inbox {name}", call=f"inbox {name}")
