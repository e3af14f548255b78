"""Verbs that requeue objects, delete batches, and hold, release, pause and unpause."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest import staff
from spinney.apps.ingest.staff import PAUSABLE, Service
from spinney.apps.ingest.verbs.base import BatchName, DryRun, MessagePart, Text, Verb, stage_names
from spinney.command_line import completion
from spinney.errors import UsageError, did_you_mean, listed

Reason = Annotated[Text, Field(description="The reason, shown with every held batch and object.")]
AuditReason = Annotated[
    Text | None, Field(description="The reason, recorded in the audit log.", examples=["counted"])
]


def _pausable(incomplete: str) -> list[str]:
    return [name for name in PAUSABLE if name.startswith(incomplete)]


Pausable = Annotated[
    Text,
    Field(description="The queue: `ingest`, `access-small` or `access-large`."),
    typer.Argument(metavar="[QUEUE]", autocompletion=_pausable),
]


class Requeue(Verb):
    """Requeue objects: of a batch all that failed, and optionally those that completed. When they have settled, the
    batch reports again."""

    name = "requeue"
    changes = True
    is_long = True
    names: Annotated[list[Text], typer.Argument(metavar="BATCH|OBJECT...")] = Field(
        description="Batches or objects: `bid-…`, `jid-…`, or the numbers of their jobs."
    )
    stage: Annotated[Text | None, typer.Option("--from", metavar="STAGE", autocompletion=stage_names)] = (
        Field(
            default=None,
            description="Restart from this stage (default: after the last that was successful).",
            examples=["downloading"],
        )
    )
    message: MessagePart = None
    completed: bool = Field(default=False, description="Also completed objects, from their first stage on.")
    dry_run: DryRun = False

    def run(self, service: Service) -> Mapping[str, Any]:
        planned = staff.plan(
            service,
            self.names,
            stage=self.stage,
            message=self.message,
            completed=self.completed,
            exact=self.dry_run,
        )
        if self.dry_run:
            return {
                "items": [{"what": requeue.what, "would_requeue": requeue.objects} for requeue in planned]
            }
        reports = [(requeue, staff.requeue(service, requeue)) for requeue in planned]
        return {
            "items": [
                {"what": requeue.what, "requeued": r.touched, "refused": r.refused} for requeue, r in reports
            ]
        }


class Delete(Verb):
    """Delete a failed or held batch with all its files; archived objects are kept."""

    name = "delete"
    changes = True
    is_long = True
    batch: BatchName
    completed: bool = Field(default=False, description="Also delete completed batches.")

    def run(self, service: Service) -> Mapping[str, Any]:
        return {"deleted": staff.delete(service, staff.batch(service, self.batch), completed=self.completed)}


class Sweep(Verb):
    """Delete batches that completed long ago, and payloads that never became a batch."""

    name = "sweep"
    changes = True
    is_long = True
    days: Annotated[int, typer.Option(metavar="N")] = Field(
        ge=0, le=36_500, description="Only batches that completed at least so many days ago."
    )
    dry_run: DryRun = False

    def run(self, service: Service) -> Mapping[str, Any]:
        swept = staff.sweep(service, days=self.days, dry_run=self.dry_run)
        return {"batches": swept.batches, "leftovers": [str(place) for place in swept.leftovers]}


class Hold(Verb):
    """Hold a collection: running jobs finish their stage, all others are held, also those submitted later."""

    name = "hold"
    changes = True
    is_long = True
    collection: Annotated[
        Text, typer.Argument(metavar="COLLECTION", autocompletion=completion.collections)
    ] = Field(description="The collection, with all its batches and objects.")
    reason: Reason

    def run(self, service: Service) -> Mapping[str, Any]:
        hold = staff.hold(service, self.collection, self.reason)
        return {"hold": hold.id, "jobs": service.store.holds.held(hold.id)}


class Release(Verb):
    """Release a held collection, or a batch that its profile holds."""

    name = "release"
    changes = True
    is_long = True
    collection: Annotated[
        Text | None, typer.Argument(metavar="[COLLECTION]", autocompletion=completion.collections)
    ] = Field(default=None, description="The held collection.", examples=["maps"])
    batch: Annotated[Text | None, typer.Option(metavar="BATCH")] = Field(
        default=None, description="A batch that its profile holds.", examples=["4711"]
    )
    reason: AuditReason = None

    def run(self, service: Service) -> Mapping[str, Any]:
        if self.batch is not None and self.collection is None:
            batch = staff.batch(service, self.batch)
            holds = staff.release_batch(service, batch)
            return {"batch": batch.bid, "under": [str(hold) for hold in holds]}
        if self.collection is None or self.batch is not None:
            raise UsageError("name either a collection, or a batch with --batch")
        return {"ended": [hold.id for hold in staff.release(service, self.collection, self.reason)]}


class Pause(Verb):
    """Pause ingest, or an access queue: none of its jobs start until it is unpaused."""

    name = "pause"
    changes = True
    is_long = True
    what: Pausable = "ingest"
    reason: Reason

    def run(self, service: Service) -> Mapping[str, Any]:
        _require_pausable(self.what)
        return {"laid": [hold.id for hold in staff.pause(service, self.what, self.reason)]}


class Unpause(Verb):
    """Unpause ingest, or an access queue."""

    name = "unpause"
    changes = True
    is_long = True
    what: Pausable = "ingest"
    reason: AuditReason = None

    def run(self, service: Service) -> Mapping[str, Any]:
        _require_pausable(self.what)
        return {"lifted": [hold.id for hold in staff.unpause(service, self.what, self.reason)]}


def _require_pausable(what: str) -> None:
    if what not in PAUSABLE:
        raise UsageError(
            f"{what!r} cannot be paused{did_you_mean(what, PAUSABLE)}; name one of: {listed(PAUSABLE)}"
        )
