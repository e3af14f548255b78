"""The options that select jobs, for ``list`` and every verb on many jobs, declared once.

Their values become fields of ``JobFilter``, so that the command line and the API understand a filter in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.states import State
from spinney.model.values.hints import did_you_mean
from spinney.model.values.times import now_us, parse_time
from spinney.terminal import completion
from spinney.terminal.options.arguments import option
from spinney.terminal.options.option_groups import given_options

MESSAGE_MAX = 2_000
"""The longest text, in characters, that a message is searched for; no message of a job is longer."""


def _state(name: str) -> State:
    names = [str(state) for state in State]
    if name not in names:
        raise UsageError(
            f"there is no state {name!r}{did_you_mean(name, names)}; use one of: {', '.join(names)}"
        )
    return State(name)


def _time(where: str) -> Callable[[str], int]:
    """Return the parser of an option whose value is an age or a time."""
    return lambda text: parse_time(text, now_us(), where=where)


def _message(text: str) -> str:
    if not 0 < len(text) <= MESSAGE_MAX:
        raise UsageError(
            f"--message needs a text of 1 to {MESSAGE_MAX:,} characters that the message contains"
        )
    return text


def _job(help_: str, *names: str) -> Any:
    return option(*names, metavar="JOB", min=1, max=JOB_ID_MAX, help_=help_)


def _age(help_: str, *names: str) -> Any:
    return option(*names, metavar="AGE", parser=_time(" or ".join(names)), help_=help_)


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """The options of a filter, named as the fields of ``JobFilter``; a job must match all of them."""

    state: Annotated[
        list[State] | None,
        option(
            parser=_state,
            metavar="STATE",
            help_="Only jobs in this state; may be repeated.",
            complete=completion.states,
        ),
    ] = None
    type: Annotated[str | None, option(help_="Only jobs of this type.", complete=completion.types)] = None
    queue: Annotated[
        str | None,
        option("--queue", "--in-queue", help_="Only jobs in this queue.", complete=completion.queues),
    ] = None
    stage: Annotated[
        str | None,
        option(help_="Only jobs whose current or next stage this is.", complete=completion.stages),
    ] = None
    collection: Annotated[
        str | None, option(help_="Only jobs of this collection.", complete=completion.collections)
    ] = None
    submitter: Annotated[
        str | None, option(help_="Only jobs of this submitter.", complete=completion.submitters)
    ] = None
    node: Annotated[
        str | None, option(help_="Only jobs that this node runs or ran last.", complete=completion.nodes)
    ] = None
    root: Annotated[int | None, _job("Only this job and all jobs below it.", "--root", "--batch")] = None
    parent: Annotated[int | None, _job("Only direct subjobs of this job.")] = None
    roots: Annotated[bool, typer.Option("--roots", help="Only jobs at the top of a tree.")] = False
    created_before: Annotated[
        int | None,
        _age(
            "Only jobs submitted longer ago than this (3d), or before a time (2030-01-31T08:00).",
            "--older-than",
        ),
    ] = None
    created_after: Annotated[
        int | None,
        _age(
            "Only jobs submitted within this time (2h), or since a time (2030-01-31T08:00).",
            "--newer-than",
            "--since",
        ),
    ] = None
    settled_before: Annotated[
        int | None,
        _age(
            "Only jobs that settled longer ago than this (2h), or before a time (2030-01-31T08:00).",
            "--settled-before",
        ),
    ] = None
    message: Annotated[
        str | None,
        option(metavar="TEXT", parser=_message, help_="Only jobs whose message contains this text."),
    ] = None
    failure: Annotated[
        str | None,
        option(
            metavar="FINGERPRINT",
            complete=completion.failures,
            help_="Only failed jobs with this failure ('spinney failures' lists them).",
        ),
    ] = None

    @property
    def has_any(self) -> bool:
        """Return whether any of the filter's options was named on the command line."""
        return bool(self.filter_fields())

    def filter_fields(self) -> dict[str, Any]:
        """Return the options that were given as fields of a ``JobFilter``; those that were not are left out."""
        return given_options(self, FilterOptions)
