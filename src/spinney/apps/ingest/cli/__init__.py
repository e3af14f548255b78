"""``spinney ingest``: one module a group of commands, bound together here.

They are found by the entry point ``ingest`` of the group ``spinney.commands``. Nothing here holds a rule of its own:
verbs are in ``staff``; errors, exit codes and tables are those of ``spinney.cli``.
"""

import typer

from spinney.apps.ingest.cli import access, deposits, holds, repairs, reports, setup, views

app = typer.Typer(
    help="Deposits into a digital library: hand in, look, mend, report.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (deposits, views, reports, repairs, holds, setup, access):
    group.add_to(app)

__all__ = ["app"]
