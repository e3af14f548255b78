"""This is a store on an SQL database: SQLite in one file, or PostgreSQL.

**Tables.** A job's row in ``jobs`` is written when it is submitted, when it leaves the straight path (fails, waits,
defers, goes to another stage) and when it settles; never by a claim. Claimable jobs have a row in ``ready``, a narrow
table whose key is the order of work (lane, priority, share, position). Leased jobs have a row in ``leases``; the states
claimed and running are read from there. Other jobs (scheduled, held, waiting, failed, cancelled, orphaned, deleted)
have a row in ``inactive_jobs`` with the reason. A completed job has none of the three. So finished work never slows
down a claim, and there are no counters beside the rows.

**Order of writes.** Every write is one transaction that begins with the right to write (``write_queue``): first facts
(attempts, the job's row), then what follows from them (children, needs, locks, the serial order), last the claim. A
crash leaves either all of it or nothing. The one exception is a long submission or spawn: its job rows are written in
steps under a row in ``staging``, which hides them; one small transaction publishes them, and their ``ready`` rows
follow in steps. A ``staging`` row without its writer is dropped or finished by a sweep (``sweep_step``). Jobs that a
running attempt spawns are there, too, until the transaction that records its stage as passed.

**Packages and modules**, from the bottom; each imports only those above it in this list (``connection`` and
``migrations`` also each other):

``schema``       the tables
``connection``   the databases, and the order among writers
``migrations``   a new store, and upgrades of an old one
``records``      rows as values of dataclasses
``registry``     each process's cache of declarations and settings
``read``         lists and counts
``session``      the database of a store with its registry: every transaction begins here
``audit``        who did what to how many jobs, in a chain of digests
``transitions``  state transitions of jobs, inside the caller's transaction
``submit``       new jobs
``claim``        which jobs a node gets
``record``       the outcomes of attempts
``recover``      the leader, and housekeeping
``store``        the contract, made of all these; it imports a feature's part when that is first used

Specified by ``tests/contract`` (on SQLite and PostgreSQL alike) and ``tests/store``.
"""

from spinney.store.sql.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
