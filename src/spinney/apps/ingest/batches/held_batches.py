"""Batches that are held as they come: a file each in ``home/held``, named after the batch, with the reason in it.

Who hands in such a batch writes the file before its job is submitted; the job's first stage parks it as long as the
file is there; who releases it removes the file, then releases the job. So there is no moment at which it could run,
whatever dies in between: a file whose batch never came is swept, and a job parked by a file that has just gone is
released once more. (A hold of the engine can be laid on a job only when that is there, and may run.)
"""

from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.files import copies


def hold(settings: Settings, bid: str, reason: str) -> None:
    """Durable when it returns."""
    settings.held.mkdir(parents=True, exist_ok=True)
    copies.write_durably(settings.held / bid, f"{reason}\n")


def reason(settings: Settings, bid: str) -> str | None:
    """Why this batch is held; None: it is not, or no longer."""
    try:
        return (settings.held / bid).read_text("utf-8").strip()
    except FileNotFoundError:
        return None


def let_go(settings: Settings, bid: str) -> bool:
    """Whether it was held."""
    try:
        (settings.held / bid).unlink()
    except FileNotFoundError:
        return False
    copies.sync_folder(settings.held)
    return True
