"""These services look after the folders of jobs in the background.

``folder_watch``     notes in the node's health when the folder root cannot be written to
``folder_views``     keeps links to the folders of jobs, by state, for people who use ``ls``
``deleted_folders``  removes folders of deleted jobs that are still there
``file_server``      answers requests of other hosts for files, where folders are local

``folder_watch`` runs on every node. Where folders are shared, the leader keeps the views and removes folders; where
they are local, the nodes of each host do so for their own root. File systems may not answer, so every access is in a
thread, and one folder that cannot be removed never keeps others from being removed. The rules for paths are in
``spinney.folders``.

Specified by ``tests/node/test_deleted_folders.py``, ``tests/node/test_views.py``, ``tests/node/test_homes.py`` and
``tests/node/test_folder_check.py``.
"""
