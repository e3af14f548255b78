"""Deposit files into a digital library: submit manifests, watch, repair, report.

These are the commands of ``spinney ingest``, a module for each group; the entry point ``ingest`` of the group
``spinney.commands`` names this package. A command is made from a verb (``commands``), which ``session`` runs on a local
store or sends to a server; errors, exit codes and tables are those of ``spinney.command_line``.
"""

import typer

from spinney.apps.ingest.cli import access, deposits, holds, repairs, reports, setup, views

app = typer.Typer(
    help="Deposit files into a digital library: submit manifests, watch, repair, report.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (deposits, views, reports, repairs, holds, setup, access):
    app.add_typer(group.app)

__all__ = ["app"]
