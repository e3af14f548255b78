"""A node: a guard, a supervisor, its workers.

**Who runs what.** The guard (``guard``) is the parent of everything and a child subreaper; it runs
nothing of the user's. It starts the supervisor (``supervisor_main``, ``supervisor``), which claims,
hands out, records and recovers, and never runs user code either. User code runs in workers
(``worker``; ``workers`` is the supervisor's side), which belong to slots (``dispatch``).

**The way of a lease.** ``recorder`` makes one exchange with the store at a time: all records that
are due, and a want. ``dispatcher`` says what is wanted and puts the leases into workers' sockets, as
lists; rows come back, become records, and go out with the next exchange. ``requests`` serves what
running attempts ask. ``limits`` ends what is overdue or wished away. ``orders`` does what operators want of
the node. ``maintenance`` does what one node does for all, ``retention`` removes jobs whose time is over.
Each of the two store threads (``store_thread``) and the heartbeat has a connection of its own.

**Who says that a node lives.** ``heartbeat`` moves the node's counter in the store; each beat that
was taken renews the ``deadline`` that the guard watches. Observers count a lease period of their own
clock (``recovery``); the guard's deadline lies a margin before any of them can be done counting. So
when a node is declared dead, everything below its guard is dead.

**What a crash leaves**, and who clears it:

* worker: seen from the kernel; its attempt died, what stood behind it goes back. Its page says which.
* supervisor: the guard sees it end, or be late, and kills everything below.
* guard: the supervisor sees the end of a pipe, kills everything below, ends.
* all at once: programs may be left, bearing their instance's mark in the environment. The successor,
  or any other node of the host, kills them, reads the pages, and takes the leases back (``takeover``,
  ``instance``). On another host: once the lease period is over.
* a record on its way: its lease stands, so the stage runs again; a recorded one never does.

**In the run-time directory** (beside the database file, 0700): ``node-<instance>.lock`` held by guard
and workers · ``pages-<instance>/`` a page a worker · ``wakeup-<name>.<pid>.sock`` · ``start-<name>.lock``
held while starting · ``logs-<name>/`` what workers write outside attempts.
"""
