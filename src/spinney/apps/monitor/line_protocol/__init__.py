"""The line protocol of the SNIG services monitor, for its clients: by TCP, and by a Unix socket.

A client sends lines, a command and its arguments as a Tcl list; replies are tables for people (``HR``) or JSON, as each
connection has chosen. There is no end mark behind a reply but an empty line.

``server`` connections and their limits · ``command_line`` from a line to a command · ``commands`` what each does ·
``selections`` the arguments that name services · ``replies`` their texts · ``layout`` boxes, tables and JSON, to the
byte."""
