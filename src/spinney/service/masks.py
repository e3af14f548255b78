"""Secrets of jobs, masked by the schemas of their types in all that is shown of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spinney.define.params.masking import REDACT_NOTHING, Redactor, has_secrets, mask
from spinney.model.jobs import Attempt, Job
from spinney.model.rights.operators import Explanation
from spinney.model.settings.schedules import Schedule
from spinney.model.types import TypeSpec


class Masks:
    """Those of all types of a store. Of a type without secrets nothing is touched."""

    def __init__(self, types: Mapping[str, TypeSpec]) -> None:
        self._schemas = {name: spec.schema for name, spec in types.items() if has_secrets(spec.schema)}

    def over(self, job: Job) -> Redactor:
        """What hides the secrets of one job."""
        schema = self._schemas.get(job.type)
        return REDACT_NOTHING if schema is None else Redactor.for_params(schema, job.params)

    def jobs(self, found: list[Job]) -> list[Job]:
        """These jobs with their secrets masked."""
        return [self._job(job) for job in found] if self._schemas else found

    def schedule(self, found: Schedule) -> Schedule:
        """A schedule with the secrets of its jobs masked."""
        schema = self._schemas.get(found.type)
        return found if schema is None else replace(found, params=mask(schema, found.params))

    def _job(self, job: Job) -> Job:
        schema = self._schemas.get(job.type)
        if schema is None:
            return job
        redactor = Redactor.for_params(schema, job.params)
        return replace(
            job,
            params=mask(schema, job.params),
            message=_text(redactor, job.message),
            progress_message=_text(redactor, job.progress_message),
        )


def attempts(found: Sequence[Attempt], redactor: Redactor) -> list[Attempt]:
    """A job's history without its secrets: in messages, tracebacks and values."""
    if redactor is REDACT_NOTHING:
        return list(found)
    return [
        replace(
            a,
            message=_text(redactor, a.message),
            error=None if a.error is None else redactor.value(a.error),
            result=redactor.value(a.result),
        )
        for a in found
    ]


def explanation(found: Explanation, redactor: Redactor) -> Explanation:
    """A sentence may tell a failure's message."""
    return found if redactor is REDACT_NOTHING else replace(found, sentence=redactor.text(found.sentence))


def _text(redactor: Redactor, text: str | None) -> str | None:
    return None if text is None else redactor.text(text)
