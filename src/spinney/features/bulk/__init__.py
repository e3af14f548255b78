"""One verb for many jobs: planned, previewed, carried out in bounded steps, and stopped by a canary.

``sql``            what a run reads and writes; each step is a transaction
``verb_step``      one step: up to about 50 jobs in a transaction, each under a savepoint of its own
``step_run``       in which order a run comes to its jobs
``and_after``      retry with everything in the tree that finished after the first failure
``service``        the plan and the run of a caller, within the limits of that caller
``commands``       plan and run as commands, with their progress
``cli``            what all verbs of the command line share: options, question, report and exit code
``verb_forms``     orders, chosen jobs and results in forms of pages
``page``           runs that last longer than a request, and go on inside the server

The verbs are retry, rerun, run-now, cancel, hold, release, move, priority and delete; what each does to one job is in
``spinney.store.sql.transitions``. A run takes the jobs that match when it comes to them, up to the last that existed
when it was planned, so that it never pursues new jobs. A job for which the verb is refused keeps its state, and the
other jobs of the step go through.

A run keeps no state in the store, except the hold that ``and_after`` places on a tree while it works there. It may be
interrupted between any two steps: what was done is durable and in the audit, and the same request continues with what
still matches. Only ``page`` remembers runs, in the memory of one server.

Specified by ``tests/contract/test_bulk.py`` (who is touched, who is refused and why),
``tests/store/test_bulk_steps.py`` (what one transaction does), ``tests/store/test_retry_steps.py`` (a retry of very
many subjobs), ``tests/service/test_bulk.py`` (plans, steps and canaries), ``tests/service/test_bulk_forests.py``
(interrupted retries on random trees), ``tests/service/test_dry_runs.py`` (what a dry run counts is what is done),
``tests/cli/test_bulk.py`` (the verbs of the command line) and ``tests/server/pages/test_bulk_runs.py`` (runs of pages).
"""
