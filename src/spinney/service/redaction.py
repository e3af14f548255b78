"""Redact the secrets of jobs in everything that is shown of them, by the schemas of their types."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spinney.define.params.redaction import (
    REDACT_NOTHING,
    Redactor,
    has_secrets,
    redact_params,
    redaction_schema,
)
from spinney.model.jobs import Attempt, Job
from spinney.model.types import TypeSpec

if TYPE_CHECKING:
    from spinney.model.settings.schedules import Schedule


class Redactors:
    """The redactors of all job types of a store. Jobs of types without secrets are not changed."""

    def __init__(self, types: Mapping[str, TypeSpec]) -> None:
        schemas = {name: redaction_schema(spec) for name, spec in types.items()}
        self._schemas = {name: schema for name, schema in schemas.items() if has_secrets(schema)}

    def of(self, job: Job) -> Redactor:
        """Return the redactor that hides the secrets of one job."""
        schema = self._schemas.get(job.type)
        return REDACT_NOTHING if schema is None else Redactor.for_params(schema, job.params)

    def jobs(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs with their secrets redacted."""
        return [self._job(job) for job in jobs] if self._schemas else jobs

    def schedule(self, schedule: "Schedule") -> "Schedule":
        """Return the schedule with the secrets of its jobs redacted."""
        schema = self._schemas.get(schedule.type)
        return (
            schedule if schema is None else replace(schedule, params=redact_params(schema, schedule.params))
        )

    def _job(self, job: Job) -> Job:
        schema = self._schemas.get(job.type)
        if schema is None:
            return job
        redactor = Redactor.for_params(schema, job.params)
        return replace(
            job,
            params=redact_params(schema, job.params),
            message=_text(redactor, job.message),
            progress_message=_text(redactor, job.progress_message),
        )


def attempts(rows: Sequence[Attempt], redactor: Redactor) -> list[Attempt]:
    """Return a job's history with its secrets redacted in messages, tracebacks and values."""
    if redactor is REDACT_NOTHING:
        return list(rows)
    return [
        replace(
            a,
            message=_text(redactor, a.message),
            error=None if a.error is None else redactor.value(a.error),
            result=redactor.value(a.result),
        )
        for a in rows
    ]


def _text(redactor: Redactor, text: str | None) -> str | None:
    return None if text is None else redactor.text(text)
