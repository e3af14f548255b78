"""The command line: one module a group of commands.

``main`` binds them and turns every error into one sentence and an exit code: 2 for invalid usage, 1 for what the
current state does not allow, 130 for Ctrl-C. Modules import what a
command needs inside the command, so that ``spinney list`` does not pay for what ``spinney node``
needs.

Nothing here holds a rule of its own: verbs are in ``spinney.control``, places in ``spinney.config``.
"""
