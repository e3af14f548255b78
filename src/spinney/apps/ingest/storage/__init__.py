"""Storage keeps versions of objects in an OCFL 1.1 storage root, on a file system or in S3.

    storage = open_storage("file:///archive")          or  open_storage("s3://bucket/archive", endpoint=…)
    storage.put("ark:/99999/fk4abc", files, key="jid-…", message="…", user="…", created=now, merge=False, fence=7)

**Where things are.** A new root gets the layout of OCFL extension 0003, so that a folder's name contains the
ARK of its object. Content is kept under its digest (``v3/content/<digest>``), never under a depositor's name:
no name can be too long for a file system or a service, clash with another in case, or be overwritten by a late
writer with other bytes. The logical paths are in the inventory, of which every version has a copy.

    root/0=ocfl_1.1, ocfl_layout.json, extensions/<layout>/config.json
    root/2f1/0c9/77a/ark%3a%2f99999%2ffk4abc/{0=ocfl_object_1.1, inventory.json, inventory.json.sha512, v1/…}
    root/extensions/spinney-staging/<hash of the id>/     a put in progress, or the files of one that was killed

**A put on a file system** (one at a time an object: it holds a flock that dies with its process)

1. *claimed*: ``claim.json`` (key and fence) is written into the staging folder;
2. *content*: each file is copied and hashed at once (*kept*), compared with the sums given, and only then
   named by its digest; files that a killed put left under such a name are hashed and used again;
3. *built*: inventories and sidecars are written beside it, and everything is synced, many files at once;
4. *moved*: one rename moves in the object (its first version) or the version's folder: **from here the
   version counts**;
5. *inventory*, *sidecar*: the root's inventory and its sidecar are each replaced by a rename;
6. *cleared*: the staging folder is removed.

A put that is killed before 4 leaves only staging files, which the next put uses or removes. After one that is
killed later, readers see the previous version until the next put of the object finishes 5 and 6. Between
inventory and sidecar a reader accepts the inventory, since it matches the sidecar in the version's folder.

**A put in S3**, where nothing can be renamed: *claimed* · *content*
(complete under its digest, or absent: a large upload is completed only when its digest is right) · *built*
(the version's inventory and sidecar) · *declared* (``0=ocfl_object_1.1``) · *inventory* (the root's:
**from here the version counts**) · *sidecar* · *swept* (files of a killed put in that version) · *cleared*
(the claim). Inventories are written with If-Match or If-None-Match, so that of two writers one is refused;
a service that answers 501 to that is assumed to have one writer. After a put that was killed before *inventory*,
readers see the previous version; the next put reuses the content that it needs and removes the rest.

**Who may write.** A repeated put with the same key finds the version that it made and writes nothing. A put
whose claim is held by the same key with a higher fence is refused (`Late`). Fences of different keys are not
compared: a job that has run for long before it takes the lock on the ARK has a lower one than a job that was
quicker. Between keys the flock and the conditional writes decide, and the loser gets `Busy`.

**The key** is the last line of the version's message (``Spinney-Key: …``), because an inventory may have no
other keys than OCFL's own (E102) and a file beside it could be lost between two writes.

**Modules.**

``model``             the data types and errors of a storage
``factory``           the storage that a target names
``ocfl``              the storage: every operation, and which contents of a put are new
``place``             the operations of a file system and of S3 on which the rest is built
``disk``              a place on a file system
``s3``                a place in a bucket
``layout``            the paths of objects below a root
``sources``           files to be stored, hashed while they are read
``object_inventory``  the inventory of an object: validated, and its successor written
``object_reader``     reading an object, also during a put
``verification``      reading a whole object again, compared with its digests

Specified by ``tests/apps/ingest/storage``; ocfl-py, another implementation, judges what was written.
"""

from spinney.apps.ingest.storage.factory import open_storage as open_storage
from spinney.apps.ingest.storage.model import Busy as Busy
from spinney.apps.ingest.storage.model import Damaged as Damaged
from spinney.apps.ingest.storage.model import Incoming as Incoming
from spinney.apps.ingest.storage.model import Late as Late
from spinney.apps.ingest.storage.model import NoSuchObject as NoSuchObject
from spinney.apps.ingest.storage.model import NotThere as NotThere
from spinney.apps.ingest.storage.model import Stored as Stored
from spinney.apps.ingest.storage.model import StoredFile as StoredFile
from spinney.apps.ingest.storage.model import Verified as Verified
from spinney.apps.ingest.storage.model import Version as Version
from spinney.apps.ingest.storage.ocfl import Storage as Storage
