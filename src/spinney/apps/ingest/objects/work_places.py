"""The places where an object works: it uses one at a time, and clears the others.

Its profile may name another area while the object is in progress. It moves there at ``provisioning``, with the list of
the files to fetch, and stays from then on: the files fill the space that was promised to it in that area.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from spinney.apps.ingest import fetch
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
    lists = [folder / WANTED for folder in (work.folder, *_others(work))]
    source = next((path for path in lists if path.exists()), None)
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
    remove_fetched(work.folder / PAYLOAD)
    remove_fetched(work.folder / MANIFEST)


def remove_fetched(folder: Path) -> None:
    """Remove what was fetched into a folder, also in part."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(fetch.aside_of(folder), ignore_errors=True)


def clear_fetched(work: Work) -> None:
    """Remove the files that were fetched and unpacked, so that all are fetched anew.

    Raises OSError where a file cannot be removed, which would pass for one that is right.
    """
    unpacked_content.clear(work)
    for folder in (work.folder / PAYLOAD, fetch.aside_of(work.folder / PAYLOAD)):
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
    (work.folder / FETCHED).unlink(missing_ok=True)


def clear_complete_download(work: Work) -> None:
    """Remove the list of a complete download and what was unpacked from it, where the download runs again.

    The fetched files stay. The next download keeps those whose given digest is right, and those in the journal. That
    is removed by ``processing``, after which only an operator has the download run again.
    """
    if (work.folder / FETCHED).exists():
        unpacked_content.clear(work)
        (work.folder / FETCHED).unlink()


def present_bytes(work: Work) -> int:
    """Return the bytes that earlier attempts have fetched, whole files and parts."""
    folder = work.folder / PAYLOAD
    whole = (Path(top, name) for top, _, files in os.walk(folder) for name in files)
    return sum(path.lstat().st_size for path in chain(whole, fetch.aside_of(folder).glob("*.part")))


def _others(work: Work) -> Iterator[Path]:
    """Yield the other places where it may have worked; without areas there is only its job's folder, and no
    other place."""
    areas = work.settings.areas
    places = [work.job.folder, *(area / work.order.jid for area in areas.values())] if areas else []
    return (folder for folder in places if folder != work.folder)
