"""Ingest: deposits folders or manifests of files into an archive of BagIt bags.

A batch (``ingest.batch``) reads what is to be deposited and makes one job an object
(``ingest.object``). An object's files are listed, wait for room, are copied and verified, bagged
into the archive, entered in its inventory, and told to the submitter. When all objects have settled,
the batch reports. When one that failed is mended and retried, the batch reports an update.

    spinney node spinney.apps.ingest:app
    spinney submit ingest.batch --param source=/scans --param archive=/archive

Who writes what, in this order: the source is only read; an object's job folder is its own; a bag
enters the archive by one rename and is never changed after; the inventory follows the bag; the
outbox follows the inventory. Each step finds what it did before and is content with it, so that any
of them may be cut off and run again.

    archive/<deposit>/<object>/      a bag
    archive/inventory.sqlite         a row an object, a row a file
    archive/.building/               what is not whole yet

``application`` the job types · ``batch`` the stages of one, ``stages`` of an object · ``sources`` what is to be
deposited · ``paths`` what may enter · ``copying``, ``bagging``, ``inventory``, ``outbox`` what is
written · ``reporting`` the report · ``demo`` shows it all.
"""

from spinney.apps.ingest import batch, stages
from spinney.apps.ingest.application import app

__all__ = ["app", "batch", "stages"]
