"""Whose put it is: a small document in the staging folder, and when it bars another."""

import orjson

from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.storage.contract import Late
from spinney.apps.ingest.storage.place import Claim


def told(claim: Claim) -> bytes:
    """The document."""
    return orjson.dumps({"id": claim.object_id, "key": claim.key, "fence": claim.fence})


def refuse_late(document: bytes | None, claim: Claim) -> None:
    """Raise Late when a newer attempt of the same key has claimed the object.

    What is no claim (half of one, by another program) bars nobody: it protects from a late writer, and
    is not what tells whether a version counts.
    """
    if document is None or claim.fence is None:
        return
    try:
        other = orjson.loads(document)
    except orjson.JSONDecodeError:
        return
    if not isinstance(other, dict) or other.get("key") != claim.key or type(other.get("fence")) is not int:
        return
    if other["fence"] > claim.fence:
        raise Late(
            f"attempt {claim.fence} of '{shown(claim.key)}' may not write {shown(claim.object_id)} any more: attempt "
            f"{other['fence']} has begun; let that one finish"
        )
