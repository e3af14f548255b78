"""A storage root in an S3 bucket is read and written here; ``spinney.apps.ingest.storage`` has the protocol of a put.

``s3_place``  the operations of ``place``, on a bucket
``s3_put``    a put: content first, the root's inventory last
``bucket``    the few operations on a prefix of a bucket, with errors that contain no secrets

S3 has no rename and no lock: the conditional write of the root's inventory makes a version count, and refuses the
slower of two writers. ``botocore`` is imported when a bucket is first opened.

Specified by ``tests/apps/ingest/storage/test_contract.py``, ``tests/apps/ingest/storage/test_s3.py`` and
``tests/apps/ingest/storage/test_two_writers.py``.
"""
