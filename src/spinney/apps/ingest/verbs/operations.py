"""Verbs that requeue objects, delete batches, and hold, release, pause and unpause."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from spinney.apps.ingest import staff
from spinney.apps.ingest.staff import PAUSABLE, Service
from spinney.apps.ingest.verbs.base import Text, Verb
from spinney.apps.ingest.verbs.batches import BATCH
from spinney.errors import UsageError, did_you_mean, listed

COLLECTION = Field(description="All of its batches and objects.")
WHAT = Field(default="ingest", description="`ingest`, `access-small` or `access-large`.")
REASON = Field(description="Why; shown with what is held.")
WHY = Field(default=None, description="Why; kept in the audit.", examples=["counted"])
DRY_RUN = Field(default=False, description="Only say what would be done.")


class Requeue(Verb):
    """Requeue objects: of a batch all that failed, and optionally those that completed. When they have settled, the
    batch reports again."""

    name = "requeue"
    changes = True
    is_long = True
    names: list[Text] = Field(description="Batches and objects, or the numbers of their jobs.")
    stage: Text | None = Field(
        default=None,
        description="From this stage on; else behind the last that was successful.",
        examples=["downloading"],
    )
    message: Text | None = Field(
        default=None, description="Only those whose message holds this.", examples=["answers 503"]
    )
    completed: bool = Field(
        default=False, description="Also those that completed, from their first stage on."
    )
    dry_run: bool = DRY_RUN

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
    batch: Text = BATCH
    completed: bool = Field(default=False, description="Also when it completed.")

    def run(self, service: Service) -> Mapping[str, Any]:
        return {"deleted": staff.delete(service, staff.batch(service, self.batch), completed=self.completed)}


class Sweep(Verb):
    """Delete batches that completed long ago, and payloads that never became a batch."""

    name = "sweep"
    changes = True
    is_long = True
    days: int = Field(ge=0, le=36_500, description="Batches that completed so many days ago.")
    dry_run: bool = DRY_RUN

    def run(self, service: Service) -> Mapping[str, Any]:
        swept = staff.sweep(service, days=self.days, dry_run=self.dry_run)
        return {"batches": swept.batches, "leftovers": [str(place) for place in swept.leftovers]}


class Hold(Verb):
    """Hold a collection: running jobs finish their stage, all others are held, also those submitted later."""

    name = "hold"
    changes = True
    is_long = True
    collection: Text = COLLECTION
    reason: Text = REASON

    def run(self, service: Service) -> Mapping[str, Any]:
        hold = staff.hold(service, self.collection, self.reason)
        return {"hold": hold.id, "jobs": service.store.holds.held(hold.id)}


class Release(Verb):
    """Release a held collection, or a batch that its profile holds."""

    name = "release"
    changes = True
    is_long = True
    collection: Text | None = Field(default=None, description="That is held.", examples=["maps"])
    batch: Text | None = Field(default=None, description="One that is held as it came.", examples=["4711"])
    reason: Text | None = WHY

    def run(self, service: Service) -> Mapping[str, Any]:
        if self.batch is not None and self.collection is None:
            batch = staff.batch(service, self.batch)
            holds = staff.release_batch(service, batch)
            return {"batch": batch.bid, "under": [str(hold) for hold in holds]}
        if self.collection is None or self.batch is not None:
            raise UsageError("name a collection, or a batch with --batch: one of the two")
        return {"ended": [hold.id for hold in staff.release(service, self.collection, self.reason)]}


class Pause(Verb):
    """Pause ingest, or an access queue: none of its jobs start until it is unpaused."""

    name = "pause"
    changes = True
    is_long = True
    what: Text = WHAT
    reason: Text = REASON

    def run(self, service: Service) -> Mapping[str, Any]:
        _require_pausable(self.what)
        return {"laid": [hold.id for hold in staff.pause(service, self.what, self.reason)]}


class Unpause(Verb):
    """Unpause ingest, or an access queue."""

    name = "unpause"
    changes = True
    is_long = True
    what: Text = WHAT
    reason: Text | None = WHY

    def run(self, service: Service) -> Mapping[str, Any]:
        _require_pausable(self.what)
        return {"lifted": [hold.id for hold in staff.unpause(service, self.what, self.reason)]}


def _require_pausable(what: str) -> None:
    if what not in PAUSABLE:
        raise UsageError(
            f"{what!r} cannot be paused{did_you_mean(what, PAUSABLE)}; name one of: {listed(PAUSABLE)}"
        )
