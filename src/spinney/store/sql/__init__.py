"""A store on an SQL database: SQLite in one file, or PostgreSQL.

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

**Rooms**, from the bottom: ``schema`` the tables · ``connection`` the databases, and the order among writers ·
``registry`` what each process keeps in memory of what is declared and set · ``read`` lists and counts · ``session``
and ``audit`` · ``transitions`` what moves a job from state to state, inside the caller's transaction · ``submit``
new jobs · ``claim``, ``record`` and ``recover`` · ``migrations`` · ``store`` binds them to the contract, and
imports a feature's part when that is first used.
"""

from spinney.store.sql.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
