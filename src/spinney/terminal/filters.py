"""The options that select jobs, for ``list`` and every verb on many jobs, declared once.

Their values become fields of ``JobFilter``, so that the command line and the API understand a filter in the same way.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.states import State
from spinney.model.values.hints import did_you_mean
from spinney.model.values.times import parse_time
from spinney.terminal import completion
from spinney.terminal.arguments import option
from spinney.terminal.connection import now_us

MESSAGE_MAX = 2_000
"""The longest text, in characters, that a message is searched for; no message of a job is longer."""


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """The options of a filter as they were given; a job must match all of them."""

    state: Annotated[
        list[str] | None,
        option("--state", help_="Only jobs in this state; may be repeated.", complete=completion.states),
    ] = None
    type_: Annotated[
        str | None,
        option("--type", help_="Only jobs of this type.", complete=completion.types),
    ] = None
    queue: Annotated[
        str | None,
        option("--queue", "--in-queue", help_="Only jobs in this queue.", complete=completion.queues),
    ] = None
    stage: Annotated[
        str | None,
        option("--stage", help_="Only jobs whose current or next stage this is.", complete=completion.stages),
    ] = None
    collection: Annotated[
        str | None,
        option("--collection", help_="Only jobs of this collection.", complete=completion.collections),
    ] = None
    submitter: Annotated[
        str | None,
        option("--submitter", help_="Only jobs of this submitter.", complete=completion.submitters),
    ] = None
    node: Annotated[
        str | None,
        option("--node", help_="Only jobs that this node runs or ran last.", complete=completion.nodes),
    ] = None
    root: Annotated[
        int | None,
        option(
            "--root",
            "--batch",
            metavar="JOB",
            min=1,
            max=JOB_ID_MAX,
            help_="Only this job and all jobs below it.",
        ),
    ] = None
    parent: Annotated[
        int | None,
        option("--parent", metavar="JOB", min=1, max=JOB_ID_MAX, help_="Only direct subjobs of this job."),
    ] = None
    roots: Annotated[bool, typer.Option("--roots", help="Only jobs at the top of a tree.")] = False
    older_than: Annotated[
        str | None,
        option(
            "--older-than",
            metavar="AGE",
            help_="Only jobs submitted longer ago than this (3d), or before a time (2030-01-31T08:00).",
        ),
    ] = None
    newer_than: Annotated[
        str | None,
        option(
            "--newer-than",
            "--since",
            metavar="AGE",
            help_="Only jobs submitted within this time (2h), or since a time (2030-01-31T08:00).",
        ),
    ] = None
    settled_before: Annotated[
        str | None,
        option(
            "--settled-before",
            metavar="AGE",
            help_="Only jobs that settled longer ago than this (2h), or before a time (2030-01-31T08:00).",
        ),
    ] = None
    message: Annotated[
        str | None,
        option("--message", metavar="TEXT", help_="Only jobs whose message contains this text."),
    ] = None
    failure: Annotated[
        str | None,
        option(
            "--failure",
            metavar="FINGERPRINT",
            complete=completion.failures,
            help_="Only failed jobs with this failure ('spinney failures' lists them).",
        ),
    ] = None

    @property
    def has_any(self) -> bool:
        """Return whether any of the filter's options was named on the command line."""
        return any(getattr(self, f.name) not in (None, False, []) for f in fields(FilterOptions))

    def filter_fields(self) -> dict[str, Any]:
        """Return the options that were given as fields of a ``JobFilter``; those that were not are left out.

        Ages become times, in microseconds since 1970 UTC. States are each named once, in the order of the
        line. Raises UsageError for a state that does not exist, an age or time that cannot be read, and a
        text that is empty or too long.
        """
        same = ("queue", "stage", "collection", "submitter", "node", "root", "parent", "failure")
        values = {name: getattr(self, name) for name in same} | {
            "state": _states(self.state),
            "type": self.type_,
            "roots": self.roots or None,
            "created_before": _ago(self.older_than, "--older-than"),
            "created_after": _ago(self.newer_than, "--newer-than or --since"),
            "settled_before": _ago(self.settled_before, "--settled-before"),
            "message": _text(self.message),
        }
        return {name: value for name, value in values.items() if value is not None}


def _states(names: list[str] | None) -> list[State] | None:
    if not names:
        return None
    state_names = [str(state) for state in State]
    for name in names:
        if name not in state_names:
            raise UsageError(
                f"there is no state {name!r}{did_you_mean(name, state_names)}; use one of: {', '.join(state_names)}"
            )
    return list(dict.fromkeys(map(State, names)))


def _ago(text: str | None, option: str) -> int | None:
    return None if text is None else parse_time(text, now_us(), where=option)


def _text(text: str | None) -> str | None:
    if text is not None and not 0 < len(text) <= MESSAGE_MAX:
        raise UsageError(
            f"--message needs a text of 1 to {MESSAGE_MAX:,} characters that the message contains"
        )
    return text
