"""Where user code runs, and how the supervisor talks to it.

**Processes.** A worker is ``python -m spinney.node.worker.worker`` started with the user's
application (``module:attribute``). It inherits one end of a stream socket pair, a shared page,
pipes as its stdout and stderr, what shows whether anything is in those (``boundaries.pipe_watch``), and the
node's lock file (so that the lock is free only when every worker and program is gone); it is told of
them in one environment variable (``worker_startup``). It is a child subreaper: whatever an attempt starts,
however it forks, ends up below it. The kernel kills it with its supervisor, and it ends when its
socket closes. ``process``, ``cold`` and ``program`` stages run in it one at a time (``serial_worker``); a
worker started with ``--concurrent`` is the host of ``thread`` and ``async`` stages, many at once (``concurrent``).

**The page** (``shared_page``) is a file of 4 kB (of 96 kB for ``--concurrent``) in the run-time directory, mapped
by both sides, so that it survives either. Before each attempt the worker writes its fence and start
time there; after it, 0. The supervisor writes ``recall`` (the number of the last list that is to
come back as far as it has not begun) and ``cancel`` (the fence whose ``job.cancelled`` turns true).
Death, timeout and cancel hit the attempt named there; what stood behind it in the list goes back
uncounted. A successor node reads the page to know what was running when everything died.

**Messages** (``wire``) are length-prefixed JSON, one object each; rows are arrays, and many small
jobs travel in one message.

    to the worker
      {"run": [[type, stage, [[job_id, fence, attempt, params, parent_id, root_id], ...]], ...]}
      {"answer": n, "value": ...}  or  {"answer": n, "error": [class, message]}
      {"cancel": [fence, ...]}      concurrent workers only; others look at the page
      {"end": true}                 finish what was begun, hand back the rest, exit
    to the supervisor
      {"hello": {"pid": ..., "types": [TypeSpec.to_json(), ...], "queues": [...]}}
      {"hello": {"pid": ..., "error": "the sentence that says why the application cannot be loaded"}}
      {"done": [row, ...]}          plain success: [fence, started_us, ended_us];
                                    else [fence, started_us, ended_us, {outcome, result, message,
                                    error, retryable, code, delay_s, lane, lock, output, log}],
                                    of which only ``outcome`` is always there.
                                    Once a second with "rss": resident bytes of the worker
      {"back": [fence, ...]}        handed back without having begun
      {"ask": n, "fence": f, "verb": name, "args": {...}}   a request of the job handle
      {"output": [fence, "stdout" | "stderr", text]}        concurrent workers: what an attempt printed

``params`` and ``result`` are JSON *text* inside the JSON: nothing in between parses them.
``error`` is JSON text, too: type, message, traceback.

A worker sends ``done`` at once when an attempt took longer than a millisecond or its list is done,
else together: a list of small jobs travels, runs and is recorded as a list. What it keeps back when
a long attempt follows quick ones is fetched by a signal (``worker_startup.FLUSH_SIGNAL``), and so is what a
recall wants back. What stands behind an attempt and is not handed back is taken back (``backlog``).

**Output** (``boundaries``, and ``spinney.node.dispatch.output`` on the other side). ``output: true`` says that the
attempt may have written to stdout or stderr, and that a mark was set behind it: the supervisor
records the attempt only after the pump has written that output to its files. In a concurrent worker the
``output`` messages before the row take the place of marks, and ``log`` names the worker's log when
something went past Python meanwhile, so that whose it was cannot be told.

**Ends.** An attempt has ended when no descendant of it is left. The worker itself ends what an
attempt left running, tells of the attempt, hands back the rest and exits with 0; the supervisor's
side (``child``) ends what a dead worker left before it tells of the death. A worker that is told to
end by TERM raises in user code, so that it can clean up; what it had finished it still tells. A
concurrent worker tells its attempts to stop, and tells of those that were not named in ``cancel`` before as
``returned``; whom that blames, only the supervisor decides.

**What an attempt changes** of its worker is put back for the next one (``saved_descriptors``, ``process_state``);
what cannot be put back ends the worker (``threads``, ``serial_worker``).

**What a crash leaves.** Rows that a worker had not sent are lost with it: those attempts count as
not begun and run again. A page tells what had begun. Marks tell whose output is whose as far as it
was written; behind the last it is that of the attempt on the page.
"""
