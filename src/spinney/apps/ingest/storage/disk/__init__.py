"""A storage root on a file system is read and written here; ``spinney.apps.ingest.storage`` has the protocol of a put.

``disk_place``  the operations of ``place``, on a file system
``disk_put``    a put: built in its staging folder, then moved in by one rename; one put of an object at a time, by a
                flock that ends with its process

Only the rename of a version's folder makes a version count. All before it is durable before the rename, and all behind
it can be repeated by the next put.

Specified by ``tests/apps/ingest/storage/test_contract.py``, ``tests/apps/ingest/storage/test_killed.py`` and
``tests/apps/ingest/storage/test_two_writers.py``.
"""
