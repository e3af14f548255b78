"""This is the code of a worker process, in which user code runs; the supervisor's side is ``spinney.node.workers``.

``worker``             the process: it loads the application, says hello, and serves
``serial_worker``      one attempt at a time: ``process``, ``cold`` and ``program`` stages
``concurrent_worker``  many attempts at once: ``thread`` and ``async`` stages
``running_attempt``    one of these attempts: a thread or a task
``loop_watch``         which attempt blocks the event loop of the others
``stage_runners``      the functions that run the application's stages
``program``            stages that are programs of any language
``ports``              requests of a running attempt to the supervisor
``result_rows``        what an attempt's end becomes in a message
``process_state``      standard streams, working directory, umask, environment, signals and the like, restored
                       after an attempt that changed them
``attempt_tools``      what both kinds of workers need for their attempts
``threads``            threads that an attempt has left running
``attempt_output``     what an attempt prints, where several share a process
``capture``            bounded files for output
``failure_frames``     the frames of a failed attempt, kept beside its output
``sync``               files of an attempt, on the disk before its success is recorded

A worker opens no store and knows no other process than its supervisor: leases come, and rows go, through one socket
(``spinney.node.workers.wire``). It writes an attempt's fence on its shared page before the stage begins and removes it
after the row was passed on, so that whoever survives knows what was running. An attempt's files are synced before its
row is sent. A worker that runs one attempt at a time also marks the end of its output and ends the processes that it
left before that; what it cannot restore for the next attempt ends the worker.

Specified by ``tests/node/test_worker.py``, ``tests/node/test_concurrent_worker.py``, ``tests/node/test_program.py``,
``tests/node/test_left_behind.py``, ``tests/node/test_result_rows.py``, ``tests/node/test_folders_sync.py``,
``tests/node/test_failure_frames.py`` and ``tests/node/test_storeless.py``.
"""
