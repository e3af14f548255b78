"""The stages of one object, each a module, in their order.

Each may be cut off anywhere and run again. What one leaves for the next lies in the object's working folder
(``work``), which is the job's own, or lies in the area that its profile asks for:

    wanted.jsonl        estimating     a line a file that is to be fetched
    payload/            downloading    what was fetched; files that stand are whole and checked
    fetched.jsonl       downloading    a line a file: size, digests
    content-N/          processing     what a container held; ``unpacked.jsonl`` tells of which and where
    stored.jsonl        processing     a line a file of the new version, with its digests: what the inventory records

``manifest/`` is removed once ``estimating`` has read it, and ``system/``, the object's description, once it is stored.

Who writes what, in this order: an ARK is kept in ``job.data`` the moment it is minted, then bound to the local ids in
the inventory, then the storage makes the version (idempotent by a key of the job and its content), then the inventory
records it, then whoever wants to know is told and the working folder is cleared. All but the first is done under a lock
on the ARK, which the job keeps until it settles: between storing and recording nobody else may come to the object, for
only the inventory knows whose it is. What was stored and not recorded, since its job failed in between, that job alone
records.
"""

from spinney.apps.ingest.application import objects, queue_of
from spinney.apps.ingest.objects.downloading import downloading
from spinney.apps.ingest.objects.estimating import estimating
from spinney.apps.ingest.objects.notify import notify
from spinney.apps.ingest.objects.processing import processing
from spinney.apps.ingest.objects.provisioning import provisioning
from spinney.apps.ingest.objects.recording import recording
from spinney.apps.ingest.space_waits import awaited

objects.stage(queue=queue_of("estimating"), max_attempts=3)(awaited(estimating))
objects.stage(queue=queue_of("provisioning"))(awaited(provisioning))
objects.stage(queue=queue_of("downloading"), max_attempts=3)(awaited(downloading))
objects.stage(queue=queue_of("processing"), max_attempts=3)(awaited(processing))
objects.stage(queue=queue_of("recording"), max_attempts=5)(awaited(recording))
objects.stage(queue=queue_of("notify"), max_attempts=5)(awaited(notify))
