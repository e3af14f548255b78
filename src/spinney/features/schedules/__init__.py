"""Schedules: jobs that are submitted at set times, by a cron expression or at an interval.

``sql``            schedules as rows, and the step that decides due times
``due_times_sql``  the decision on the due times of one schedule, and the jobs that it creates
``commands``       the commands for schedules; a schedule is checked as a submission of its jobs
``cli``            the command ``schedule``
``page``           the pages of schedules

Which times there are is computed by ``spinney.scheduling`` without a store. A step (``tick``) writes the
decision on a time, its job, and the schedule's next time in one transaction, so each nominal time gets
exactly one decision however many processes make steps: the leading node
(``spinney.node.services.maintenance``), and a server where no node leads (``spinney.server.maintenance``). A
crash leaves the time undecided, and the next step decides it.

A time is not always a job: it is skipped or queued while the last job is open (``overlap``), and missed times
are made up for by ``catch_up``. A job is submitted with the rights that the schedule's maker has at that time
(``spinney.features.webhooks.maker_rights``); where they no longer suffice, the time is refused, and its row
has the reason.

Specified by ``tests/contract/test_schedules.py`` (one job a nominal time), ``tests/scheduling/test_cron.py``
(expressions), ``tests/scheduling/test_recurrence.py`` (due and missed times),
``tests/service/test_schedules.py`` (checks and rights), ``tests/node/test_schedules.py`` (real nodes),
``tests/chaos/test_ticking.py`` (processes killed between steps), ``tests/cli/test_schedules.py`` (the
command) and ``tests/server/pages/test_schedules.py`` (the pages).
"""
