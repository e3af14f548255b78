"""``spinney ingest`` works for Merritt's ingest queue in ZooKeeper here, as one of its consumers.

The rules for those who run it are in ``docs/merritt.md``.

``consumer``       the other side of a bridge (``spinney.bridges``): takes jobs there and reports what became of them
``orders``         what a job there means here, as pure rules
``progress``       the state and nodes of a job there, by what holds here
``ownership``      which jobs there are this node's, by their locks and marks
``marks``          what is written beside Merritt's nodes to know that
``batches``        submissions made jobs, and batches that have ended reported
``access``         access requests, answered by packages
``passed_over``    items with a fault, left as they are with one warning, so that the others go on
``mirror``         batches that were submitted here, shown there
``watched_lists``  lists there that are read again when they have changed
``settings``       ``merritt.toml``: which states and requests are worked on here
``cli``            the commands ``spinney merritt``: run, and compare

The queue itself, with its layout, locks and state machines, is the library ``spinney.bridges.merritt``, and the
commands for its operators are in ``spinney.bridges.merritt_admin``. A
consumer is one process with one thread (``spinney.bridges.bridge``); a node of its own runs the jobs. A job
there is this node's as long as it has both its lock and its mark: the lock ends with the session, the mark
tells a restarted consumer what it had taken. Whatever is repeated after a crash must lead to the same job
here, by its key.

**Who writes what, in which order.** A job is locked in Merritt's queue, then marked
(``/spinney/nodes/NODE/JID``), and then the bridge submits its job here. The stages of that job write to the
archive and never to ZooKeeper. When its state changes, the consumer writes results and state transitions
there, one at a time, and last removes lock and mark.

**What a crash leaves.** Between lock and mark: a lock that ends with the session, or is released by the next
process of the same name. After the mark: a job that the next process of that name takes up again under the
same claim, so that no second job is made here. Between the last transition and the removal of the mark: a
mark of a job that has ended, which is removed at the next look.

Specified by ``tests/apps/ingest/merritt`` (on real ZooKeeper servers, with killed processes).
"""
