"""Batches that are held on submission: a file each in ``home/held``, named after the batch, with the reason in it.

The submission of such a batch writes the file before the job; the job's first stage holds the job as long as the file
exists; releasing the batch removes the file, then releases the job. So there is no moment at which the batch could run,
whichever process dies in between: a file whose batch was never submitted is swept, and a job that was held while its
file was being removed is released again: by the release, which waits until the attempt that runs has ``BEGUN`` or has
held the job, else by the hourly cleanup (``cleanup.release_forgotten``). (A hold of the engine needs an existing job,
which could run before that.)
"""

from spinney.apps.ingest.config.settings import Settings
from spinney.files import copies

BEGUN = "begun"
"""The entry of the job's data that its first stage writes when it has found that the batch is not held: the time."""


def hold(settings: Settings, bid: str, reason: str) -> None:
    """Hold a batch for this reason; durable on return."""
    settings.held.mkdir(parents=True, exist_ok=True)
    copies.write_durably(settings.held / bid, f"{reason}\n")


def reason(settings: Settings, bid: str) -> str | None:
    """Return why this batch is held; None: it is not, or no longer."""
    try:
        return (settings.held / bid).read_text("utf-8").strip()
    except FileNotFoundError:
        return None


def unhold(settings: Settings, bid: str) -> bool:
    """End the hold of a batch, and return whether it was held."""
    try:
        (settings.held / bid).unlink()
    except FileNotFoundError:
        return False
    copies.sync_folder(settings.held)
    return True
