"""Run stages in tests, without a store and without a node.

    def test_resize(tmp_path):
        ran = run_stage(resize, picture=tmp_path / "cat.jpg")
        assert ran.outcome == "ok"

``StageHarness`` provides what a stage needs beside its parameters: data, results of earlier stages, subjobs, locks that
another job has."""

import asyncio
import inspect
import itertools
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from spinney.app import Spinney, storeless
from spinney.define.job import Assignment, Child, Job
from spinney.define.jobtype import JobType
from spinney.define.params.values import to_text
from spinney.model.attempts.signals import Signal
from spinney.model.errors import UnknownType, UsageError
from spinney.model.outcomes import Outcome

__all__ = ["Child", "Spawned", "StageHarness", "StageResult", "run_stage"]

_ROOT_ID, _PARENT_ID, _JOB_ID, _FIRST_CHILD_ID = 1, 2, 3, 4


class Spawned(NamedTuple):
    """A subjob or an independent job that the stage created. It exists only in the test: no store has it, and its own
    stages do not run."""

    id: int
    type: str
    params: dict[str, Any]
    key: str | None
    order: Mapping[str, Any]
    """The other options, as they are sent: ``queue``, ``priority``, ``needs`` …"""


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
        """Return the job's data now."""
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


class StageHarness:
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
        self._has_parent = parent_data is not None or root_data is not None
        self._data = {
            _ROOT_ID: dict(root_data or {}),
            _PARENT_ID: dict(parent_data or {}),
            _JOB_ID: dict(data or {}),
        }
        self.results = dict(results or {})
        self.locks: list[str] = []
        self.amounts: dict[str, int] = {}
        """How much the job has of each lock that it took."""
        self.spawned: list[Spawned] = []
        self.submitted: list[Spawned] = []
        self.priority: int | None = None
        """The priority that a stage has set; None: it has set none."""
        self.progress: list[tuple[float, str | None]] = []
        self._children, self._taken = list(children), set(taken)
        self._cancelled, self._attempt = cancelled, attempt
        self._ids = itertools.count(_FIRST_CHILD_ID)
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="spinney-test-")
        self._root = folder or Path(self._temporary.name if self._temporary else "")

    @property
    def data(self) -> dict[str, Any]:
        """Return the job's data now."""
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
        """Run one stage (by default the first). An exception that is none of Spinney's signals is raised unchanged.
        Parameters are checked and converted to JSON as at a submission."""
        name = stage or handle.spec.stages[0].name
        text = handle.texts([params])[0]
        run = handle.runner(name)
        types = handle.app.types if isinstance(handle.app, Spinney) else {}
        job = Job(self._assignment(handle.name, name, text), self, types)
        try:
            with storeless(handle.app):
                value = run(text, job)
                if inspect.iscoroutine(value):
                    value = asyncio.run(value)
        except Signal as signal:
            json_value = orjson.loads(to_text(getattr(signal, "value", None), "the value"))
            return self._ran(name, signal.outcome, json_value, signal)
        json_value = orjson.loads(to_text(value, f"what stage {name!r} returned"))
        return self._ran(name, Outcome.OK, json_value, None)

    def _ran(self, stage: str, outcome: Outcome, value: Any, signal: Signal | None) -> StageResult:
        if value is not None:
            self.results[stage] = value
        message = "" if signal is None else signal.message
        return StageResult(outcome=outcome, value=value, message=message, signal=signal, harness=self)

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
        )

    # --- the answers ----------------------------------------------------------------------

    def cancelled(self) -> bool:
        return self._cancelled

    def ask(self, verb: str, **args: Any) -> Any:
        answer = getattr(self, f"_answer_{verb}", None)
        if answer is None:
            raise UsageError(f"a stage harness cannot answer {verb!r}; try this stage on a node")
        return answer(**args)

    def _answer_get_data(self, target: int) -> dict[str, Any]:
        return dict(self._data[target])

    def _answer_put_data(self, target: int, name: str, value: str | None) -> None:
        if value is None:
            self._data[target].pop(name, None)
        else:
            self._data[target][name] = orjson.loads(value)

    def _answer_append_data(self, target: int, name: str, value: str) -> int:
        entries: list[Any] = self._data[target].setdefault(name, [])
        entries.append(orjson.loads(value))
        return len(entries)

    def _answer_results(self) -> dict[str, Any]:
        return dict(self.results)

    def _answer_spawn(self, submissions: list[dict[str, Any]]) -> list[int]:
        return self._create(submissions, self.spawned)

    def _answer_submit(self, submissions: list[dict[str, Any]], beside: int | None) -> list[int]:
        return self._create(submissions, self.submitted)

    def _create(self, submissions: list[dict[str, Any]], among: list[Spawned]) -> list[int]:
        """Add the jobs whose key is not ``among`` the earlier ones yet; return the ids of all."""
        ids = []
        for row in submissions:
            order = {k: v for k, v in row.items() if k not in ("type", "params", "keys")}
            for text, key in itertools.zip_longest(row["params"], row.get("keys", ())):
                same = next((s for s in among if key is not None and s.key == key), None)
                if same is None:
                    same = Spawned(next(self._ids), row["type"], orjson.loads(text), key, order)
                    among.append(same)
                ids.append(same.id)
        return ids

    def _answer_prioritise(self, priority: int) -> None:
        self.priority = priority

    def _answer_type_schema(self, type: str) -> dict[str, Any]:  # noqa: A002  the verb's own word
        raise UnknownType(f"a stage harness knows no job type {type!r} by name; spawn it by its handle")

    def _answer_take_lock(self, name: str, until: str, amount: int, capacity: int | None) -> bool:
        if name in self._taken:
            return False
        if capacity is not None and amount > capacity:
            raise UsageError(
                f"the lock {name!r} has a capacity of {capacity}, so that nobody can take {amount} of it"
            )
        self.locks.append(name)
        self.amounts[name] = amount
        return True

    def _answer_progress(self, fraction: float, message: str | None) -> None:
        self.progress.append((fraction, message))

    def _answer_children(self, after: int, limit: int) -> list[list[Any]]:
        return [list(child) for child in self._children if child.id > after][:limit]


def run_stage(handle: JobType, stage: str | None = None, /, **params: Any) -> StageResult:
    """Run one stage of a job type (by default the first) in this process, in an empty environment."""
    return StageHarness().run(handle, stage, **params)
