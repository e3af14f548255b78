"""Which commands there are, under which heading ``spinney --help`` shows them, and which module has each.

It is separate from the commands themselves, so that completion loads only the module of the command on its
line. A new command is added here and declared by ``add_to`` of its module; ``tests/cli/test_commands.py``
compares the two.
"""

from collections.abc import Mapping

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Work": {
        "submit": "features.submission.cli",
        "wait": "features.submission.wait_cli",
        "retry": "features.jobs.actions_cli",
        "rerun": "features.jobs.actions_cli",
        "cancel": "features.jobs.actions_cli",
        "move": "features.jobs.actions_cli",
        "priority": "features.jobs.actions_cli",
        "relabel": "features.collections.cli",
        "delete": "features.jobs.actions_cli",
    },
    "Look": {
        "list": "features.jobs.cli",
        "show": "features.jobs.cli",
        "tree": "features.jobs.cli",
        "explain": "features.explain.cli",
        "logs": "features.files.logs_cli",
        "files": "features.files.cli",
        "stats": "features.stats.cli",
        "top": "features.stats.top",
        "failures": "features.failures.cli",
        "postmortem": "features.postmortem.cli",
        "debug": "features.debug.cli",
        "stack": "features.stacks.cli",
    },
    "Operate": {
        "hold": "features.holds.cli",
        "holds": "features.holds.cli",
        "release": "features.holds.cli",
        "queues": "features.queues.cli",
        "queue": "features.queues.cli",
        "locks": "features.locks.cli",
        "lock": "features.locks.cli",
        "unlock": "features.locks.cli",
        "rehome": "features.homes.cli",
        "schedule": "features.schedules.cli",
        "inbox": "features.inboxes.cli",
        "bridges": "features.bridges.cli",
        "bridge": "features.bridges.cli",
        "webhook": "features.webhooks.cli",
        "audit": "features.audit.cli",
    },
    "Store and nodes": {
        "init": "cli.setup",
        "up": "cli.serve",
        "serve": "cli.serve",
        "node": "cli.setup",
        "nodes": "features.nodes.cli",
        "drain": "features.nodes.cli",
        "resume": "features.nodes.cli",
        "slots": "features.nodes.cli",
        "keep": "features.retention.cli",
        "user": "features.accounts.cli",
        "token": "features.accounts.cli",
        "doctor": "features.doctor.cli",
        "store": "features.copies.cli",
    },
}
"""The headings in the order of the help; below each, its commands with the modules that have them, relative
to ``spinney``."""

COMMAND_MODULES: Mapping[str, str] = {
    name: module for commands in HEADINGS.values() for name, module in commands.items()
}
"""The module of each command, in the order in which they are shown."""
LOCAL_COMMANDS = frozenset({"init", "up", "serve", "node", "store"})
"""Commands that need the store itself, and no server does; three of them run people's own code."""
