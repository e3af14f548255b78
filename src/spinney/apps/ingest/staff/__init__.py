"""The operations of the staff of an ingest service, built on those of the engine. None of them prints.

    submit                      submits a payload
    batch, batches, objects     show batches and objects (``elements`` has all data of an object)
    plan, requeue               requeue failed objects
    path_of, as_of_now          find the reports that were sent, or make one as of now
    hold, release, pause, …     hold batches and queues, and release them
    delete, sweep               delete batches with all their files, except for archived objects
    prepare, readable           make folders, tables and storage roots; list profiles

Who writes what, in this order, and what a crash leaves:

``submit`` (``expect`` and ``accept`` where the payload is received in pieces): the payload is copied to
``incoming/<bid>/<name>`` and synced, then (where the profile holds its batches) the reason is written to
``held/<bid>``, then the batch's job is submitted under the key ``<bid>``, for ever. If it is refused, both are removed
again; if it is killed before the job exists, they stay, and ``sweep`` removes them after a day.

``delete``: the batch's job and all below it are deleted in the store, then their folders, then their files in working
areas and in ``incoming``. If it is killed after the first, nodes remove the folders; ``sweep`` and the cleanup remove
the rest.

``release`` of a batch: the file ``held/<bid>`` is removed, then the job is released (``held_batches``).
"""

from spinney.apps.ingest.staff.batches import Batch, BatchFilter, batch, batches, object_, objects
from spinney.apps.ingest.staff.deletions import Deleted, Swept, delete, sweep
from spinney.apps.ingest.staff.holds import PAUSABLE, hold, pause, release, release_batch, unpause
from spinney.apps.ingest.staff.profile_list import ListedProfile, readable, visible
from spinney.apps.ingest.staff.refusals import refused, refused_as_usage
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
    "BatchFilter",
    "Deleted",
    "Deposit",
    "ListedProfile",
    "Prepared",
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
    "refused_as_usage",
    "release",
    "release_batch",
    "requeue",
    "submit",
    "sweep",
    "unpause",
    "visible",
]
