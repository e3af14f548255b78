"""The command ``store copy``: copy a whole store to another database."""

from hashlib import sha256
from typing import Annotated

import typer

from spinney.folders.folders import check_token
from spinney.model.errors import StoreUnusable, UsageError
from spinney.model.values.store_urls import without_password
from spinney.terminal.connection import open_local_store, resolve_settings
from spinney.terminal.options.arguments import JsonOption, argument, command_group
from spinney.terminal.output import display
from spinney.terminal.output.progress_line import ProgressLine

SHOWN_DIGITS = 16
"""How many digits of a table's digest are printed; ``--json`` has all."""

app = typer.Typer()
store = command_group(app, "store")


@store.command()
def copy(
    source: Annotated[
        str,
        argument("FROM", "The URL of the store to copy; no node may run on it."),
    ],
    target: Annotated[
        str,
        argument("TO", "The URL of an empty database."),
    ],
    json: JsonOption = False,
) -> None:
    """Copy a whole store, for example from SQLite to PostgreSQL or back.

    Everything is copied as it is: jobs with their numbers, trees, holds, schedules, the audit log with its heads. A
    digest of every table is compared in both places. The folder root stays where it is and serves the new store. FROM
    is only read, and TO becomes a store only when everything has been copied.
    """
    from spinney.features.copies.sql import copy_store

    for url in (source, target):
        if "://" not in url:
            raise UsageError(
                f"{url!r} is not the URL of a store; write it as sqlite:///{url or 'spinney.db'}"
            )
    progress = ProgressLine()
    try:
        tables = copy_store(
            source,
            target,
            on_progress=lambda action, rows, total: progress.show(f"{action} {rows:,} of {total:,}"),
        )
    finally:
        progress.end()
    whole = sha256(
        "".join(f"{table.table} {table.rows} {table.digest}\n" for table in tables).encode()
    ).hexdigest()
    if json:
        display.print_json(
            {
                "from": without_password(source),
                "to": without_password(target),
                "digest": whole,
                "tables": list(tables),
            }
        )
        return
    display.print_table(
        ("TABLE", "ROWS", "DIGEST"), [(t.table, f"{t.rows:,}", t.digest[:SHOWN_DIGITS]) for t in tables]
    )
    typer.echo(f"both stores are identical: {sum(table.rows for table in tables):,} rows, {whole}")
    typer.echo(
        f"From now on use {display.safe(without_password(target))} (store in spinney.toml, SPINNEY_STORE), with "
        f"{_folders(source, target)}. What starts or is submitted on the old store from now on is not in the new one."
    )


def _folders(source: str, target: str) -> str:
    """Return the words for the folders with which the new store has to be used, with their path if this host has them.

    The settings have to name that path from now on: without ``folders``, the root is beside the file of the store."""
    with open_local_store(target) as store:
        token = store.facts()["folder_token"]
    try:
        root = resolve_settings(source).folders
        check_token(root, token)
    except (UsageError, StoreUnusable):  # on another host, or each host has its own
        return "the same folders"
    return f"the same folders (folders = {_toml_string(str(root))} in [spinney] of spinney.toml)"


def _toml_string(text: str) -> str:
    """Return a text as a string of TOML. What is not printable is escaped, so that it can be copied from a terminal."""
    escaped = (
        c if c.isprintable() else f"\\U{ord(c):08x}" for c in text.replace("\\", r"\\").replace('"', r"\"")
    )
    return f'"{"".join(escaped)}"'
