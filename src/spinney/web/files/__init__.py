"""Files of jobs over HTTP: downloads, output as it is written, and uploads.

``content``           a file that is sent, from this host or through a node
``responses``         a file as a response, whole or a range, which no browser takes for a page of this server
``spool``             uploads on their way, in a directory of their own
``multipart``         a form with files, written to disk as it comes
``single_file_form``  a form of fields and then one file, whose fields are known before the file comes

**What is read** is opened step by step from the folder on (``spinney.folders.folder_reader``): no ``..``, no link.
Where folders are local, files of other hosts are asked of the nodes there, through the store.

**What is uploaded** goes to disk as it comes, into a directory of its own below ``.spool`` in the folder root, and from
there by one rename into the job's folder (``spinney.features.files.folder_writes``), synced: a stage never sees half of
a file. A job with files is accepted under a hold and let go when they are all in place
(``spinney.features.files.uploads``). What a crash leaves is something in ``.spool``, which the next server to start
clears once it is a day old, and perhaps a held job that says why.

A download sends its length first. When the caller loses the right to it in the middle, the connection is closed without
the end, so that no client takes the part for the whole.

Specified by ``tests/server/api/test_files.py`` (reading, ranges and paths), ``tests/server/api/test_submissions.py``
(uploads with a job), ``tests/server/api/test_full_disk.py`` (a disk that is full), ``tests/server/test_room.py``
(limits on downloads and uploads) and ``tests/apps/ingest/served`` (forms and attachments of an application).
"""
