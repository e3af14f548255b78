"""Output of tasks as the releases keep it: in the document, or in ``tasks.files`` and ``tasks.chunks``.

The chunks hold text (BSON strings), as the releases' own nodes write them; a chunk is so many characters. Ids are
derived from the claim, so that writing the same output twice changes nothing."""

import hashlib
from datetime import UTC, datetime

from bson import ObjectId

from spinney.bridges.disbatch.database import Database, Document

INLINE_BYTES = 15 << 20
"""How many bytes of output fit into a document beside the rest of it."""
CHUNK = 261_120
"""Characters of a chunk."""


def stored(db: Database, task: ObjectId, claim: str, stdout: str, stderr: str, *, gfs: str) -> Document:
    """Return the fields ``stdout`` and ``stderr`` of a task; what is too large for the document is written
    before, and its field is the id of the file.

    ``gfs``: as in the settings. With ``auto`` stdout goes to GridFS when both together are too large, and
    stderr only when it is too large by itself; with ``never`` each is cut to half of what fits."""
    out_bytes, err_bytes = len(stdout.encode()), len(stderr.encode())
    if gfs == "never":
        return {"stdout": _cut(stdout, INLINE_BYTES // 2), "stderr": _cut(stderr, INLINE_BYTES // 2)}
    if gfs == "auto" and out_bytes + err_bytes <= INLINE_BYTES:
        return {"stdout": stdout, "stderr": stderr}
    fields: Document = {"stdout": _write(db, task, claim, "stdout", stdout)}
    inline = gfs == "auto" and err_bytes <= INLINE_BYTES
    return fields | {"stderr": stderr if inline else _write(db, task, claim, "stderr", stderr)}


def _write(db: Database, task: ObjectId, claim: str, name: str, text: str) -> ObjectId:
    """Write output as chunks and then as a file, and return the file's id. What an earlier, longer output
    left behind is removed."""
    file_id = _id(task, claim, name)
    for n, start in enumerate(range(0, len(text), CHUNK)):
        chunk = {"files_id": file_id, "n": n, "data": text[start : start + CHUNK]}
        db["tasks.chunks"].replace_one({"_id": _id(task, claim, f"{name}.{n}")}, chunk, upsert=True)
    # Those of a longer one, before a rerun. The roles of the releases lack the right to remove chunks, so nothing is
    # removed unless there is something.
    older = {"files_id": file_id, "n": {"$gte": -(-len(text) // CHUNK)}}
    if db["tasks.chunks"].find_one(older, {"_id": True}):
        db["tasks.chunks"].delete_many(older)
    raw = text.encode()
    db["tasks.files"].replace_one(
        {"_id": file_id},
        {
            "uploadDate": datetime.now(UTC),
            "filename": name,
            "chunkSize": CHUNK,
            "length": len(raw),
            "md5": hashlib.md5(raw, usedforsecurity=False).hexdigest(),
            "metadata": {"task_id": task},
        },
        upsert=True,
    )
    return file_id


def _id(task: ObjectId, claim: str, name: str) -> ObjectId:
    """Return an id that follows from task, claim and name, and that no driver would make for anything
    else."""
    return ObjectId(hashlib.sha256(f"{task}:{claim}:{name}".encode()).digest()[:12])


def _cut(text: str, most_bytes: int) -> str:
    """Return text of at most so many bytes, with a note where something is missing."""
    raw = text.encode()
    if len(raw) <= most_bytes:
        return text
    return raw[:most_bytes].decode("utf-8", "ignore") + "\n[cut: the settings keep output out of GridFS]\n"
