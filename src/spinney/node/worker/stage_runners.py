"""The functions that run the stages of an application.

A stage that the application does not have any more, or whose definition is wrong, gets a runner that says so
in each of its jobs. So one bad type does not keep a worker from running the others."""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, NoReturn

from spinney.define.job import Job
from spinney.define.jobtype import JobType
from spinney.define.jobtype.job_types import Runner
from spinney.define.params.redaction import REDACT_NOTHING, Redactor, has_secrets
from spinney.model.attempts.signals import Hold
from spinney.model.errors import SpinneyError
from spinney.model.values.unreadable import json_object
from spinney.node.worker.program import ProgramRunner


class StageRunners:
    """Runners by type and stage, made when they are first used."""

    def __init__(
        self, types: Mapping[str, JobType], pass_fds: tuple[int, ...] = (), *, keeps_frames: bool = True
    ) -> None:
        """``types``: the job types by name; ``pass_fds``: descriptors that the processes of program stages inherit.
        ``keeps_frames``: whether programs may keep their frames where their type allows it."""
        self.types = types
        self._pass_fds, self._keeps_frames = pass_fds, keeps_frames
        self._runners: dict[tuple[str, str], Runner] = {}
        self._blocking: dict[tuple[str, str], Runner] = {}
        self._secretive: dict[str, Mapping[str, Any] | None] = {}
        """Schemas of types with secrets; None: the type has none."""

    def runner(self, type_: str, stage: str) -> Runner:
        """Return the function that runs the stage; a coroutine function when the stage is one."""
        runner = self._runners.get((type_, stage))
        if runner is None:
            runner = self._runners[(type_, stage)] = self._make(type_, stage)
        return runner

    def redactor(self, type_: str, params: str) -> Redactor:
        """Return the redactor that hides the secrets of a job in its messages. It raises nothing."""
        if type_ not in self._secretive:
            kind = self.types.get(type_)
            spec_schema = {} if kind is None else kind.spec.schema
            self._secretive[type_] = spec_schema if has_secrets(spec_schema) else None
        schema = self._secretive[type_]
        if schema is None:
            return REDACT_NOTHING
        return Redactor.for_params(schema, json_object(params, "the parameters"))

    def blocking(self, type_: str, stage: str) -> Runner:
        """Return the runner for a worker without an event loop: a coroutine gets its own loop."""
        runner = self._blocking.get((type_, stage))
        if runner is None:
            runner = self._blocking[(type_, stage)] = _with_loop(self.runner(type_, stage))
        return runner

    def takes_handle(self, type_: str, stage: str) -> bool:
        """Return whether the stage uses its handle."""
        kind = self.types.get(type_)
        return kind is not None and kind.takes_handle(stage)

    def _make(self, type_: str, stage: str) -> Runner:
        """Return a new runner for a stage: its function, its program, or one that says why there is none."""
        kind = self.types.get(type_)
        spec = None if kind is None else kind.spec.stage(stage)
        if kind is None or spec is None:
            return _unknown(type_, stage)
        if spec.program:
            return ProgramRunner(
                spec,
                self._pass_fds,
                partial(self.redactor, type_),
                keeps_frames=self._keeps_frames and kind.spec.postmortem,
            )
        try:
            return kind.runner(stage)
        except SpinneyError as error:
            return _raising(error)


def _with_loop(runner: Runner) -> Runner:
    """Return a function that runs a coroutine function in a loop of its own; any other as it is."""
    if not inspect.iscoroutinefunction(runner):
        return runner
    import asyncio  # with ssl 2 MB of a worker's memory, and most workers run no coroutines

    start: Callable[[str, Job], Coroutine[Any, Any, Any]] = runner
    return lambda params, job: asyncio.run(start(params, job))


def _unknown(type_: str, stage: str) -> Runner:
    """Return a runner that holds the job, because the application does not have its stage any more. The job must not
    fail for that."""

    def park(params: str, job: Job) -> NoReturn:
        raise Hold(
            f"the application of this node has no stage {stage!r} of type {type_!r} any more; "
            f"restart the node with the right code, then release the job"
        )

    return park


def _raising(error: SpinneyError) -> Runner:
    """Return a runner that raises the error of a stage's definition in its jobs; the worker continues."""

    def fail(params: str, job: Job) -> NoReturn:
        raise error

    return fail
