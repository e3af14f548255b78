"""Batches for the tests of reports."""

from datetime import UTC, datetime, timedelta
from typing import Any

from spinney.apps.ingest.report import BatchFacts, ObjectEnd

ACCEPTED = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def facts(number: int = 1, **more: Any) -> BatchFacts:
    fields: dict[str, Any] = {
        "bid": "bid-1",
        "job": 7,
        "profile": "maps",
        "submitter": "ada",
        "collections": ("maps", "atlas"),
        "payload": "maps.checkm",
        "accepted": ACCEPTED,
        "reported": ACCEPTED + timedelta(seconds=90),
        "number": number,
    }
    return BatchFacts(**fields | more)


def end(n: int, state: str = "completed", **more: Any) -> ObjectEnd:
    fields: dict[str, Any] = {
        "jid": f"jid-{n}",
        "job": 100 + n,
        "state": state,
        "local_ids": (f"map {n}",),
        "ark": f"ark:/99999/fk4{n}",
        "passed": "notify",
        "files": 2,
        "bytes": 1000,
        "verified": 2,
    }
    return ObjectEnd(**fields | more)


def failed(n: int, **more: Any) -> ObjectEnd:
    fields: dict[str, Any] = {
        "passed": "provisioning",
        "stage": "downloading",
        "message": f"file {n} has the wrong sha256",
        "ark": None,
    }
    return end(n, "failed", **fields | more)
