"""An object goes through these stages, each a module, in their order, from the estimate of its size to the callback.

``estimating``          lists the files to fetch, and estimates their sizes
``provisioning``        reserves space on working storage
``downloading``         fetches and checks the whole payload
``processing``          unpacks, identifies, describes and stores the object
``recording``           enters the version in the inventory
``notify``              submits the callback, and clears the working folder
``work``                what stages share: order, profile, working folder, the lists that they hand on
``work_places``         an object's working folders, when its profile names another area meanwhile
``recorded_files``      what the inventory has, compared with a storage and with a deposit
``unpacked_content``    the content of a container, unpacked once and hashed
``unresponsive_hosts``  hosts that do not answer: one job tries them, the others wait without a slot

Each may be interrupted anywhere and run again. The files that one hands on to the next are in the object's working
folder (``work``), which is the job's own folder, or a folder in the working area that its profile names:

    wanted.jsonl        estimating     a line for each file that is to be fetched
    payload/            downloading    the fetched files; those with their final name are whole and checked
    fetched.jsonl       downloading    a line for each file: size, digests
    content-N/          processing     the content of a container; ``unpacked.jsonl`` lists it
    stored.jsonl        processing     a line for each file of the new version, with the digests that are recorded

``manifest/`` is removed once ``estimating`` has read it, and ``system/``, the object's description, once it is stored.

The order of writes: an ARK is kept in ``job.data`` the moment it is minted, then bound to the local ids in the
inventory, then the storage makes the version (idempotent by a key of the job and its content), then the inventory
records it, then the callback is submitted and the working folder is cleared. All but the first is done under a lock
on the ARK, which the job keeps until it settles: between storing and recording no other job may write to the object,
for only the inventory knows its owner. A version that was stored and not recorded, since its job failed in between, is
recorded by that job alone.

Specified by ``tests/apps/ingest/objects``.
"""

from spinney.apps.ingest.admission import space_awaited
from spinney.apps.ingest.application import objects, queue_of
from spinney.apps.ingest.objects.downloading import downloading
from spinney.apps.ingest.objects.estimating import estimating
from spinney.apps.ingest.objects.notify import notify
from spinney.apps.ingest.objects.processing import processing
from spinney.apps.ingest.objects.provisioning import provisioning
from spinney.apps.ingest.objects.recording import recording

for _stage in (estimating, provisioning, downloading, processing):
    objects.stage(queue=queue_of(_stage.__name__), max_attempts=3)(space_awaited(_stage))
for _last in (recording, notify):
    objects.stage(queue=queue_of(_last.__name__), max_attempts=5)(space_awaited(_last))
