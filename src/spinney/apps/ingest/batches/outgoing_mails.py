"""What goes with the mails of reports: a folder a mail in ``home/outgoing``, until the mail is sent.

A mail may wait for its server for days, and its batch be deleted meanwhile with its folder and all reports in it. In
each folder stands the number of the mail's job, by which ``cleanup`` goes.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.files import copies
from spinney.apps.ingest.objects.work import OWNER

NAME = re.compile(r"bid-[0-9a-f-]{36}\.report-[0-9]{1,9}[.a-z-]{0,20}")
"""The key of a mail."""


def keep(settings: Settings, key: str, attachments: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copy them; returns them as the mail finds them. Durable when it returns."""
    if not attachments:
        return []
    folder = settings.outgoing / key
    folder.mkdir(parents=True, exist_ok=True)
    kept = [{**one, "path": str(_copied(Path(one["path"]), folder))} for one in attachments]
    copies.sync_folder(folder)
    copies.sync_folder(folder.parent)
    return kept


def belongs(settings: Settings, key: str, job_id: int) -> None:
    """Note whose they are."""
    folder = settings.outgoing / key
    if folder.is_dir():
        copies.write_durably(folder / OWNER, f"{job_id}\n")


def _copied(source: Path, folder: Path) -> Path:
    target = folder / source.name
    copies.copy_whole(source, target)
    return target
