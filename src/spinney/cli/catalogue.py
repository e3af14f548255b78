"""Which commands there are, under which heading ``spinney --help`` shows them, and which module has each.

Kept apart from the commands themselves, so that a shell that completes a word loads only the one that stands on
its line.
"""

from collections.abc import Mapping

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Work": {
        "submit": "submitting",
        "wait": "looking",
        "retry": "operating",
        "rerun": "operating",
        "cancel": "operating",
        "move": "operating",
        "priority": "operating",
        "delete": "operating",
    },
    "Look": {
        "list": "looking",
        "show": "looking",
        "tree": "looking",
        "explain": "explaining",
        "logs": "logs",
        "files": "files",
        "stats": "counting",
        "top": "top",
        "failures": "failing",
    },
    "Operate": {
        "hold": "holding",
        "holds": "holding",
        "release": "holding",
        "queues": "queueing",
        "queue": "queueing",
        "locks": "locking",
        "lock": "locking",
        "unlock": "locking",
        "rehome": "rehoming",
        "schedule": "scheduling",
        "webhook": "webhooks",
        "audit": "auditing",
    },
    "Store and nodes": {
        "init": "setup",
        "up": "serving",
        "serve": "serving",
        "node": "setup",
        "nodes": "fleet",
        "drain": "fleet",
        "resume": "fleet",
        "slots": "fleet",
        "keep": "retaining",
        "user": "accounts",
        "token": "accounts",
        "doctor": "doctoring",
        "store": "moving",
    },
}
"""Heading, command, module of ``spinney.cli``."""

HOMES: Mapping[str, str] = {
    name: module for commands in HEADINGS.values() for name, module in commands.items()
}
"""The module of each command, in the order in which they are shown."""
