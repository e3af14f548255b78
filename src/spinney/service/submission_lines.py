"""Submissions as lines of JSON: each line is checked and becomes a job."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from spinney.define.job.options import Options
from spinney.define.params.schema import Check, checker
from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX, Submission
from spinney.model.types import TypeSpec, known_type


def submissions(
    lines: Iterable[str | bytes],
    types: Mapping[str, TypeSpec],
    type_: str | None,
    options: Options,
    default_type: Callable[[str], str],
) -> list[Submission]:
    """Return submissions for the jobs of these lines, in order; lines that differ in parameters alone share one.

    ``default_type`` returns the type of a queue, for lines that name no type; it raises UsageError.

    Raises UsageError (or a subclass) with the number of the line.
    """
    orders = _orders(lines, _Reader(types, type_, options, default_type))
    return [_submission(list(same)) for _, same in groupby(orders, key=_alike)]


class _Line(NamedTuple):
    """One job as its line describes it."""

    type: str
    text: str
    options: Options
    key: str | None
    needs: tuple[int, ...]


class _Reader:
    """Turns parsed lines into jobs. Lines with the same options share one object."""

    def __init__(
        self,
        types: Mapping[str, TypeSpec],
        type_: str | None,
        options: Options,
        default_type: Callable[[str], str],
    ) -> None:
        self._types, self._type, self._options = types, type_, options
        self._default_type = cache(default_type)
        self._checks: dict[str, Check] = {}
        self._options_of: dict[bytes, Options] = {}

    def read(self, value: Any) -> _Line:
        """Return the job that a parsed line describes. Raises UsageError, or a subclass, for one that cannot be
        meant."""
        if self._type is not None:
            return self._line(self._type, value, self._options, None, ())
        if not isinstance(value, dict) or not isinstance(value.get("type", ""), str):
            raise UsageError('write {"type": "…", "params": {…}}, or name one type for all lines')
        rest = {k: v for k, v in value.items() if k not in ("type", "params", "key", "needs")}
        options = self._changed(rest) if rest else self._options
        key = value.get("key")
        options.checked_keys(1, None if key is None else [key])
        type_ = value.get("type") or self._of_queue(options.queue)
        return self._line(type_, value.get("params", {}), options, key, _needs(value.get("needs", [])))

    def _of_queue(self, queue: str | None) -> str:
        if queue is None:
            raise UsageError(
                'write {"type": "…", "params": {…}}, or {"queue": "…", "params": {…}} for a queue with a default '
                "type, or name one type for all lines"
            )
        return self._default_type(queue)

    def _line(
        self, type_: str, params: Any, options: Options, key: str | None, needs: tuple[int, ...]
    ) -> _Line:
        if type_ not in self._checks:
            self._checks[type_] = checker(known_type(self._types, type_))
        self._checks[type_](params)
        return _Line(type_, orjson.dumps(params).decode(), options, key, needs or tuple(options.needs))

    def _changed(self, rest: dict[str, Any]) -> Options:
        text = orjson.dumps(rest)
        if text not in self._options_of:
            at = rest.get("at")
            self._options_of[text] = self._options.changed(
                rest | ({"at": _time(at)} if at is not None else {})
            )
        return self._options_of[text]


def _orders(lines: Iterable[str | bytes], reader: _Reader) -> Iterator[_Line]:
    """Yield the job of each line that is not empty; errors get the number of the line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield reader.read(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            raise UsageError(
                f"line {number} is no JSON: {error}; nothing was submitted, correct the line and submit again"
            ) from error
        except UsageError as error:
            raise type(error)(f"line {number}: {error}") from error


def _alike(line: _Line) -> tuple[str, int, bool, tuple[int, ...]]:
    return line.type, id(line.options), line.key is not None, line.needs


def _submission(lines: list[_Line]) -> Submission:
    first = lines[0]
    keys = None if first.key is None else [line.key for line in lines if line.key is not None]
    submission = first.options.submission(first.type, [line.text for line in lines], keys)
    return replace(submission, needs=first.needs) if first.needs else submission


def _needs(needs: Any) -> tuple[int, ...]:
    if not isinstance(needs, list) or not all(type(n) is int and 0 < abs(n) <= JOB_ID_MAX for n in needs):
        raise UsageError(
            f"needs must be a list of job ids, or of -k for the job of the k-th line, not {needs!r}"
        )
    return tuple(needs)


def _time(text: Any) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"at must be a time such as '2030-01-31T08:00:00+00:00', not {text!r}") from error
