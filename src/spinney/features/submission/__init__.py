"""New jobs: one, one with files, or many at once; batches of them; and waiting until they have settled.

``commands``         submission, and the queries for batches
``api``              the routes of submission, which take forms with files and lines
``cli``              the command ``submit``, and options that ``schedule add`` shares
``wait_cli``         the command ``wait``
``batches``          a job at the top with all below it, and how far they are
``page``             the form of a job type, and that for files of a job that is there already
``batches_page``     the list of batches
``batch_page``       one batch as a grid of states

Checks and rights are in ``spinney.service.submitter`` and ``submit_rights``: all jobs of a submission are
accepted in one transaction, or none. So a crash before the commit leaves nothing, and after it everything;
what the caller cannot know is which of the two happened when the connection broke. A request with an
idempotency key may therefore be sent again after any failure and makes its jobs once: the store keeps the key
with a digest of the request, returns the first result for the same digest and refuses another one. The form
of a page has such a key, so that sending it twice makes one job.

A job with files waits under a hold until they are in its folder (``spinney.features.files.uploads``).

A batch is no object of its own: it is any job at the top of a tree that has jobs below it, and its progress
is counted from their states when it is read.

Specified by ``tests/server/api/test_submissions.py`` (the routes), ``tests/server/api/test_batches.py``
(batches over the API), ``tests/service/test_submit_rights.py`` (who may submit what),
``tests/contract/test_submissions.py`` (all or none), ``tests/contract/test_idempotency.py`` (keys),
``tests/cli/test_wait.py`` (the command ``wait``), ``tests/cli/test_usage.py`` (wrong use of ``submit``),
``tests/server/pages/test_submit.py`` (the form), ``tests/server/pages/test_batches.py`` (batches on pages)
and ``tests/browser/test_submit.py`` (the form in a browser).
"""
