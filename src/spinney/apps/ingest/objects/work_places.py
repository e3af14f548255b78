"""The places where an object works: it uses one at a time, and clears the others.

Its profile may name another area while the object is in progress. It moves there at ``provisioning``, with the list of
the files to fetch, and stays from then on: the files fill the space that was promised to it in that area.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from spinney.apps.ingest import fetching
from spinney.apps.ingest.objects import unpacked_content
from spinney.apps.ingest.objects.work import FETCHED, MANIFEST, PAYLOAD, STORED, WANTED, Work
from spinney.files import copies


def bring_list(work: Work) -> bool:
    """Move the list of the files to fetch into the working folder from wherever it was written, and clear the
    other places.

    Returns False where the list is gone; the caller then makes it again. The list is copied durably before
    anything is removed.
    """
    target = work.folder / WANTED
    source = (
        target
        if target.exists()
        else next((p for folder in _others(work) if (p := folder / WANTED).exists()), None)
    )
    if source is None:
        return False
    if source != target:
        copies.copy_atomically(source, target)
        copies.sync_folder(work.folder)
    clear_others(work)
    return True


def clear_others(work: Work) -> None:
    """Remove the object's files in all other places."""
    for folder in _others(work):
        if folder == work.job.folder:
            clear(replace(work, folder=folder))
        else:
            shutil.rmtree(folder, ignore_errors=True)


def clear(work: Work) -> None:
    """Remove the files that were fetched and unpacked, and the lists.

    The lists are removed first: when a completed object is requeued too late, the missing list names the stage from
    which to requeue.
    """
    for name in (FETCHED, WANTED, STORED):
        (work.folder / name).unlink(missing_ok=True)
    unpacked_content.clear(work)
    for folder in (work.folder / PAYLOAD, work.folder / MANIFEST):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(fetching.aside_of(folder), ignore_errors=True)


def _others(work: Work) -> Iterator[Path]:
    """Yield the other places where it may have worked; without areas there is only its job's folder, and no
    other place."""
    areas = work.settings.areas
    places = [work.job.folder, *(area / work.order.jid for area in areas.values())] if areas else []
    return (folder for folder in places if folder != work.folder)
