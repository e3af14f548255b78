"""Deposit files into a digital library: submit manifests, watch, repair, report.

These are the commands of ``spinney ingest``, a module for each group; the entry point ``ingest`` of the group
``spinney.commands`` names this package.

``session``   where a command runs: on a local store, or through a server; commands made from verbs
``deposits``  ``submit`` and ``check``
``views``     ``status``, ``batches``, ``objects``, ``object``, ``find``, ``profiles``, ``report``
``changes``   ``requeue``, ``delete``, ``sweep``, ``hold``, ``release``, ``pause``, ``unpause``, ``init``
``access``    ``fetch``, ``manifest``, ``token``, ``fixity``

A command is made from a verb (``spinney.apps.ingest.verbs``), which ``session`` runs on a local store or sends to a
server, with the same answer; a module here only says how the answer looks. Errors, exit codes and tables are those of
``spinney.command_line``.

Specified by ``tests/apps/ingest/cli``; ``tests/apps/ingest/cli/test_docs.py`` compares the commands with
``docs/cli.md``.
"""

import typer

from spinney.apps.ingest.cli import access, changes, deposits, views

app = typer.Typer(
    help="Deposit files into a digital library: submit manifests, watch, repair, report.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (deposits, views, changes, access):
    app.add_typer(group.app)

__all__ = ["app"]
