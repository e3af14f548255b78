"""Where user code runs, and how the supervisor talks to it.

**Processes.** A worker is ``python -m spinney.node.executors.worker`` started with the user's
application (``module:attribute``). It inherits: one end of a stream socket pair (fd in
``SPINNEY_SOCKET_FD``), a shared page (fd in ``SPINNEY_PAGE_FD``), pipes as its stdout and stderr,
and the node's lock file (so that the lock is free only when every child is gone). It is a child
subreaper: whatever an attempt starts, however it forks, ends up below it. It ends when its socket
closes. ``process``, ``cold`` and ``program`` stages run in it one at a time; a worker started with
``--many`` is the host of ``thread`` and ``async`` stages, many at once.

**The page** (``page.py``) is a file of 4 kB in the run-time directory, mapped by both sides, so
that it survives either. Before each attempt the worker writes its fence and start time there; after
it, 0. The supervisor writes ``recall`` (hand back what has not begun) and ``cancel`` (the fence
whose ``job.cancelled`` turns true). Death, timeout and cancel hit the attempt named there; what
stood behind it in the list goes back uncounted. A successor node reads the page to know what was
running when everything died.

**Messages** (``wire.py``) are length-prefixed JSON, one object each; rows are arrays, and many
small jobs travel in one message.

    to the worker
      {"run": [[type, stage, [[job_id, fence, attempt, params, parent_id, root_id], ...]], ...]}
      {"answer": n, "value": ...}  or  {"answer": n, "error": [class, message]}
      {"cancel": [fence, ...]}      many-workers only; others look at the page
      {"end": true}                 finish what was begun, hand back the rest, exit
    to the supervisor
      {"hello": {"pid": ..., "types": [TypeSpec.to_json(), ...], "queues": [...]}}
      {"hello": {"error": "the sentence that says why the application cannot be loaded"}}
      {"done": [row, ...]}          plain success: [fence, started_us, ended_us];
                                    else [fence, started_us, ended_us, {outcome, result, message,
                                    error, retryable, code, delay_s, lane, lock, output, log}]
      {"back": [fence, ...]}        handed back without having begun
      {"ask": n, "fence": f, "verb": name, "args": {...}}   a request of the job handle

``params`` and ``result`` are JSON *text* inside the JSON: nothing in between parses them.
``output: true`` says that the attempt wrote to stdout or stderr and a mark was set behind it: the
supervisor records the attempt only after the pump has written that output to its file.
A worker sends ``done`` at once when an attempt took longer than a millisecond, else together: a
list of small jobs travels, runs and is recorded as a list.
"""
