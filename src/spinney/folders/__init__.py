"""The folders of jobs are made, read and removed here, and files on their way into them are received.

``folders``         where a job's folder is, how it is made and removed, and how nodes know that they see the same root
``folder_reader``   reading a file or a directory in a job's folder, by a path that comes from outside
``views``           a tree of links to job folders, by state, for people who use ``ls``
``drop_folder``     the folder of an inbox: what is dropped there, and its way into a job's folder
``dropped_files``   what lies in such a folder: what it is, whose, and its bytes
``rejected_drops``  the drops that an inbox does not take, with the reasons
``upload_folder``   files that are being uploaded to inboxes, resumable over crashes
``upload_pieces``   the uploader's side: the description of a file, and its pieces
``upload_steps``    the last steps of an upload: its job, and its file in the job's folder

A path that a user names is never followed as a whole: each part is opened relative to the one before, without following
links. A folder is removed by one rename into ``.trash``, so that a crash leaves all of it or only trash. A file appears
under its final name only when it is complete. Only ``upload_steps`` calls a store, by a ``Do`` that its caller passes.
Commands, servers and nodes' services (``spinney.node.services``) call them, always in a thread where there is an event
loop, because a file system may not answer.

Specified by ``tests/node/test_folders.py``, ``tests/node/test_folder_reader.py``, ``tests/node/test_views.py``,
``tests/node/test_intake.py`` (inboxes) and ``tests/service/test_inbox_uploads.py`` (uploads).
"""
