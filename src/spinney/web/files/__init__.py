"""Files of jobs over HTTP: downloads, output as it is written, uploads.

**What is read** is opened step by step from the folder on (``spinney.folders.folder_reader``): no ``..``, no link.
Where folders are local, files of other hosts are asked of the nodes there, through the store.

**What is uploaded** goes to disk as it comes, into a directory of its own below ``.spool`` in the folder root,
and from there by one rename into the job's folder (``folder_writes``), synced: a stage never sees half of a
file. A job with files is accepted under a hold and let go when they are all in place
(``spinney.features.files.uploads``).
What a crash leaves is something in ``.spool``, which the next server to start clears once it is a day old, and
perhaps a held job that says why.
"""
