"""The command ``failures``: failed jobs, grouped by cause."""

from collections.abc import Sequence
from typing import Annotated

import typer

from spinney.model.rights.operators import FailureGroups
from spinney.terminal import completion, display
from spinney.terminal.arguments import JsonOption, StoreOption
from spinney.terminal.connection import open_commands

SHOWN_DIGITS = 8
"""Of a fingerprint; more where two of them begin alike."""


def add_to(app: typer.Typer) -> None:
    app.command()(failures)


def failures(
    type_: Annotated[
        str | None,
        typer.Option(
            "--type", help="Only jobs of this type.", show_default=False, autocompletion=completion.types
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many causes.")] = 100,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List failed jobs grouped by cause, the most frequent cause first."""
    from spinney.features.failures.commands import ListFailures

    with open_commands(store) as performer:
        found = performer.do(ListFailures(type=type_, limit=limit))
    if json:
        display.print_json_lines(found.groups)
        return
    for line in _heading(found):
        typer.echo(line)
    if found.groups:
        digits = unique_prefix_length([f.fingerprint for f in found.groups])
        display.print_table(
            ("FAILURE", "JOBS", "TYPE", "STAGE", "EXCEPTION", "MESSAGE", "FIRST", "LAST"),
            (
                (
                    f.fingerprint[:digits],
                    f"{f.jobs:,}",
                    f.type,
                    f.stage,
                    f.exception,
                    f.message,
                    display.format_time(f.first_us),
                    display.format_time(f.last_us),
                )
                for f in found.groups
            ),
        )
        first = found.groups[0].fingerprint[:digits]
        typer.echo(f"'spinney retry --failure {first}' retries the jobs with this cause, once it is fixed")


def _heading(found: FailureGroups) -> list[str]:
    lines = [f"{_counted(found.jobs, 'failure')}, {_counted(found.causes, 'cause')}"]
    if found.consequences:
        others = "1 more job" if found.consequences == 1 else f"{found.consequences:,} more jobs"
        lines.append(f"{others} failed because a subjob or a needed job failed")
    if found.causes > len(found.groups):
        n = len(found.groups)
        shown = "only the most frequent is" if n == 1 else f"the {n:,} most frequent are"
        lines.append(f"{shown} shown; --limit shows more")
    return lines


def _counted(n: int, what: str) -> str:
    return f"1 {what}" if n == 1 else f"{n:,} {what}s"


def unique_prefix_length(marks: Sequence[str]) -> int:
    """So many that no two of those shown begin alike."""
    return next(
        n for n in range(SHOWN_DIGITS, len(marks[0]) + 1) if len({m[:n] for m in marks}) == len(marks)
    )
