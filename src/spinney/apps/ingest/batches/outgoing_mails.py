"""The attachments of reports' mails: a folder for each mail in ``home/outgoing``, until the mail is sent.

A mail may wait for its server for days, while its batch is deleted with its folder and all reports in it. Each folder
has a file with the number of the mail's job, which ``cleanup`` reads.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spinney.apps.ingest.config.settings import OWNER, Settings
from spinney.files import copies

NAME = re.compile(r"bid-[0-9a-f-]{36}\.report-[0-9]{1,9}[.a-z-]{0,20}")
"""The key of a mail."""


def keep(settings: Settings, key: str, attachments: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copy the attachments, and return them with their new paths; durable on return."""
    if not attachments:
        return []
    folder = settings.outgoing / key
    folder.mkdir(parents=True, exist_ok=True)
    copied = []
    for attachment in attachments:
        source = Path(attachment["path"])
        copies.copy_atomically(source, folder / source.name)
        copied.append({**attachment, "path": str(folder / source.name)})
    copies.sync_folder(folder)
    copies.sync_folder(folder.parent)
    return copied


def set_owner(settings: Settings, key: str, job_id: int) -> None:
    """Write the number of the mail's job into the folder of its attachments."""
    folder = settings.outgoing / key
    if folder.is_dir():
        copies.write_durably(folder / OWNER, f"{job_id}\n")
