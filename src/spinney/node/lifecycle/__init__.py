"""A node's life is kept here: how it begins, proves that it is alive, takes over from a dead one, and ends.

``guard``           the parent process, which leaves nothing of a node behind
``deadline``        until when the supervisor may continue, in memory that its guard watches
``takeover``        a start under a name that another node has or had
``membership``      joining the cluster, and leaving it
``heartbeat``       the thread that proves to others that the node is alive
``recovery``        how dead nodes are detected, and how their jobs are returned
``dead_nodes``      the same on an operator's word, for ``spinney doctor``
``unsynced_files``  files of killed attempts, which their workers can no longer sync
``clock_watch``     whether another host's clock differs from this one's

Two rules carry all others. A node that others may declare dead is dead: its guard ends all of its processes before the
end of its lease period, measured from the beginning of its last accepted heartbeat (``recovery`` has the proof). And
leases are taken away only after the processes that might still run were killed, where they are on this host. Wall
clocks decide neither; they are only shown.

Specified by ``tests/node/test_guard.py``, ``tests/node/test_heartbeat.py``, ``tests/node/test_leases.py``,
``tests/node/test_takeover.py``, ``tests/node/test_many_hosts.py``, ``tests/node/test_locked_file.py``,
``tests/node/test_drain.py`` and ``tests/chaos/test_kill.py``.
"""
