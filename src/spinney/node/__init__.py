"""A node: a guard, a supervisor, its workers.

**Processes.** The guard (``guard``) is the parent of all processes of the node and a child subreaper; it runs no user
code. It starts the supervisor (``supervisor_main``, ``supervisor``), which claims, dispatches, records and recovers,
and never runs user code either. User code runs in workers (``worker``; ``workers`` is the supervisor's side), which
belong to slots (``dispatch``).

**The way of a lease.** ``recorder`` makes one exchange with the store at a time: all records that are due, and a claim
request. ``dispatcher`` makes that request and writes the leases into workers' sockets, as lists; rows come back, become
records, and are sent with the next exchange. ``requests`` answers requests of running attempts. ``limits`` ends
attempts that are overdue or cancelled. ``orders`` carries out operators' orders for the node. ``maintenance`` does what
one node does for all, ``retention`` removes jobs whose retention time is over. Each of the two store threads
(``store_thread``) and the heartbeat has a connection of its own.

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
"""
