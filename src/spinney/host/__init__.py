"""This package has what Spinney asks of the machine on which a process runs.

``boot``              the id of the kernel's boot, by which nodes of one host know each other
``filesystem``        a whole file system synced by one call, where that guarantees the same as syncing each file
``ownership``         what root makes in a place of another user, which is given to that user
``resolver``          name resolution by the system
``standard_streams``  standard streams that a shell has closed, that nobody reads, or that cannot encode a character
``unread_log``        a log whose lines block nobody when nobody reads them
``imports``           modules that users name, imported with errors that fit in one sentence

Each module is independent of the others, and none knows of jobs or stores. ``imports`` loads other people's code into
this process; the others only ask the kernel or the system's libraries.

Specified by ``tests/node/test_many_hosts.py`` (boots), ``tests/node/test_folders_sync.py`` (syncing),
``tests/reports/test_safe_transport.py`` (resolution), ``tests/cli/test_closed_streams.py`` (streams),
``tests/test_unread_log.py`` (the log) and ``tests/test_app.py`` (imports).
"""
