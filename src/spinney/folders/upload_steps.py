"""The steps of an upload that has all its bytes: its job in the store, its file in the job's folder.

They are done by whoever sends the last bytes, and, where that one died in between, by nodes and servers, which also
give up uploads that nobody goes on with."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from spinney.folders.upload_folder import OpenUpload, UploadFolder
from spinney.model.errors import DiskFull, SpinneyError, StoreUnavailable
from spinney.model.settings.inboxes import Arrival, ArrivalOutcome, Upload
from spinney.store.parts import Store

log = logging.getLogger(__name__)

T = TypeVar("T")
KEEP_S = 7 * 86_400.0
"""How long an upload stays open of which nothing comes."""
ANSWER_S = 86_400.0
"""How long the answer of an upload is kept that is done."""
EVERY_S = 60.0
"""Seconds between two looks after uploads, of each node and server."""


class Do(Protocol):
    """Makes a call of the store; raises what it raises."""

    def __call__(self, verb: Callable[[Store], T]) -> T: ...


def call(store: Store, verb: Callable[[Store], T]) -> T:
    """Make a call of a store that belongs to this thread: the ``Do`` of ``partial(call, store)``."""
    return verb(store)


def finish(do: Do, opened: OpenUpload, arrival: Arrival, *, now_us: int) -> Upload:
    """Bring an upload whose arrival is in the store to its end, from whatever step it has reached, and return it."""
    if arrival.outcome is ArrivalOutcome.TAKEN and arrival.job_id is not None:
        if do(lambda store: store.inboxes.is_wanted(arrival)):
            opened.place(arrival.job_id)
        do(lambda store: store.inboxes.release(arrival, now_us=now_us))
    return opened.settle(arrival.job_id, arrival.reason)


def sweep(do: Do, root: Path, *, now_us: int, now_s: float | None = None) -> int:
    """Finish the uploads whose job is in the store, and remove those that were abandoned; return how many
    jobs may begin. Uploads that another process works on are left alone. ``now_s``: by the clock of the
    folder root.

    An upload that cannot be finished is logged and waits for the next sweep; it does not keep the others. Raises
    StoreUnavailable and DiskFull, which concern all, and StoreUnusable when the uploads cannot be listed."""
    now_s = time.time() if now_s is None else now_s
    folder, finished = UploadFolder(root), 0
    folder.clear(open_before_s=now_s - KEEP_S, done_before_s=now_s - ANSWER_S)
    for opened in folder.entries():
        try:
            finished += _go_on(do, opened, now_us=now_us, now_s=now_s)
        except (StoreUnavailable, DiskFull):
            raise
        except (SpinneyError, OSError) as error:
            log.warning(
                "the upload of %r to inbox %s waits: %s", opened.upload.name, opened.upload.inbox, error
            )
    return finished


def _go_on(do: Do, opened: OpenUpload, *, now_us: int, now_s: float) -> bool:
    """Finish or remove one upload if that is due; return whether its job may begin."""
    upload, arrival = opened.upload, None
    if upload.is_done:
        opened.settle(upload.job_id, upload.reason)
        return False
    if upload.sha256 is not None:
        arrival = do(lambda store: store.inboxes.of_upload(upload))
    if arrival is not None:
        return finish(do, opened, arrival, now_us=now_us).reason is None
    if opened.changed_s() < now_s - KEEP_S:
        opened.settle(None, "it was not finished in time; upload it again")
    return False
