"""Claims: a small document in the staging folder names the put's key and fence, and refuses late attempts."""

import orjson

from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.storage.contract import Late
from spinney.apps.ingest.storage.place import Claim


def document_of(claim: Claim) -> bytes:
    """Return the document of a claim."""
    return orjson.dumps({"id": claim.object_id, "key": claim.key, "fence": claim.fence})


def refuse_late(document: bytes | None, claim: Claim) -> None:
    """Raise Late when a newer attempt of the same key has claimed the object.

    A document that is no valid claim (half-written, or of another program) refuses nobody: claims protect from
    late writers, and do not decide whether a version counts.
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
