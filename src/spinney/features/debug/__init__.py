"""A failed stage run once more under a debugger, on copies of everything that it may change.

``stage_copy``  the copy of a job as its stage finds it, with a handle that answers from memory
``debuggers``   pdb, or another module with the same functions
``cli``         the command ``debug``

The stage runs in the process of the command, in the foreground, with the application that ``--app`` or ``spinney.toml``
names. It has no lease, and nothing that it does through its handle reaches the store: data, subjobs and progress stay
in memory, locks are not taken. What it does by itself to other systems happens a second time. The command needs the
store and the folders at hand, and is refused where a server is named.

Specified by ``tests/cli/test_debug.py`` (the debugger at a terminal, and that the store is unchanged afterwards).
"""
