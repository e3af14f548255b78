"""The command ``failures``: failed jobs, grouped by cause."""

from collections.abc import Sequence

import typer

from spinney.features.failures.commands import ListFailures
from spinney.model.attempts.failure_groups import FailureGroups
from spinney.model.values.texts import counted
from spinney.terminal import completion
from spinney.terminal.commands import command
from spinney.terminal.options.arguments import JsonOption, option
from spinney.terminal.output import display

SHOWN_DIGITS = 8
"""How many digits of a fingerprint are shown; more where two of the shown ones begin alike."""


app = typer.Typer()


@command(app, ListFailures, "failures", type=option(complete=completion.types))
def failures(groups: FailureGroups, *, json: JsonOption = False) -> None:
    """List failed jobs grouped by cause, the most frequent cause first."""
    if json:
        display.print_json_lines(groups.items)
        return
    for line in _heading(groups):
        typer.echo(line)
    if groups.items:
        digits = unique_prefix_length([f.fingerprint for f in groups.items])
        display.print_list(
            groups.items,
            {
                "FAILURE": lambda failure: failure.fingerprint[:digits],
                "JOBS": lambda failure: f"{failure.jobs:,}",
                "TYPE": lambda failure: failure.type,
                "STAGE": lambda failure: failure.stage,
                "EXCEPTION": lambda failure: failure.exception,
                "MESSAGE": lambda failure: failure.message,
                "FIRST": lambda failure: display.format_time(failure.first_us),
                "LAST": lambda failure: display.format_time(failure.last_us),
            },
            json=False,
        )
        first = groups.items[0].fingerprint[:digits]
        typer.echo(f"'spinney retry --failure {first}' retries the jobs with this cause, once it is fixed")


def _heading(groups: FailureGroups) -> list[str]:
    """Return the lines above the table: how many jobs and causes there are, consequences, and what is not
    shown."""
    lines = [f"{counted(groups.jobs, 'failure')}, {counted(groups.causes, 'cause')}"]
    if groups.consequences:
        others = counted(groups.consequences, "more job")
        lines.append(f"{others} failed because a subjob or a needed job failed")
    if groups.causes > len(groups.items):
        n = len(groups.items)
        shown = "only the most frequent is" if n == 1 else f"the {n:,} most frequent are"
        lines.append(f"{shown} shown; --limit shows more")
    return lines


def unique_prefix_length(fingerprints: Sequence[str]) -> int:
    """Return how many digits tell these fingerprints apart, at least ``SHOWN_DIGITS``. They must be distinct,
    and not empty."""
    return next(
        n
        for n in range(SHOWN_DIGITS, len(fingerprints[0]) + 1)
        if len({fingerprint[:n] for fingerprint in fingerprints}) == len(fingerprints)
    )
