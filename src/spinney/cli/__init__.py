"""The program ``spinney``: it finds the command on the line, runs it, and turns every error into a sentence.

``main``       the entry point: one command, and what becomes of its errors
``commands``   the tree of commands, loaded only as far as the line needs, and its help
``setup``      the commands ``init`` and ``node``
``serve``      the commands ``serve`` and ``up``
``completer``  the words that a shell offers at the cursor
``shells``     the completion scripts, and how each shell asks

``main`` turns every error into one sentence and an exit code: 2 for invalid usage, 1 for what the current state does
not allow, 130 for Ctrl-C (``spinney.terminal.exit_codes``). An unexpected error becomes a sentence, too, which names
the file that has its traceback.

All other commands are in the features (``cli`` of each); ``spinney.terminal.command_index`` says which module has which
command, so that one line loads one module. A module imports its command classes at its top, and what needs a store, a
node or a shell inside the command, so that ``spinney list`` does not pay for what ``spinney node`` needs. Nothing here
holds a rule of its own: operations are commands (``spinney.commands``), performed on a store or through a server, and
places are in ``spinney.config``. ``up`` runs the server in its own process and the node in a child, each of which ends
with the other.

Specified by ``tests/cli`` (each command in a real folder, as a user types it), ``tests/cli/test_commands.py`` (what a
line loads), ``tests/cli/test_completion.py`` (completion), ``tests/cli/test_interrupts.py`` (Ctrl-C),
``tests/cli/test_serve.py`` (``serve`` and ``up``), ``tests/cli/test_docs.py`` (docs/cli.md says the same) and
``tests/cli/remote`` (the same commands through a server).
"""
