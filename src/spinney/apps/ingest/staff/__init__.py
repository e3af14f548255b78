"""What the staff of an ingest service do: verbs on the engine's own, none of which prints.

    submit                      hands a payload in
    batch, batches, objects     looking (``elements`` has all that is kept of an object)
    plan, requeue               failed objects, sent back
    path_of, as_of_now          reports: those that were told, and one as of now
    hold, release, pause, …     stops, and their end
    delete, sweep               batches with all that belongs to them, but never what is archived
    prepare, readable           folders, tables and roots; profiles

Who writes what, in this order, and what a crash leaves:

``submit`` (``expect`` and ``accept`` where the payload comes piece by piece): the payload is copied to
``incoming/<bid>/<name>`` and synced, then (where the profile holds its batches) the reason is written to
``held/<bid>``, then the batch's job is submitted under the key ``<bid>``, for ever. Refused, both are removed again;
killed before the job is there, they stay, and ``sweep`` removes them after a day.

``delete``: the batch's job and all below it are deleted in the store, then their folders, then what lies in working
areas and in ``incoming``. Killed after the first, nodes remove the folders; the rest goes with ``sweep`` and the
cleaning.

``release`` of a batch: the file ``held/<bid>`` goes, then the job is released (``held_batches``).
"""

from spinney.apps.ingest.staff.batches import Batch, Listed, batch, batches, object_, objects
from spinney.apps.ingest.staff.deletions import Deleted, Swept, delete, sweep
from spinney.apps.ingest.staff.holds import PAUSABLE, hold, pause, release, release_batch, unpause
from spinney.apps.ingest.staff.profile_list import Readable, readable, visible
from spinney.apps.ingest.staff.refusals import refused, refused_as_meant
from spinney.apps.ingest.staff.reports import as_of_now, path_of
from spinney.apps.ingest.staff.requeues import Requeue, plan, requeue
from spinney.apps.ingest.staff.service import Service
from spinney.apps.ingest.staff.setup import Prepared, prepare
from spinney.apps.ingest.staff.submissions import Accepted, Arrival, Deposit, accept, expect, submit

__all__ = [
    "PAUSABLE",
    "Accepted",
    "Arrival",
    "Batch",
    "Deleted",
    "Deposit",
    "Listed",
    "Prepared",
    "Readable",
    "Requeue",
    "Service",
    "Swept",
    "accept",
    "as_of_now",
    "batch",
    "batches",
    "delete",
    "expect",
    "hold",
    "object_",
    "objects",
    "path_of",
    "pause",
    "plan",
    "prepare",
    "readable",
    "refused",
    "refused_as_meant",
    "release",
    "release_batch",
    "requeue",
    "submit",
    "sweep",
    "unpause",
    "visible",
]
