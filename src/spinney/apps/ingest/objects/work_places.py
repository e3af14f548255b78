"""The places where an object works: it has one at a time, and leaves the others.

Its profile may name another area while it is on its way. It goes there at ``provisioning``, with the list of what is
to be fetched, and stays from then on: what it fetches fills the room that was promised to it in that area.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from spinney.apps.ingest import fetching
from spinney.apps.ingest.files import copies
from spinney.apps.ingest.objects import unpacked_content
from spinney.apps.ingest.objects.work import FETCHED, MANIFEST, PAYLOAD, STORED, WANTED, Work


def bring(at: Work) -> bool:
    """Have the list of what is to be fetched here, wherever it was written. False: it is gone."""
    target = at.folder / WANTED
    found = (
        target
        if target.exists()
        else next((p for folder in _others(at) if (p := folder / WANTED).exists()), None)
    )
    if found is None:
        return False
    if found != target:
        copies.copy_whole(found, target)
        copies.sync_folder(at.folder)
    leave(at)
    return True


def leave(at: Work) -> None:
    """Remove what it has elsewhere."""
    for folder in _others(at):
        if folder == at.job.folder:
            clear(replace(at, folder=folder))
        else:
            shutil.rmtree(folder, ignore_errors=True)


def clear(at: Work) -> None:
    """What was fetched, unpacked and listed is no longer needed. The lists go first: whoever sends a completed object
    back is then told from which stage on."""
    for name in (FETCHED, WANTED, STORED):
        (at.folder / name).unlink(missing_ok=True)
    unpacked_content.clear(at)
    for folder in (at.folder / PAYLOAD, at.folder / MANIFEST):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(fetching.aside_of(folder), ignore_errors=True)


def _others(at: Work) -> Iterator[Path]:
    """Where else it may have worked; without areas there is only its job's folder."""
    areas = at.settings.areas
    places = [at.job.folder, *(area / at.order.jid for area in areas.values())] if areas else []
    return (folder for folder in places if folder != at.folder)
