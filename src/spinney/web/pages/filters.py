"""The filters of a list of jobs, which are in the page's address under the names that the API has for them.

An invalid filter is reported at its field, and nothing is listed: a typing error must not show all jobs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from spinney.commands.control import Control
from spinney.model.errors import UsageError
from spinney.model.jobs import Filter, job_number
from spinney.model.states import State
from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.times import parse_time

TEXTS = ("type", "queue", "stage", "collection", "submitter", "node", "message")
NUMBERS = ("root", "parent")
AGES = ("created_after", "created_before")
NAMES = ("state", *TEXTS, *NUMBERS, *AGES, "failure", "roots")
"""The names of all filters."""
TEXT_MAX = 2_000
"""The most characters of a text."""
FINGERPRINT = 16
"""The digits of a failure's fingerprint; fewer are a prefix."""
WATCHED = ("state", *TEXTS, *NUMBERS)
"""What a list that is watched may be filtered by (``spinney.web.events.topics``)."""
_DEAR = ("message", "node", "stage", "failure", "roots", *AGES)
"""With one of these, counts by state may take longer than a page has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterQuery:
    """The filters of the list of jobs in an address: as they were written, and as a ``Filter``."""

    values: Mapping[str, tuple[str, ...]]
    """The values by name, without empty ones."""
    job_filter: Filter
    """The filter that the valid values make; those of ``errors`` are left out of it."""
    errors: Mapping[str, str]
    """Why values are invalid, by name."""

    @property
    def any(self) -> bool:
        """Return whether the address has any filter, valid or not."""
        return bool(self.values)

    @property
    def api_values(self) -> Mapping[str, Any]:
        """Return the values as the API takes them, with times in place of ages."""
        times = {name: getattr(self.job_filter, f"{name}_us") for name in AGES if name in self.values}
        return {**self.values, **times}

    @property
    def countable(self) -> bool:
        """Return whether counting the jobs by state is cheap with these filters."""
        return not any(name in self.values for name in _DEAR)

    @property
    def topic(self) -> str:
        """Return the topic that reports changes of the list: that of the filtered jobs, or ``jobs`` where the filters
        cannot be watched."""
        if not self.values or any(name not in WATCHED for name in self.values):
            return "jobs"
        return f"jobs:{self.query()}"

    def value(self, name: str) -> str:
        """Return the first value of this filter; empty if there is none."""
        return next(iter(self.values.get(name, ())), "")

    def pairs(self, *, without: Iterable[str] = ()) -> list[tuple[str, str]]:
        """Return names and values, for hidden fields of a form."""
        left_out = set(without)
        return [
            (name, value) for name, values in self.values.items() for value in values if name not in left_out
        ]

    def query(self, *, without: Iterable[str] = (), **more: str | Sequence[str] | int) -> str:
        """Return a query string for a link, ``without`` some filters and with ``more`` in place of others."""
        pairs = self.pairs(without=(*without, *more))
        for name, value in more.items():
            pairs += (
                [(name, item) for item in value] if isinstance(value, list | tuple) else [(name, str(value))]
            )
        return urlencode(pairs)

    def address(self, path: str, /, **more: str | int) -> str:
        """Return the address of the list at ``path`` with these filters, with ``more`` in place of others."""
        query = self.query(without=(), **more)
        return f"{path}?{query}" if query else path

    def resolve(self, control: Control) -> Filter:
        """Return the filter for the store. Raises Refused and UsageError when no failure, or more than one, has this
        prefix."""
        failure = self.value("failure")
        if not failure:
            return self.job_filter
        return replace(self.job_filter, fingerprint=control.queries.fingerprint(failure))


def parse_filters(
    pairs: Iterable[tuple[str, str]], now_us: int, *, beside: Sequence[str] = ()
) -> FilterQuery:
    """Return the filters in the pairs of a query or form; those named ``beside`` are no filters. Several states may be
    in one value, with commas between them, as in the field of the form."""
    values: dict[str, tuple[str, ...]] = {}
    errors: dict[str, str] = {}
    for name, value in pairs:
        if name in beside or not value.strip():
            continue
        if name not in NAMES:
            errors[name] = (
                f"there is no filter {name[:60]!r}{did_you_mean(name, NAMES)}; use one of: {listed(NAMES)}"
            )
            continue
        if name == "state":
            values[name] = (*values.get(name, ()), *(state.strip() for state in value.split(",")))
        else:
            values[name] = (value.strip(),)
    return FilterQuery(values=values, job_filter=_filter(values, now_us, errors), errors=errors)


def _filter(values: Mapping[str, tuple[str, ...]], now_us: int, errors: dict[str, str]) -> Filter:
    """Return the filter of the valid values, and add the reasons why others are invalid to ``errors``."""
    texts: dict[str, str] = {}
    for name in TEXTS:
        for text in values.get(name, ()):
            if len(text) > TEXT_MAX or not text.isprintable():
                errors[name] = f"the value has unprintable characters, or more than {TEXT_MAX:,}; correct it"
            else:
                texts[name] = text
    numbers = {name: _number(name, values, errors) for name in NUMBERS}
    moments = {name: _moment(name, values, now_us, errors) for name in AGES}
    return Filter(
        states=_states(values.get("state", ()), errors),
        roots_only="roots" in values,
        root_id=numbers["root"],
        parent_id=numbers["parent"],
        created_after_us=moments["created_after"],
        created_before_us=moments["created_before"],
        **texts,  # type: ignore[arg-type]
    )


def _states(names: Sequence[str], errors: dict[str, str]) -> tuple[State, ...] | None:
    """Return the states, each once; None for none, and for an unknown one, whose error is added."""
    states = [str(state) for state in State]
    for name in names:
        if name not in states:
            errors["state"] = (
                f"there is no state {name[:40]!r}{did_you_mean(name, states)}; use one of: {listed(states)}"
            )
            return None
    return tuple(State(name) for name in dict.fromkeys(names)) or None


def _number(name: str, values: Mapping[str, tuple[str, ...]], errors: dict[str, str]) -> int | None:
    """Return the number of a job, with or without ``#``; None without a value, and for an invalid one, whose
    error is added."""
    for text in values.get(name, ()):
        if number := job_number(text.removeprefix("#")):
            return number
        errors[name] = f"{text[:40]!r} is no job's number; write it as 17"
    return None


def _moment(
    name: str, values: Mapping[str, tuple[str, ...]], now_us: int, errors: dict[str, str]
) -> int | None:
    """Return a time in microseconds since 1970, from an age or a time; None without a value, and for an
    invalid one, whose error is added."""
    for text in values.get(name, ()):
        try:
            return parse_time(text, now_us)
        except UsageError as error:
            errors[name] = str(error)
    return None
