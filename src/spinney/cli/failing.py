"""``failures``: what stands failed, grouped by its cause."""

from collections.abc import Sequence
from typing import Annotated

import typer

from spinney.cli import completing, showing
from spinney.cli.arguments import JsonOption, StoreOption
from spinney.cli.session import looking
from spinney.model.operators import FailureGroups

SHOWN_DIGITS = 8
"""Of a fingerprint; more where two of them begin alike."""


def add_to(app: typer.Typer) -> None:
    app.command()(failures)


def failures(
    type_: Annotated[
        str | None,
        typer.Option(
            "--type", help="Only of this job type.", show_default=False, autocompletion=completing.types
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many causes.")] = 100,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List why jobs stand failed, the most frequent cause first."""
    with looking(store) as look:
        if type_ is not None:
            look.type(type_)
        found = look.failures(type_, limit)
    if json:
        showing.lines(found.groups)
        return
    for line in _heading(found):
        typer.echo(line)
    if found.groups:
        digits = enough_digits([f.fingerprint for f in found.groups])
        showing.table(
            ("FAILURE", "JOBS", "TYPE", "STAGE", "EXCEPTION", "MESSAGE", "FIRST", "LAST"),
            (
                (
                    f.fingerprint[:digits],
                    f"{f.jobs:,}",
                    f.type,
                    f.stage,
                    f.exception,
                    f.message,
                    showing.moment(f.first_us),
                    showing.moment(f.last_us),
                )
                for f in found.groups
            ),
        )
        first = found.groups[0].fingerprint[:digits]
        typer.echo(f"'spinney retry --failure {first}' opens those of a cause again, when it is mended")


def _heading(found: FailureGroups) -> list[str]:
    lines = [f"{_counted(found.jobs, 'failure')}, {_counted(found.causes, 'cause')}"]
    if found.consequences:
        others = "1 more job" if found.consequences == 1 else f"{found.consequences:,} more jobs"
        lines.append(f"{others} failed because of subjobs or of jobs that were needed")
    if found.causes > len(found.groups):
        n = len(found.groups)
        shown = "only the most frequent is" if n == 1 else f"the {n:,} most frequent are"
        lines.append(f"{shown} shown; --limit shows more")
    return lines


def _counted(n: int, what: str) -> str:
    return f"1 {what}" if n == 1 else f"{n:,} {what}s"


def enough_digits(marks: Sequence[str]) -> int:
    """So many that no two of those shown begin alike."""
    return next(
        n for n in range(SHOWN_DIGITS, len(marks[0]) + 1) if len({m[:n] for m in marks}) == len(marks)
    )
