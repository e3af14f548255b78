"""Files and disks are handled here for all that read or write files of other people: paths, copies, digests, space.

``paths``        which names and paths are admitted, and opening a file so that no path leads out of its root
``copies``       copies with digests, and writes that are durable, singly and many together
``durable``      folders, files and renames that are durable when the call returns
``digests``      digest algorithms, their names and notation, several computed at once
``trees``        removal of folders that programs of other people have filled, whatever their depth
``disk_space``   free space, read-only disks, and the error that names the folder and the missing bytes
``thread_pool``  threads that a process keeps for such work

Nothing here knows of jobs. ``NotAdmitted`` means that a name or a file must be corrected by whoever gave it, ``NoRoom``
that a disk is full and the same call may succeed later; both are raised with a sentence for people. Written data are
durable only where a function says so.

Specified by ``tests/files``, ``tests/apps/ingest/objects/test_full_disk.py`` (full disks) and
``tests/apps/ingest/objects/test_power.py`` (what is durable when).
"""
