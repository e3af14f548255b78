"""Which commands there are, under which heading ``spinney --help`` shows them, and which module has each.

It is separate from the commands themselves, so that help loads none of their modules, and a line only that of its
command. Each module has its commands in ``app``, an application of Typer's. A new command is added here, too;
``tests/cli/test_commands.py`` compares the two.
"""

from collections.abc import Mapping

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Work": {
        "submit": "Submit a job (or many): all are accepted, or none.",
        "wait": "Wait until jobs have settled; exit code 1 unless all completed.",
        "retry": "Retry failed jobs, from the stage after the last one that passed.",
        "rerun": "Run settled jobs again from their first stage.",
        "run-now": "Run scheduled jobs now, without waiting for their time or the end of their backoff.",
        "cancel": "Cancel jobs.",
        "move": "Move open jobs into another queue, for all they run from now on.",
        "priority": "Give open jobs another priority.",
        "relabel": "Assign a settled job, with all jobs below it, to another collection.",
        "delete": "Delete settled or held jobs with all below them and with their folders.",
    },
    "Look": {
        "list": "List jobs, the newest first.",
        "show": "Show one job: where it stands and why, its data, its history.",
        "tree": "Show a job and all below it.",
        "explain": "Explain why jobs are not running, and what would start them.",
        "logs": "Print the output of a job's attempts, the oldest first.",
        "files": "List the files in a job's folder, or print one of them.",
        "stats": "Show queue depths, throughput, run times and slots in use.",
        "top": "Watch a store live, and hold, release, retry or cancel the selected jobs.",
        "failures": "List failed jobs grouped by cause, the most frequent cause first.",
        "postmortem": "Open a shell at the frames of a failed stage, with the variables that were kept.",
        "debug": "Run a failed stage once more in the foreground, under a debugger.",
        "stack": "Show the stacks of a running attempt: where its threads and tasks stand, while it continues.",
    },
    "Operate": {
        "hold": "Hold jobs until they are released.",
        "holds": "List the active holds, the oldest first.",
        "release": "Release held jobs: single ones, or all that a hold covers.",
        "queues": "List the queues with their limits, default types, nodes and jobs.",
        "queue": "Show a queue, or change its settings.",
        "locks": "List the locks that jobs have or wait for.",
        "lock": "Show a lock, or set its capacity.",
        "unlock": "Free a lock from the job that has it, so that the next job gets it.",
        "rehome": "Let jobs whose host is lost continue on other hosts, with empty folders.",
        "schedule": "Manage schedules, which submit jobs by a cron expression or at an interval.",
        "inbox": "Manage inboxes: folders where dropped files become jobs.",
        "bridges": "List bridges to other systems: how far behind each is, and its last trouble.",
        "bridge": "Compare a bridge's two sides.",
        "webhook": "Manage webhooks, which report settled jobs and batches to other services.",
        "audit": "Show the audit log of operators' actions, the latest last, and its head.",
    },
    "Store and nodes": {
        "init": "Create the store and its folder root, or upgrade an existing store.",
        "up": "Create the store if there is none, and run a node and a server on it until SIGTERM.",
        "serve": "Run a server with the API and the web pages until SIGTERM.",
        "node": "Run a node, which takes jobs from the store and runs their stages, until SIGTERM.",
        "nodes": "List the nodes with their state, slots, load and queues, and which of them is the leader.",
        "drain": "Stop a node from taking new jobs, until 'resume'.",
        "resume": "Let a drained node take new jobs again.",
        "slots": "Set how many slots a node has, now and whenever it starts again.",
        "keep": "Show or set how long settled jobs are kept (default: for ever).",
        "user": "Manage the users of a server: roles, limits, passwords.",
        "token": "Create, list and revoke API tokens.",
        "doctor": "Check the store and its folders for inconsistencies, and say what to do about each.",
        "store": "Copy a whole store to another database.",
    },
}
"""The headings in the order of the help; below each, its commands with their summaries, the first sentences of their
own help."""
_COMMANDS_OF: Mapping[str, str] = {
    "cli.serve": "up serve",
    "cli.setup": "init node",
    "features.accounts.cli": "user token",
    "features.audit.cli": "audit",
    "features.bridges.cli": "bridges bridge",
    "features.collections.cli": "relabel",
    "features.copies.cli": "store",
    "features.debug.cli": "debug",
    "features.doctor.cli": "doctor",
    "features.explain.cli": "explain",
    "features.failures.cli": "failures",
    "features.files.cli": "files",
    "features.files.logs_cli": "logs",
    "features.holds.cli": "hold holds release",
    "features.homes.cli": "rehome",
    "features.inboxes.cli": "inbox",
    "features.jobs.actions_cli": "retry rerun run-now cancel move priority delete",
    "features.jobs.cli": "list show tree",
    "features.locks.cli": "locks lock unlock",
    "features.nodes.cli": "nodes drain resume slots",
    "features.postmortem.cli": "postmortem",
    "features.queues.cli": "queues queue",
    "features.retention.cli": "keep",
    "features.schedules.cli": "schedule",
    "features.stacks.cli": "stack",
    "features.stats.cli": "stats",
    "features.stats.top": "top",
    "features.submission.cli": "submit",
    "features.submission.wait_cli": "wait",
    "features.webhooks.cli": "webhook",
}
"""The modules that have the commands, relative to ``spinney``, each with the names of its commands."""
COMMAND_MODULES: Mapping[str, str] = {
    name: module for module, commands in _COMMANDS_OF.items() for name in commands.split()
}
"""The module of each command."""
SUMMARIES: Mapping[str, str] = {
    name: summary for commands in HEADINGS.values() for name, summary in commands.items()
}
"""The summary of each command, in the order in which they are shown."""
LOCAL_COMMANDS = frozenset({"init", "up", "serve", "node", "store"})
"""Commands that need the store itself, and no server does; three of them run people's own code."""
