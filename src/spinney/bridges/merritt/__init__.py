"""Merritt's queue in ZooKeeper: batches, jobs, access requests and locks are read and written as its services do.

The library needs kazoo (``pip install 'spinney[merritt]'``) and nothing of Spinney: start a ``KazooClient`` and give it
to ``MerrittQueue``. All nodes that belong together are written by one transaction, so that no client can leave anything
half done, and no change is made by a client that has lost its lock.

**An item** (a batch, a job or an access request) is a node with a status below it, and perhaps a lock. A client that
works at an item holds its lock, an ephemeral node, from ``acquire`` to ``unlock``. Each change names the version of the
status that the caller has read, and the lock; where one of them is no longer right nothing is written, and the caller
gets MerrittConflict or MerrittLocked and reads the item again. A value such as ``Batch`` or ``Job`` is the item as it
was read; each verb returns it as it is afterwards.

**What a crash leaves.** The lock ends with the session, and the item stays in its last state, in which the next client
acquires it. A caller that loses the connection within a transaction gets MerrittCommitUncertain, unless reading a node
shows what became of it.

From the whole down to states; each module imports only those below it:

``queue``         the whole queue on one connection
``consistency``   what others left half done: found and mended
``legacy``        the queues before this layout: read, listed, moved
``access``        access requests
``batches``       batches
``locks``         locks of queues, collections and stored objects
``jobs``          jobs of the ingest queue
``job_nodes``     what a job is in ZooKeeper: its nodes, and the lists that point to it
``items``         what batches, jobs and access requests have in common
``item_locks``    locks of single items, gone with their owner's session
``nodes``         nodes read, many in one round
``transactions``  several nodes written at once, and what a failure means
``codec``         the bytes in the nodes
``layout``        the paths
``states``        the three state machines
``errors``        the errors

Specified by ``tests/bridges/merritt``, on real ZooKeeper servers.
"""

from spinney.bridges.merritt.access import AccessRequest as AccessRequest
from spinney.bridges.merritt.batches import Batch as Batch
from spinney.bridges.merritt.errors import MerrittCommitUncertain as MerrittCommitUncertain
from spinney.bridges.merritt.errors import MerrittConflict as MerrittConflict
from spinney.bridges.merritt.errors import MerrittError as MerrittError
from spinney.bridges.merritt.errors import MerrittLocked as MerrittLocked
from spinney.bridges.merritt.errors import MerrittNodeTooLarge as MerrittNodeTooLarge
from spinney.bridges.merritt.errors import MerrittStateError as MerrittStateError
from spinney.bridges.merritt.errors import MerrittZKNodeInvalid as MerrittZKNodeInvalid
from spinney.bridges.merritt.job_nodes import Head as Head
from spinney.bridges.merritt.job_nodes import Job as Job
from spinney.bridges.merritt.job_nodes import job_identifiers as job_identifiers
from spinney.bridges.merritt.job_nodes import job_metadata as job_metadata
from spinney.bridges.merritt.queue import MerrittQueue as MerrittQueue
from spinney.bridges.merritt.states import STEPS as STEPS
from spinney.bridges.merritt.states import AccessState as AccessState
from spinney.bridges.merritt.states import BatchState as BatchState
from spinney.bridges.merritt.states import JobState as JobState
