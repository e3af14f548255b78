"""The line protocol of the SNIG services monitor is served here, for its clients: by TCP, and by a Unix socket.

A client sends lines, a command and its arguments as a Tcl list; replies are tables for people (``HR``) or JSON, as each
connection has chosen. There is no end mark behind a reply but an empty line.

``server``        connections and their limits
``command_line``  from a line to a command
``commands``      what each command does
``selections``    the arguments that name services
``replies``       the texts of replies
``layout``        boxes, tables and JSON, to the byte

It runs in the process of ``spinney monitor run``: one event loop has a task for each connection, and commands run in
threads, so that no client holds up another. A reply is to be the same to the byte as the old server's, since programs
read it.

Specified by ``tests/apps/monitor/test_line_protocol.py`` (real connections) and
``tests/apps/monitor/test_line_protocol_layout.py`` (the bytes).
"""
