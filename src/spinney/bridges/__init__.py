"""Bridges let Spinney work with the database or the queue of another system, and serve that system's own clients.

``bridge``    a bridge at work: claims over there, jobs here, reports and wishes
``foreign``   what a class for another system's database provides
``process``   a bridge's process, with the node that runs its jobs
``sole``      at most one process of a host under a bridge's name
``commands``  what the commands of all bridges share
``disbatch``  execution nodes and the command interface of Disbatch 4, on its MongoDB database
``merritt``   a library of the queue in ZooKeeper that Merritt's services share; it needs nothing else of Spinney

A bridge is one thread of one process beside a node. It takes an entry over there, submits a job under a key made of the
entry and the claim, keeps a link between both, and reports what becomes of the job until the other side has it. The
truth about an entry stays over there: each side may be away or killed at any point, and every write there can be
repeated. ``spinney.apps.ingest.merritt`` is the bridge to Merritt's queue. ``docs/bridges.md`` has the rules.

Specified by ``tests/bridges``: ``tests/bridges/test_bridge.py`` for the skeleton, and
``tests/contract/test_bridges.py`` for the links in a store.
"""
