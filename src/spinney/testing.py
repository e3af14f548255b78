"""Run stages in tests, without a store and without a node.

    def test_resize(tmp_path):
        ran = run_stage(resize, picture=tmp_path / "cat.jpg")
        assert ran.outcome == "ok"

``StageHarness`` provides what a stage needs beside its parameters: data, results of earlier stages, subjobs, locks that
another job has."""

import asyncio
import inspect
import shutil
import tempfile
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from spinney.app.application import Spinney
from spinney.define.job import Assignment, Child, Job
from spinney.define.job.memory_port import MemoryPort, Spawned
from spinney.define.jobtype import JobType
from spinney.define.stage_guard import storeless
from spinney.model.attempts.signals import Signal, unwrapped
from spinney.model.errors import UsageError
from spinney.model.outcomes import Outcome
from spinney.model.settings.capacities import Capacities, CapacityRules
from spinney.node.worker.program import ProgramRunner
from spinney.node.worker.result_rows import exception_detail, value_detail

__all__ = ["Child", "Spawned", "StageHarness", "StageResult", "run_stage"]

_ROOT_ID, _PARENT_ID, _JOB_ID, _FIRST_CHILD_ID = 1, 2, 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """The outcome of a stage, as a node would record it: an exception of the stage itself is raised in the test
    instead, with its traceback."""

    outcome: Outcome
    value: Any
    """What the stage returned, after a round trip through JSON."""
    message: str
    signal: Signal | None
    """The signal that the stage raised (``Defer``, ``Fail`` …); None: it returned."""
    harness: "StageHarness"

    @property
    def data(self) -> dict[str, Any]:
        """Return the job's data as it is now: also what stages that ran later in this harness have written."""
        return self.harness.data

    @property
    def spawned(self) -> list[Spawned]:
        """Return the subjobs that the stage spawned."""
        return self.harness.spawned

    @property
    def submitted(self) -> list[Spawned]:
        """Return the independent jobs that the stage submitted."""
        return self.harness.submitted

    @property
    def folder(self) -> Path:
        """Return the job's own folder. A temporary one is deleted with this object."""
        return self.harness.job_folder


class StageHarness(MemoryPort):
    """The environment of one job, and the answers to its handle. It may run several stages, one after another: what one
    returned is among the results of the next."""

    def __init__(
        self,
        *,
        data: Mapping[str, Any] | None = None,
        parent_data: Mapping[str, Any] | None = None,
        root_data: Mapping[str, Any] | None = None,
        results: Mapping[str, Any] | None = None,
        children: Iterable[Child] = (),
        taken: Iterable[str] = (),
        cancelled: bool = False,
        attempt: int = 1,
        folder: Path | None = None,
    ) -> None:
        """``parent_data``: the job has a parent with these data (else it is a root). ``taken``: locks that another job
        has. ``folder``: the folder root; by default a temporary one."""
        children = list(children)
        if wrong := [child for child in children if not isinstance(child, Child)]:
            raise UsageError(
                f"children takes a list of Child(id, type, state) of spinney.testing, not {wrong[0]!r:.80}"
            )
        self._has_parent = parent_data is not None or root_data is not None
        super().__init__(
            {_ROOT_ID: dict(root_data or {}), _PARENT_ID: dict(parent_data or {}), _JOB_ID: dict(data or {})},
            results=results or {},
            children=children,
            taken=taken,
            cancelled=cancelled,
            ancestry=(_ROOT_ID, _PARENT_ID, _JOB_ID) if self._has_parent else (_JOB_ID,),
            first_id=_FIRST_CHILD_ID,
            place="a stage harness",
        )
        self._attempt = attempt
        self._root = folder or Path(tempfile.mkdtemp(prefix="spinney-test-"))
        self._root.mkdir(parents=True, exist_ok=True)
        if not folder:
            # Not by TemporaryDirectory, which warns of a folder that nobody has closed: with pytest's
            # filterwarnings = error the test would fail.
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)

    @property
    def data(self) -> dict[str, Any]:
        """Return the job's data as it is now, with what all stages that ran in this harness have written to
        ``job.data``."""
        return self._data[_JOB_ID]

    @property
    def parent_data(self) -> dict[str, Any]:
        """Return the data of the job's parent now."""
        return self._data[_PARENT_ID]

    @property
    def root_data(self) -> dict[str, Any]:
        """Return the data of the job's root now."""
        return self._data[_ROOT_ID]

    @property
    def job_folder(self) -> Path:
        """Return the folder of the job that runs."""
        return Job(self._assignment("", "", "{}"), self).folder

    def run(self, handle: JobType, stage: str | None = None, /, **params: Any) -> StageResult:
        """Run one stage (by default the first), a function or a program. An exception that is not one of Spinney's
        signals is raised unchanged. Parameters are checked and converted to JSON as at a submission."""
        if not isinstance(handle, JobType):
            name = getattr(handle, "__name__", repr(handle))
            raise UsageError(
                f"{name:.80} is no job type; give the type and the name of a stage, as in "
                "run_stage(album, 'expand', folder=…)"
            )
        name = stage or handle.spec.stages[0].name
        text = handle.texts([params])[0]
        spec = handle.spec.stage(name)
        run = ProgramRunner(spec, ()) if spec and spec.program else handle.runner(name)
        app = handle.app if isinstance(handle.app, Spinney) else Spinney()
        self.capacities = Capacities(
            declared=CapacityRules.of((lock.name, lock.capacity) for lock in app.locks)
        )
        # A node runs a stage once more only when its earlier result does not count.
        self.results.pop(name, None)
        job = Job(self._assignment(handle.name, name, text), self, app.types)
        try:
            with storeless(handle.app):
                value = run(text, job)
                if inspect.iscoroutine(value):
                    value = _completed(value)
        except (Signal, BaseExceptionGroup) as error:
            signal = unwrapped(error)
            if not isinstance(signal, Signal):
                raise
            return self._ran(name, signal.outcome, getattr(signal, "value", None), signal)
        return self._ran(name, Outcome.OK, value, None)

    def _ran(self, stage: str, outcome: Outcome, value: Any, signal: Signal | None) -> StageResult:
        detail = value_detail(stage, value, outcome) or {}
        json_value = orjson.loads(detail.get("result", "null"))
        if json_value is not None:
            self.results[stage] = json_value
        message = "" if signal is None else exception_detail(stage, signal)["message"] or ""
        return StageResult(outcome=outcome, value=json_value, message=message, signal=signal, harness=self)

    def _assignment(self, type_: str, stage: str, params: str) -> Assignment:
        return Assignment(
            job_id=_JOB_ID,
            fence=1,
            type=type_,
            stage=stage,
            attempt=self._attempt,
            params=params,
            parent_id=_PARENT_ID if self._has_parent else None,
            root_id=_ROOT_ID if self._has_parent else _JOB_ID,
            folder_root=self._root,
            has_marked_root=False,
        )


def _completed(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what the coroutine of a stage returns. Raises UsageError within a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        coroutine.close()
        raise UsageError(
            "an async stage is run in an event loop of its own, which cannot be done within another; make the test a "
            "plain function, or write await asyncio.to_thread(run_stage, …)"
        )
    return asyncio.run(coroutine)


def run_stage(handle: JobType, stage: str | None = None, /, **params: Any) -> StageResult:
    """Run one stage of a job type (by default the first) in this process, in an empty environment."""
    return StageHarness().run(handle, stage, **params)
