"""Which commands there are, under which heading ``spinney --help`` shows them, and which module has each.

Kept apart from the commands themselves, so that a shell that completes a word loads only the one that stands on
its line.
"""

from collections.abc import Mapping

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Work": {
        "submit": "submit",
        "wait": "jobs",
        "retry": "verbs",
        "rerun": "verbs",
        "cancel": "verbs",
        "move": "verbs",
        "priority": "verbs",
        "delete": "verbs",
    },
    "Look": {
        "list": "jobs",
        "show": "jobs",
        "tree": "jobs",
        "explain": "explain",
        "logs": "logs",
        "files": "files",
        "stats": "stats",
        "top": "top",
        "failures": "failures",
    },
    "Operate": {
        "hold": "holds",
        "holds": "holds",
        "release": "holds",
        "queues": "queues",
        "queue": "queues",
        "locks": "locks",
        "lock": "locks",
        "unlock": "locks",
        "rehome": "rehome",
        "schedule": "schedules",
        "webhook": "webhooks",
        "audit": "audit",
    },
    "Store and nodes": {
        "init": "setup",
        "up": "serve",
        "serve": "serve",
        "node": "setup",
        "nodes": "nodes",
        "drain": "nodes",
        "resume": "nodes",
        "slots": "nodes",
        "keep": "retention",
        "user": "accounts",
        "token": "accounts",
        "doctor": "doctor",
        "store": "store_copy",
    },
}
"""Heading, command, module of ``spinney.cli``."""

COMMAND_MODULES: Mapping[str, str] = {
    name: module for commands in HEADINGS.values() for name, module in commands.items()
}
"""The module of each command, in the order in which they are shown."""
