"""Find the frames that were kept of a job's failures: a file beside the output of each failed attempt."""

from collections.abc import Callable, Iterable, Sequence

from spinney.model.errors import NoSuch, UsageError
from spinney.model.jobs import Attempt
from spinney.model.values.paths import OWN
from spinney.postmortem.documents import ExceptionView, read

MOST_BYTES = 64 * 2**20
"""A longer document is not one that a worker has written, and is read no further."""

ReadFile = Callable[[str], Iterable[bytes]]
"""Yields the pieces of a file in the job's folder by its path; nothing where it does not exist."""


def path_of(attempt: Attempt) -> str:
    """Return the path in the job's folder where the frames of an attempt are, if they were kept."""
    return f"{OWN}/{attempt.stage}.{attempt.fence}.frames"


def latest(
    attempts: Sequence[Attempt], read_file: ReadFile, job_id: int, *, fence: int | None = None
) -> tuple[Attempt, Sequence[ExceptionView]]:
    """Return the latest failed attempt whose frames are kept, or that of the number ``fence``, with its
    exceptions.

    ``attempts`` are the job's, oldest first. The first exception is the one that ended the stage; its
    causes follow. Raises UsageError for an attempt that does not exist, NoSuch where nothing is kept, and
    Refused for a document that cannot be read.
    """
    failed = [attempt for attempt in reversed(attempts) if attempt.error]
    if fence is not None:
        failed = [attempt for attempt in failed if attempt.fence == fence]
        if not failed:
            raise UsageError(
                f"job {job_id} has no failed attempt {fence}; 'spinney show {job_id}' lists its attempts"
            )
    for attempt in failed:
        if document := _bounded(read_file(path_of(attempt))):
            return attempt, read(document)
    if not failed:
        raise NoSuch(
            f"no attempt of job {job_id} has failed with an error, so there are no frames to look at"
        )
    raise NoSuch(
        f"no frames are kept of job {job_id}: its type or node does without, its program does not call "
        f"spinney.postmortem.install(), or its folder was cleared; 'spinney show {job_id}' has the traceback"
    )


def _bounded(pieces: Iterable[bytes]) -> bytes:
    """Return a document; empty, as if it were not there, where it has more than ``MOST_BYTES``."""
    document = bytearray()
    for piece in pieces:
        document += piece
        if len(document) > MOST_BYTES:
            return b""
    return bytes(document)
