"""A node runs the stages of jobs on one host: a guard, below it a supervisor, and below that the workers.

**Processes.** The guard (``lifecycle.guard``) is the parent of all processes of the node and a child subreaper; it runs
no user code. It starts the supervisor (``supervisor_main``, ``supervisor``), which claims, dispatches, records and
recovers, and never runs user code either. User code runs in workers, which belong to slots.

``run``              starting a node for ``spinney node``
``supervisor_main``  the supervisor's process, and the watch that ends it with its guard
``supervisor``       one run of a node: it starts, joins, works, drains and leaves
``lifecycle``        the guard, the heartbeat and its deadline, takeover of a name, recovery of dead nodes
``dispatch``         from leases to workers, and from workers' rows to records
``services``         the loops in the background: operators' orders, holds, inboxes, housekeeping, wake-ups
``workers``          the supervisor's side of worker processes, and what both sides share
``worker``           the code inside a worker process
``instance``         one start of a node on a host, and how to tell that it is gone
``local_host``       this host, for which that can be told for certain
``store_thread``     a thread that owns a store's connection
``context``          what all parts of a node get at their creation
``signals``          what parts of a node tell each other, without knowing each other
``settings``         the settings of a node, checked once at its start
``settings_table``   the table ``[node]`` of ``spinney.toml``
``health``           trouble with the database, logged once and stored with each heartbeat
``measurements``     figures for the node's own ``/metrics``
``attempt_spans``    spans of traced jobs
``retry_delays``     pauses between retries, random and growing

**The way of a lease.** ``dispatch.recorder`` makes one exchange with the store at a time: all records that are due, and
a claim request. ``dispatch.dispatcher`` makes that request and writes the leases into workers' sockets, as lists; rows
come back, become records, and are sent with the next exchange. ``dispatch.requests`` answers requests of running
attempts. ``dispatch.limits`` ends attempts that are overdue or cancelled. ``services.orders`` carries out operators'
orders for the node. ``services.maintenance`` does what one node does for all, ``services.retention`` removes jobs whose
retention time is over. Each of the two store threads (``store_thread``) and the heartbeat has a connection of its own.

**Liveness.** ``heartbeat`` increments the node's counter in the store; each accepted beat renews the ``deadline`` that
the guard watches. Observers measure a lease period by their own clock (``recovery``); the guard's deadline passes a
margin before any of them can reach the end of it. So when a node is declared dead, all processes below its guard are
dead.

**What a crash leaves**, and who clears it:

* worker: the kernel reports it; its attempt died, the jobs behind it go back. Its page says which.
* supervisor: the guard sees that it has ended, or is late, and kills everything below.
* guard: the supervisor sees the end of a pipe, kills everything below, ends.
* all at once: programs may still run, with their instance's mark in the environment. The successor, or any other node
of the host, kills them, reads the pages, and takes the leases back (``takeover``, ``instance``). On another host: when
the lease period is over.
* a record that was not written yet: its lease still exists, so the stage runs again; a recorded one never does.

**In the run-time directory** (beside the database file, 0700): ``node-<instance>.lock`` held by guard
and workers · ``pages-<instance>/`` a page a worker · ``wakeup-<name>.<pid>.sock`` · ``start-<name>.lock``
held while starting · ``logs-<name>/`` what workers write outside attempts.

Specified by ``tests/node`` (real processes and real databases), ``tests/chaos`` (kills, full disks and clocks that
jump, under load) and ``tests/simulation`` (the same supervisor on simulated clocks, databases and workers)."""
