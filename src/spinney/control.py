"""What people ask of a store: to submit, cancel, retry, rerun, release and delete jobs.

For the command line and whatever else serves people, on any store and without anybody's code:
parameters are checked by the schemas that nodes registered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from spinney.job.options import Options
from spinney.model import names
from spinney.model.errors import UnknownType, UsageError
from spinney.model.jobs import JOB_ID_MAX, Submission
from spinney.model.types import TypeSpec
from spinney.params.hints import did_you_mean, listed
from spinney.params.schema import Check, checker
from spinney.params.values import to_text
from spinney.stores.contract import Store, Submitted, Touched

_NO_OPTIONS = Options()
_GONE_CHUNK = 100
"""Removed folders told to the store at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One person's hand on a store. Every verb is durable when it returns, and wakes the nodes."""

    store: Store
    clock: Callable[[], int]
    """Microseconds since 1970 UTC."""
    nudge: Callable[[], None]
    """Wakes the nodes that can be woken; called after every change they should see."""
    by: str
    """Who asks; kept with what was changed."""

    # --- submitting -----------------------------------------------------------------------

    def submit(
        self,
        type_: str,
        rows: Iterable[Mapping[str, Any]],
        options: Options = _NO_OPTIONS,
        *,
        keys: Iterable[str] | None = None,
    ) -> Submitted:
        """A job for each dict of parameters, all or none.

        Raises UnknownType, BadParameters (naming the parameter), DuplicateKey, NoSuchJob (a need).
        """
        check = checker(_type(self.store.types(), type_))
        texts = []
        for row in rows:
            check(row)
            texts.append(to_text(row, f"a parameter of {type_!r}"))
        return self._submit([options.submission(type_, texts, keys)] if texts else [])

    def submit_lines(
        self, lines: Iterable[str | bytes], *, type_: str | None = None, options: Options = _NO_OPTIONS
    ) -> Submitted:
        """A job for each line of JSON, all or none; empty lines are passed over.

        With ``type_`` a line is the job's parameters. Without, it is an object with ``type``,
        ``params`` and any of the options, which win over ``options``; ``at`` is an ISO 8601 text, and
        in ``needs`` a number ``-k`` means the job of the k-th line (empty ones not counted).

        Raises what ``submit`` raises, with the number of the line.
        """
        orders = _orders(lines, _Reader(self.store.types(), type_, options))
        return self._submit([_submission(list(same)) for _, same in groupby(orders, key=_alike)])

    def _submit(self, submissions: list[Submission]) -> Submitted:
        if not submissions:
            return Submitted(ids=[])
        done = self.store.submit(submissions, now_us=self.clock())
        self.nudge()
        return done

    # --- operating ------------------------------------------------------------------------

    def cancel(self, job_id: int, *, tree: bool = False, reason: str | None = None) -> Touched:
        """Cancel a job, or it and all below (``tree``). What runs is asked to end, then made to."""
        touched = self.store.cancel(job_id, tree=tree, by=self.by, reason=reason, now_us=self.clock())
        self.nudge()
        return touched

    def retry(self, job_id: int, *, stage: str | None = None) -> Touched:
        """Open what failed again: behind the last stage that passed, or from an earlier one."""
        touched = self.store.retry(job_id, stage=stage, by=self.by, now_us=self.clock())
        self.nudge()
        return touched

    def rerun(self, job_id: int, *, stage: str | None = None) -> Touched:
        """Run a settled job again from its first stage, or from ``stage``, whatever had passed."""
        touched = self.store.rerun(job_id, stage=stage, by=self.by, now_us=self.clock())
        self.nudge()
        return touched

    def release(self, job_id: int) -> Touched:
        """Let a held job go on."""
        touched = self.store.release(job_id, by=self.by, now_us=self.clock())
        self.nudge()
        return touched

    def delete(self, job_id: int, remove: Callable[[int], None]) -> list[int]:
        """Delete a job and all below it, with their folders; returns the ids.

        ``remove`` removes one job's folder. Where this is cut off, nodes remove what is left.
        """
        ids = [gone.job_id for gone in self.store.delete(job_id, by=self.by, now_us=self.clock())]
        for first in range(0, len(ids), _GONE_CHUNK):
            chunk = ids[first : first + _GONE_CHUNK]
            for each in chunk:
                remove(each)
            self.store.folder_gone(chunk)
        return ids


# --- lines -------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """One job as a line ordered it."""

    type: str
    text: str
    options: Options
    key: str | None
    needs: tuple[int, ...]


class _Reader:
    """Turns parsed lines into orders. Lines that say the same share one set of options."""

    def __init__(self, types: Mapping[str, TypeSpec], type_: str | None, options: Options) -> None:
        self._types, self._type, self._options = types, type_, options
        self._checks: dict[str, Check] = {}
        self._known: dict[bytes, Options] = {}

    def read(self, value: Any) -> _Line:
        if self._type is not None:
            return self._line(self._type, value, self._options, None, ())
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise UsageError('write {"type": "…", "params": {…}}, or name one type for all lines')
        rest = {k: v for k, v in value.items() if k not in ("type", "params", "key", "needs")}
        options = self._changed(rest) if rest else self._options
        key = value.get("key")
        if key is not None:
            names.label("key", key)
        return self._line(value["type"], value.get("params", {}), options, key, _needs(value.get("needs", [])))

    def _line(
        self, type_: str, params: Any, options: Options, key: str | None, needs: tuple[int, ...]
    ) -> _Line:
        if type_ not in self._checks:
            self._checks[type_] = checker(_type(self._types, type_))
        self._checks[type_](params)
        return _Line(type_, orjson.dumps(params).decode(), options, key, needs or tuple(options.needs))

    def _changed(self, rest: dict[str, Any]) -> Options:
        text = orjson.dumps(rest)
        if text not in self._known:
            at = rest.get("at")
            self._known[text] = self._options.changed(rest | ({"at": _time(at)} if at is not None else {}))
        return self._known[text]


def _orders(lines: Iterable[str | bytes], reader: _Reader) -> Iterator[_Line]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield reader.read(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            raise UsageError(
                f"line {number} is no JSON: {error}; nothing was submitted, mend the line and submit again"
            ) from error
        except UsageError as error:
            raise type(error)(f"line {number}: {error}") from error


def _alike(line: _Line) -> tuple[str, int, bool, tuple[int, ...]]:
    return line.type, id(line.options), line.key is not None, line.needs


def _submission(lines: list[_Line]) -> Submission:
    first = lines[0]
    keys = None if first.key is None else [line.key for line in lines if line.key is not None]
    made = first.options.submission(first.type, [line.text for line in lines], keys)
    return replace(made, needs=first.needs) if first.needs else made


def _needs(needs: Any) -> tuple[int, ...]:
    if not isinstance(needs, list) or not all(type(n) is int and 0 < abs(n) <= JOB_ID_MAX for n in needs):
        raise UsageError(f"needs must be a list of job ids, or of -k for the job of the k-th line, not {needs!r}")
    return tuple(needs)


def _time(text: Any) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"at must be a time such as '2030-01-31T08:00:00+00:00', not {text!r}") from error


def _type(types: Mapping[str, TypeSpec], name: str) -> TypeSpec:
    found = types.get(name)
    if found is None:
        raise UnknownType(
            f"no job type {name!r} is known to this store{did_you_mean(name, types)}; start a node whose "
            f"application has it, or use one of: {listed(types)}"
        )
    return found
