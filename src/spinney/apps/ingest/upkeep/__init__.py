"""Scheduled jobs maintain an ingest service: the hourly cleanup and the daily fixity check.

``cleanup``  removes files that nobody needs any more: packages, payloads, attachments, working folders
``fixity``   reads objects that have not been read for long, one job for each, and reports new damage

Cleanup asks the store whether the job that a file belongs to is open, and leaves everything that it does not know. An
object is read under the lock on its ARK, so that no job stores a version of it meanwhile.

Specified by ``tests/apps/ingest/test_cleaning.py`` and ``tests/apps/ingest/test_fixity.py``.
"""
