"""Submissions that may be asked again: the header ``Idempotency-Key``, and what answers to it."""

from typing import Annotated, Any

from fastapi import Header

from spinney.store.contract import SubmissionKey

REPLAY = "Idempotent-Replay"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="A word of your choice, new for each submission. Sent again with the same request within a day, "
        f"also after a crash, it answers with the same jobs and `{REPLAY}: true`.",
    ),
]

REPLAYED: dict[str, Any] = {
    REPLAY: {"description": "`true` when the jobs were made before.", "schema": {"type": "string"}}
}
"""Headers of an answer, as they are documented."""


def once_of(owner: str, key: str | None, digest: str) -> SubmissionKey | None:
    """What the store knows the request by; ``digest``: of all that was sent."""
    return None if key is None else SubmissionKey(owner=owner, key=key, digest=digest)


def replayed(repeated: bool) -> dict[str, str]:
    """The headers of the answer."""
    return {REPLAY: "true"} if repeated else {}
