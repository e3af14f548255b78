"""The supervisor's side of workers is here, and what both sides share: page, messages, marks.

``child``           one worker process: started, spoken to, ended, and seen to die
``worker_startup``  the settings of a worker, in one environment variable
``start_trouble``   whether workers can be started, and the report while they cannot
``worker_socket``   the supervisor's end of the socket
``wire``            messages: JSON with its length before it
``worker_reports``  what a worker says of itself, and how it ended
``shared_page``     which attempts run, readable from outside and after a death
``backlog``         what stands behind a running attempt, taken back without the worker's help
``boundaries``      marks in the output, where that of one attempt ends
``proctree``        trees of processes: found, and ended to the last
``termination``     what TERM does in a worker, and the names of signals
``stack_dump``      the stacks of a worker's threads and tasks, written by itself
``stack_memory``    the memory into which it writes them
``stack_taker``     stacks on their way into the folders of jobs

**Processes.** A worker is ``python -m spinney.node.worker.worker`` started with the user's
application (``module:attribute``). It inherits one end of a stream socket pair, a shared page,
pipes as its stdout and stderr, what shows whether anything is in those (``boundaries.pipe_watch``), and the node's lock
file (so that the lock is free only when every worker and program has ended); one environment variable names them
(``worker_startup``). It is a child subreaper: all processes that an attempt starts, however they fork, stay below it.
The kernel kills it with its supervisor, and it ends when its socket closes. ``process``, ``cold`` and ``program``
stages run in it one at a time (``serial_worker``); a worker started with ``--concurrent`` runs ``thread`` and ``async``
stages, many at once (``concurrent_worker``).

**The page** (``shared_page``) is a file of 4 kB (of 96 kB for ``--concurrent``) in the run-time directory, mapped
by both sides, so that it survives either. Before each attempt the worker writes its fence and start
time there; after it, 0. The supervisor writes ``recall`` (the number of the last list whose attempts are to be handed
back unless they have begun) and ``cancel`` (the fence whose ``job.cancelled`` becomes true). Death, timeout and cancel
concern the attempt named there; those behind it in the list go back uncounted. A successor node reads the page to know
what was running when the node died.

**Messages** (``wire``) are length-prefixed JSON, one object each; rows are arrays, and many small
jobs travel in one message.

    to the worker
      {"run": [[type, stage, [[job_id, fence, attempt, params, parent_id, root_id], ...]], ...]}
                                    a row may end with the results of earlier stages (or null), and behind
                                    that with the traceparent of the job's submission
      {"answer": n, "value": ...}  or  {"answer": n, "error": [class, message]}
      {"cancel": [fence, ...]}      concurrent workers only; others read the page
      {"end": true}                 finish running attempts, hand back the rest, exit
    to the supervisor
      {"hello": {"store": url or null, "types": [TypeSpec.to_json(), ...], "queues": [...]}}
      {"hello": {"error": "the sentence that says why the application cannot be loaded"}}
      {"done": [row, ...]}          plain success: [fence, started_us, ended_us];
                                    else [fence, started_us, ended_us, {outcome, result, message,
                                    error, retryable, code, delay_s, lane, lock, output, log,
                                    blocked}],
                                    of which only ``outcome`` is always there.
                                    Once a second with "rss": resident bytes of the worker.
                                    ``blocked``: [seconds, who] if others have blocked the event loop
      {"back": [fence, ...]}        handed back without having begun; with "ending" by a worker that takes no more
      {"ask": n, "fence": f, "verb": name, "args": {...}}   a request of the job handle
      {"output": [fence, "stdout" | "stderr", text]}        concurrent workers: what an attempt printed
      {"blocked": fence, "late": [fence, ...]}   concurrent workers at TERM: the event loop works for the first, and
                                    has not cancelled the tasks of the others yet

``params``, ``result`` and results are JSON *text* inside the JSON: nothing on their way parses them.
``error`` is JSON text, too: type, message, traceback.

A worker sends ``done`` at once when an attempt took longer than a millisecond or its list is done, else together: a
list of small jobs is sent, run and recorded as a list. Rows that it keeps back when a long attempt follows quick ones
are fetched by a signal (``worker_startup.FLUSH_SIGNAL``), and so are recalled attempts. Attempts behind a running one
that are not handed back are taken back (``backlog``).

**Output** (``boundaries``, and ``spinney.node.dispatch.output`` on the other side). ``output: true`` says that the
attempt may have written to stdout or stderr, and that a mark was set behind it: the supervisor
records the attempt only after the pump has written that output to its files. In a concurrent worker the
``output`` messages before the row take the place of marks, and ``log`` names the worker's log when output went past
Python meanwhile, which cannot be assigned to an attempt.

**Ends.** An attempt has ended when no descendant of it is left. The worker itself ends processes that an attempt left
running, sends the attempt's row, hands back the rest and exits with 0; the supervisor's side (``child``) ends the
processes of a dead worker before it reports the death. A worker that gets TERM raises in user code, so that it can
clean up; it still sends finished rows. A concurrent worker asks its attempts to stop, and reports those that were not
named in ``cancel`` before as ``returned``; only the supervisor decides which attempt is to blame.

**Process state** that an attempt changes is restored for the next one (``process_state``); where
that is impossible the worker ends (``threads``, ``serial_worker``).

**What a crash leaves.** Rows that a worker had not sent are lost with it: those attempts count as not begun and run
again. A page tells which attempts had begun. Marks tell to which attempt output belongs; output behind the last mark
belongs to the attempt on the page.

Specified by ``tests/node/test_child.py``, ``tests/node/test_wire.py``, ``tests/node/test_shared_page.py``,
``tests/node/test_backlog.py``, ``tests/node/test_output.py`` (marks), ``tests/node/test_proctree.py`` and
``tests/node/test_stacks.py``.
"""
