"""Failed jobs, grouped by the cause of their failures: one fault is one group, however many jobs it fails.

``sql``       groups, and the jobs of one cause
``commands``  the queries for groups and for one cause
``cli``       the command ``failures``
``page``      the list of causes, and one cause with its jobs, which can be retried there

A cause is a fingerprint of type, stage, exception and message without numbers and the like
(``spinney.model.attempts.failures``). Its rows are written by the transaction that fails a job
(``spinney.store.sql.transitions.failures``) and counted only while the job stays failed; this package only reads them.
For a caller without limits the counts come from those rows; for others, or for one tree, they are counted among the
visible jobs.

Specified by ``tests/contract/test_failures.py`` (which jobs share a cause), ``tests/model/test_failures.py``
(fingerprints), ``tests/cli/test_failures.py`` (the command), ``tests/server/pages/test_failures.py`` (the pages) and
``tests/browser/test_failures.py`` (a retry from the page).
"""
