"""What to call for a stage of the application, whatever it is made of."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn

from spinney.define.job import Job
from spinney.define.jobtype import JobType
from spinney.define.params.masking import REDACT_NOTHING, Redactor, has_secrets
from spinney.model.attempts.signals import Hold
from spinney.model.errors import SpinneyError
from spinney.model.values.unreadable import json_object
from spinney.node.worker.program import ProgramRunner

Runner = Callable[[str, Job], Any]
"""Called with the parameters as JSON text and the handle; returns the stage's value or raises."""


class StageRunners:
    """Runners by type and stage, made when first asked for."""

    def __init__(self, types: Mapping[str, JobType], pass_fds: tuple[int, ...] = ()) -> None:
        """``pass_fds``: descriptors that programs inherit."""
        self.types = types
        self._pass_fds = pass_fds
        self._found: dict[tuple[str, str], Runner] = {}
        self._secretive: dict[str, Mapping[str, Any] | None] = {}
        """Schemas of types with secrets; None: it has none."""

    def runner(self, type_: str, stage: str) -> Runner:
        """What runs that stage; a coroutine function when the stage is one."""
        found = self._found.get((type_, stage))
        if found is None:
            found = self._found[(type_, stage)] = self._make(type_, stage)
        return found

    def redactor(self, type_: str, params: str) -> Redactor:
        """What hides the secrets of a job in what is told of it. Raises nothing."""
        if type_ not in self._secretive:
            kind = self.types.get(type_)
            schema = {} if kind is None else kind.spec.schema
            self._secretive[type_] = schema if has_secrets(schema) else None
        found = self._secretive[type_]
        return (
            REDACT_NOTHING
            if found is None
            else Redactor.for_params(found, json_object(params, "the parameters"))
        )

    def blocking(self, type_: str, stage: str) -> Runner:
        """The same for a worker without an event loop: a coroutine gets one for itself."""
        runner = self.runner(type_, stage)
        if not inspect.iscoroutinefunction(runner):
            return runner
        start: Callable[[str, Job], Coroutine[Any, Any, Any]] = runner
        return lambda params, job: asyncio.run(start(params, job))

    def takes_handle(self, type_: str, stage: str) -> bool:
        """Whether the runner of that stage makes any use of its handle."""
        kind = self.types.get(type_)
        return kind is not None and kind.takes_handle(stage)

    def _make(self, type_: str, stage: str) -> Runner:
        kind = self.types.get(type_)
        spec = None if kind is None else kind.spec.stage(stage)
        if kind is None or spec is None:
            return _unknown(type_, stage)
        if spec.program:
            return ProgramRunner(spec, self._pass_fds)
        try:
            return kind.runner(stage)
        except SpinneyError as error:
            return _raising(error)


def _unknown(type_: str, stage: str) -> Runner:
    """The code has changed under the node. The job is parked with the reason, never failed for it."""

    def park(params: str, job: Job) -> NoReturn:
        raise Hold(
            f"the application of this node has no stage {stage!r} of type {type_!r} any more; "
            f"restart the node with the right code, then release the job"
        )

    return park


def _raising(error: SpinneyError) -> Runner:
    """What is wrong with a stage is told by its jobs; the worker goes on."""

    def fail(params: str, job: Job) -> NoReturn:
        raise error

    return fail
