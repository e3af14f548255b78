"""``store copy``: a whole store from one place to another."""

import sys
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.errors import UsageError
from spinney.model.values.paths import without_password
from spinney.terminal import display
from spinney.terminal.arguments import JsonOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.features.copies.service import CopiedTable

SHOWN_DIGITS = 16
_TELL_S = 0.5

group = typer.Typer(
    help="The store as a whole.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)


def add_to(app: typer.Typer) -> None:
    group.callback()(lambda: None)
    group.command("copy")(copy)
    app.add_typer(group, name="store")


def copy(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM", help="The URL of a store on which no node is left.", show_default=False
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TO", help="The URL of a place with nothing in it yet.", show_default=False),
    ],
    json: JsonOption = False,
) -> None:
    """Copy a whole store: from SQLite to PostgreSQL, back, or to another of its kind.

    Everything goes as it is: jobs with their numbers, trees, holds, schedules, the audit with its heads. Of every table
    a digest is taken in both places. The folder root stays where it is and serves the new store. FROM is only read,
    and TO is no store until all is there.
    """
    from spinney.features.copies.service import copy_store

    for url in (source, target):
        if "://" not in url:
            raise UsageError(f"{url!r} is no URL of a store; write it as sqlite:///{url or 'spinney.db'}")
    progress = _Progress()
    try:
        tables = copy_store(source, target, told=progress)
    finally:
        progress.end()
    whole = sha256(
        "".join(f"{each.table} {each.rows} {each.digest}\n" for each in tables).encode()
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
    typer.echo(f"the same in both places: {_rows(tables)}, {whole}")
    typer.echo(
        f"From now on use {display.safe(without_password(target))} (store in spinney.toml, SPINNEY_STORE), with the "
        f"same folders; whatever starts or submits at the old place from here on is not in the new one."
    )


def _rows(tables: "Sequence[CopiedTable]") -> str:
    return f"{sum(each.rows for each in tables):,} rows"


class _Progress:
    """A line on the terminal that is written over; nothing where there is no terminal."""

    def __init__(self) -> None:
        self._there = sys.stderr.isatty()
        self._next_s = time.monotonic() + _TELL_S

    def __call__(self, doing: str, rows: int, all_: int) -> None:
        if self._there and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _TELL_S
            typer.echo(f"\r{doing} {rows:,} of {all_:,}\033[K", nl=False, err=True)

    def end(self) -> None:
        if self._there:
            typer.echo("\r\033[K", nl=False, err=True)
