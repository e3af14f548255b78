"""A store on an SQL database; today SQLite, in one file.

**What is where.** A job's row in ``jobs`` is written when it is submitted, when it leaves the
straight way (fails, waits, defers, goes to another stage) and when it settles; never at a claim.
What can be claimed stands in ``ready``, a narrow table whose key is the order of work (lane,
priority, share, position). What is leased stands in ``leases``; the states claimed and running are
read from there. What stands aside (scheduled, held, waiting, failed, cancelled, orphaned, deleted)
has a row in ``inactive_jobs`` with the reason. A completed job has none of the three. So finished work
never slows a claim, and nothing is counted beside the rows themselves.

**Who writes in which order.** Every write is one transaction begun with the right to write
(``write_queue``): first facts (attempts, the job's row), then consequences (children, needs, locks,
the serial line), last the claim. A crash leaves either all of it or nothing. The one exception is
a long submission or spawn: its job rows are written in steps under a row in ``staging``, which hides
them; one small transaction publishes them, and their ``ready`` rows follow in steps. Whoever finds
a ``staging`` row without its writer drops or finishes it (``sweep_step``). What a running attempt bears stands
there, too, until the transaction that records its stage as passed.

**Modules.** ``schema`` the tables · ``database`` connections and transactions · ``write_queue`` order
among writers · ``registry`` types, queues, lanes as the current transaction sees them · ``placement``
puts a job where it belongs now · ``new_jobs`` new jobs · ``claims`` leases · ``recorder`` what
became of attempts · ``cascades`` the consequences for others · ``job_operations`` verbs of people ·
``failures`` failures by cause · ``circuit_breaker`` the circuit breaker · ``locks`` who may have one,
``lock_waiters`` who waits, ``capacities`` how much there is, ``lock_admin`` all that seen from outside, ``deadlocks``
rings of jobs that wait · ``audit`` who did what · ``schedules`` schedules · ``webhook_events`` what webhooks are told,
``webhooks`` what came of it · ``attempts`` what a running attempt may ask, ``spawns`` the jobs that it makes ·
``root_inserts`` new jobs by one statement ·
``upgrades`` schemas, ``schema_state`` which code may work with one, ``online_ddl`` tables beside nodes that work ·
``store_copy`` a whole store · ``retention`` how long settled jobs are kept, ``removal`` those whose time is over ·
``doctor`` what must hold, and its repair · ``nodes`` · ``sweep_step`` · ``job_queries`` (``access_paths`` and
``filter_queries`` which jobs, ``state_counts`` how many) · ``statistics`` figures (``throughput`` rates,
``duration_samples`` times) · ``store`` binds them to the contract.
"""

from spinney.store.sql.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
