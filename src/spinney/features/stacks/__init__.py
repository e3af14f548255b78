"""Where a running attempt stands: the stacks of its worker, which goes on meanwhile.

``sql``       requests for stacks, as rows that live for a moment
``commands``  the request, and whether it is still open
``cli``       the command ``stack``

The caller writes a request; the node that runs the attempt finds it (``spinney.node.dispatch.ticker``), has the worker
write where its threads and tasks stand (``spinney.node.workers.stack_taker``), keeps that as a file in the job's folder
and deletes the request; the caller waits until the request is gone and reads the file. A node also keeps stacks by
itself before a time limit ends an attempt; ``stack --kept`` shows those.

Specified by ``tests/node/test_stacks.py`` (what is written, and when) and ``tests/cli/test_stack.py`` (the command).
"""
