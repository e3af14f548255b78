"""Bridges let Spinney work with the database or the queue of another system, and serve that system's own clients.

``bridge``              a bridge at work: it claims entries, submits jobs, reports their state, takes wishes
``foreign``             what a class for another system's database provides
``process``             a bridge's process, at most one of a host under its name, with the node that runs its jobs
``commands``            what the commands of all bridges share
``disbatch``            execution nodes and the command interface of Disbatch 4, on its MongoDB database
``merritt``             a library of the queue in ZooKeeper that Merritt's services share; it needs nothing else
``merritt_admin``       the commands ``spinney merritt`` for operators of that queue
``merritt_connection``  the connection of commands to ZooKeeper

A bridge is one thread of one process beside a node. It claims an entry in the other system, submits a job under a key
made of the entry and the claim, keeps a link between both in the store, and reports the job's state until the other
system has its end. The truth about an entry stays in the other system: each side may be away or killed at any point, so
every write to it can be repeated. ``spinney.apps.ingest.merritt`` is the bridge to Merritt's queue.

**The order of writes.** The claim in the other system; the link, without a job; the job, under its key; the job's
number in the link. Later, each time that the job has changed: its state in the other system; then the position of the
link, which says how far that has been passed on. A link is removed when the other system has the end of its job.

**What a crash leaves.** After the first write an entry that bears the bridge's name and has no link, which the bridge
finds when it compares both sides; after the others a link that lags behind, which the next round brings up to date. The
key is taken for ever, so no claim becomes two jobs. ``docs/bridges.md`` has the rules in full.

Specified by ``tests/bridges``: ``tests/bridges/test_bridge.py`` for the skeleton, and
``tests/contract/test_bridges.py`` for the links in a store.
"""
