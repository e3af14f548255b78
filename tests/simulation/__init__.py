"""The engine under a simulator: whole clusters in one thread, with every fault, in an order that a seed decides.

**What is real.** The store (``SqlStore``) with all its statements. The supervisor of each node with everything in
it: recorder, dispatcher, worker pool, slots, lanes, limits, requests, holds, orders, maintenance, recovery, takeover,
retaining, telling, the heartbeat; page files, lock files, folders.

**What takes a place** (``clockwork`` says where):

* the event loop: one for all processes, with virtual time, and a draw who goes next (``loop``);
* clocks: the true time for what is monotonic, and a wall clock for each host, which may be wrong;
* threads that own stores, and the one that beats: their calls wait for a drawn time, and a verb of several
  transactions lets others go first between two of them (``threads``, ``strands``);
* the database: SQLite in memory, behind gates at which processes die, connections are lost in the commit, and
  servers do not answer (``stores``);
* workers: they keep the real ones' protocol and page, and what their stages do is drawn (``workers``, ``scripts``);
* the guard: it looks at the real deadline when the real one would (``nodes``);
* wake-ups, which get lost, and signals.

**What happens** is in ``faults`` (crashes between any two transactions, of a whole node or of its supervisor alone;
stopped supervisors and frozen machines, which go on after they were given up; leases that differ from node to node and
from start to start; lost connections, late writes of the
dead, wrong clocks, nodes of one name, TERM) and in ``operators`` (submissions and every verb at any time).

**What must hold** is in ``oracle``, looked at after each committed transaction. ``variants`` are engines broken on
purpose, which the suite has to find broken.

``make sim SEEDS=100000`` lives that many lives, ``make sim SEED=12345`` lives one again and shows it.
"""
