"""The options of a submission, beside the parameters. An option that is None is inherited.

Code writes them as ``kind.options(…)``. They are checked in one place, when an ``Options`` is made, so that a
wrong value is refused with the same sentence wherever it comes from."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

from spinney.define.job.data import data_name
from spinney.define.params.values import finite_text
from spinney.model.errors import BadParameters, UsageError
from spinney.model.submission import DATA_MAX_BYTES, JOB_ID_MAX, PARAMS_MAX_BYTES, Submission, check_option
from spinney.model.values import names
from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.times import EPOCH, to_us
from spinney.tracing import current

_LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Somewhat before the end of the calendar, so that every zone can show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a submission. They are checked at their creation, so that a wrong one is refused where it is
    written."""

    queue: str | None = None
    """The queue of the job, for all its stages."""
    priority: int | None = None
    """The job's priority, 0 (first) to 99 (last); by default the parent's, or the type's."""
    share: str | None = None
    """The share that the job counts against when slots are distributed."""
    collection: str | None = None
    """The collection that the job belongs to, for rights, lists and holds."""
    submitter: str | None = None
    """The user in whose name the job is created."""
    key: str | None = None
    """At most one unsettled job has a key; below one parent, the same key means the same child."""
    forever: bool = False
    """The key remains taken until the job is deleted, not only until it settles."""
    at: datetime | None = None
    """The job does not start before this time, which must have a time zone."""
    needs: Sequence[int] = ()
    """The ids of jobs that must complete first."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The initial ``job.data``."""

    def __post_init__(self) -> None:
        for option in ("queue", "collection", "share", "submitter", "key", "priority"):
            value = getattr(self, option)
            if value is not None:
                check_option(option, value)
        _check_at(self.at)
        _check_needs(self.needs)
        _data_texts(self.data)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Options":
        """Make options from a mapping. Raises UsageError, which names an unknown option."""
        return cls().changed(options)

    def changed(self, options: Mapping[str, Any]) -> "Options":
        """Return these options with some replaced. Raises UsageError, which names an unknown option."""
        names = [f.name for f in fields(self)]
        unknown = next((name for name in options if name not in names), None)
        if unknown is not None:
            hint = did_you_mean(unknown, names)
            raise UsageError(f"there is no option {unknown!r} for a job{hint}; use one of: {listed(names)}")
        return replace(self, **options)

    def submission(self, type_: str, texts: Sequence[str], keys: Iterable[str] | None = None) -> Submission:
        """Return the submission of jobs with these parameter texts; ``keys`` has a key for each of them.

        Raises BadParameters when parameters are too long for a store.
        """
        _check_lengths(type_, texts)
        return Submission(
            type=type_,
            params=texts,
            queue=self.queue,
            priority=self.priority,
            share=self.share,
            collection=self.collection,
            submitter=self.submitter,
            keys=self.checked_keys(len(texts), keys),
            forever=self.forever,
            at_us=None if self.at is None else to_us(self.at),
            needs=tuple(self.needs),
            data=_data_texts(self.data) if self.data else {},
            trace=current.traceparent(),
        )

    def checked_keys(self, jobs: int, keys: Iterable[str] | None) -> Sequence[str] | None:
        """Return the keys of this number of jobs: one for each, or None. Raises UsageError when they do not fit."""
        if keys is None:
            if self.key is None:
                if self.forever:
                    raise UsageError("forever says how long a key is taken; give a key, or leave it out")
                return None
            if jobs != 1:
                raise UsageError(f"one key cannot serve {jobs} jobs; give keys=[...] with one for each job")
            return [self.key]
        if self.key is not None:
            raise UsageError("give either the option key or keys=[...] with one for each job, not both")
        labels = [names.label("key", key) for key in keys]
        if len(labels) != jobs:
            raise UsageError(f"there are {len(labels)} keys for {jobs} jobs; give one for each job")
        return labels


def to_json(submission: Submission) -> dict[str, Any]:
    """Return the submission as JSON values, without unset fields, as a worker sends it."""
    row = {f.name: getattr(submission, f.name) for f in fields(submission)}
    return {name: value for name, value in row.items() if name == "params" or not _is_unset(value)}


def _is_unset(value: Any) -> bool:
    """Return whether an option is not set: its value is None, False or empty. A priority of 0 is set."""
    return value is None or value is False or value in ((), {})


def from_json(row: Mapping[str, Any]) -> Submission:
    """Return the submission of a row made by ``to_json``."""
    return Submission(**{**row, "needs": tuple(row.get("needs", ()))})


def _check_at(at: datetime | None) -> None:
    """Raise UsageError unless it is a time with a zone that every calendar has."""
    if at is None:
        return
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise UsageError(
            f"at must be a datetime with a time zone, not {at!r}; "
            f"for example datetime(2030, 1, 31, 8, tzinfo=UTC)"
        )
    if not EPOCH <= at < _LATEST:
        raise UsageError(
            f"at must lie in the years {EPOCH.year} to {_LATEST.year - 1}, not at {at.isoformat()}"
        )


def _check_needs(needs: Sequence[int]) -> None:
    """Raise UsageError unless it is a list of job ids. Whether there are such jobs, the store says."""
    is_list = isinstance(needs, Collection) and not isinstance(needs, str | bytes | Mapping)
    if not is_list or not all(type(need) is int and 1 <= need <= JOB_ID_MAX for need in needs):
        raise UsageError(
            f"needs must be a list of job ids (1 to {JOB_ID_MAX}), as submit and spawn return them, not {needs!r}"
        )


def _check_lengths(type_: str, texts: Sequence[str]) -> None:
    """Raise BadParameters when the parameters of a job are longer than a store keeps, with the number of the
    job."""
    for number, text in enumerate(texts, 1):
        # A character has at most four bytes: only what may be too long is counted in bytes.
        if len(text) * 4 > PARAMS_MAX_BYTES and len(text.encode()) > PARAMS_MAX_BYTES:
            place = f" (job {number} of the list)" if len(texts) > 1 else ""
            raise BadParameters(  # the message quotes none of them, because there may be a secret among them
                f"the parameters of a {type_!r} job{place} are "
                f"{len(text.encode())} bytes long as JSON, the most is {PARAMS_MAX_BYTES}; put larger things into a "
                f"file and submit its path"
            )


def _data_texts(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the entries as JSON texts, checked by the rules of ``job.data``."""
    if not isinstance(data, Mapping):
        # The value is left out: the rest of a secret that is cut off could not be recognised and redacted.
        kind = type(data).__name__
        raise UsageError(f'data must map names to values, for example data={{"tries": 3}}, and is no {kind}')
    texts = {data_name(name): finite_text(value, f"data[{name!r}]") for name, value in data.items()}
    for name, text in texts.items():
        if len(text.encode()) > DATA_MAX_BYTES:
            raise BadParameters(
                f"data[{name!r}] is {len(text.encode())} bytes long as JSON, the most is {DATA_MAX_BYTES}; "
                f"put it into a file and submit its path"
            )
    return texts
