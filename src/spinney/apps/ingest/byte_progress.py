"""The progress of a stage that reads many bytes."""

import time
from collections.abc import Callable

from spinney import Job

SHOW_S = 0.5
"""The time between two updates, in seconds."""


def byte_progress(job: Job, total_bytes: int, *, checks_cancel: bool = True) -> Callable[[int], None]:
    """Return a function to call with the size of each piece that was read: it shows the progress of the attempt, and
    ends the attempt when the job is cancelled. ``total_bytes`` may be an estimate; 0: unknown. ``checks_cancel``: False
    where the caller looks for a cancellation itself."""
    done_bytes, shown_s = 0, time.monotonic()

    def progress(size_bytes: int) -> None:
        nonlocal done_bytes, shown_s
        done_bytes += size_bytes
        if checks_cancel:
            job.check_cancelled()
        if total_bytes and time.monotonic() - shown_s > SHOW_S:
            shown_s = time.monotonic()
            job.progress(min(0.99, done_bytes / total_bytes), f"{done_bytes:,} of {total_bytes:,} bytes")

    return progress
