"""A running stage gets its job as a handle: its parameters, data and folder, and its requests to the engine.

``handle``       the handle ``Job``, and what it returns: children, taken locks
``port``         the requests of a handle, verb by verb, and their answers
``memory_port``  answers from memory, for stages that run without a node
``data``         the named values and the folder of a job
``products``     results for people, collected at the root of a tree
``options``      the options of a submission or spawn, as JSON and back
``log``          the logger whose lines become the attempt's log

A handle belongs to one attempt and has no connection to a database. It answers from what came with the lease, or asks
through its ``Port`` and waits; when the answer has come, what was written is durable. When the attempt has lost its
lease, requests raise ``StaleFence``, and a stage should stop. ``spinney.node.worker.ports`` is the port of a worker,
``spinney.testing`` uses ``memory_port``.

Specified by ``tests/define/test_handle.py``, ``tests/define/test_products.py`` and ``tests/test_testing.py``; what
requests do in a store, by ``tests/contract/test_data.py`` and ``tests/contract/test_jobs_from_stages.py``.
"""

from spinney.define.job.handle import Assignment, Cancelled, Child, Job, LockTaken, Port, Submittable

__all__ = ["Assignment", "Cancelled", "Child", "Job", "LockTaken", "Port", "Submittable"]
