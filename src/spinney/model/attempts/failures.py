"""The cause of failures of many jobs: a fingerprint of type, stage, exception and message.

Only the part of the message that is the same for all jobs counts (``plain_messages``). Two failures whose messages
differ in words are two causes, although a person may see one in them: a group that is too small is noticed, one that
hides a second cause is not."""

import hashlib
from dataclasses import dataclass
from typing import Self

import orjson

from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome

DIGITS = 16
"""Hexadecimal digits of a fingerprint."""
POISON = "poison"
"""The value of ``exception`` for a job whose worker or node died again and again."""

DEADLOCK = "deadlock"
"""The value of ``exception`` for a job that failed because of a cycle of locks; its message names all jobs of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What all failures with one fingerprint have in common."""

    fingerprint: str
    type: str
    stage: str
    exception: str
    """The name of the exception, with the status code if there is one; else the outcome."""
    message: str
    """The plain message (``plain_messages``)."""

    @classmethod
    def of(cls, type_: str, stage: str, exception: str, message: str) -> Self:
        """Return the cause of a failure with this message. The fingerprint is the first digits of SHA-256 over the four
        values; only the part of the message that ``plain`` returns counts."""
        # A process that meets no failure should not wait until the expressions are compiled, some milliseconds.
        from spinney.model.attempts.plain_messages import plain

        message = plain(message)
        text = "\0".join((type_, stage, exception, message))
        digest = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
        return cls(fingerprint=digest[:DIGITS], type=type_, stage=stage, exception=exception, message=message)

    def __str__(self) -> str:
        return f"{self.exception}: {self.message}" if self.message else self.exception


def cause(
    type_: str, stage: str, record: Record, *, poison: bool = False, reason: str | None = None
) -> Cause:
    """Return why the attempt of this record failed. ``reason``: used when the record has no message. ``poison``: the
    job failed because too many attempts took their worker or node down, whatever the last one says."""
    exception = POISON if poison else _exception(record)
    # A message may begin with the exception (``KeyError``), which a cause names by itself.
    message = (record.message or reason or "").removeprefix(f"{exception}: ")
    return Cause.of(type_, stage, exception, message)


def _exception(record: Record) -> str:
    """Return the name of the exception; for an attempt that did not end by itself, its outcome. A status code that the
    handler gave is part of the cause."""
    if record.outcome is not Outcome.ERROR:
        return str(record.outcome)
    raised = orjson.loads(record.error).get("type") if record.error else None
    name = str(raised or record.outcome)
    return name if record.code is None else f"{name} code {record.code}"
