"""The kit for a user's own tests."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spinney import Defer, Fail, Finish, Job, NotApplicable, Spinney, Warn
from spinney.define.job import Child
from spinney.model.errors import BadParameters, UnknownType, UsageError
from spinney.model.states import State
from spinney.testing import StageHarness, run_stage

app = Spinney()
batch = app.pipeline("batch", children="settled")


@app.job
def count(file: Path, job: Job) -> dict[str, Any]:
    (job.folder / "seen").write_text(file.name)
    job.data["lines"] = 3
    job.progress(0.5, "half")
    return {"file": file}


@batch.stage
async def expand(names: list[str], job: Job) -> int:
    job.lock("disk")
    job.spawn_many(count, [{"file": name} for name in names], keys=names)
    return len(names)


@batch.stage(again=True)
def report(job: Job) -> dict[str, int]:
    return Counter(child.state for child in job.children()) | {"planned": job.results["expand"]}


def test_a_stage_runs_with_checked_parameters_and_its_value_is_json() -> None:
    ran = run_stage(count, file=Path("a.txt"))
    assert ran.outcome == "ok"
    assert ran.value == {"file": "a.txt"}
    assert ran.data == {"lines": 3}
    assert (ran.folder / "seen").read_text() == "a.txt"
    assert ran.harness.progress == [(0.5, "half")]
    with pytest.raises(BadParameters, match="parameter 'file' is missing"):
        run_stage(count)


def test_stages_run_one_after_another_on_one_bench(tmp_path: Path) -> None:
    children = [
        Child(4, "count", State.COMPLETED, None, None, None, 0, {}),
        Child(5, "count", State.FAILED, "count", None, "no", 0, {}),
    ]
    harness = StageHarness(children=children, folder=tmp_path)
    first = harness.run(batch, "expand", names=["a", "b", "a"])
    assert [(s.id, s.key, s.params) for s in first.spawned] == [
        (4, "a", {"file": "a"}),
        (5, "b", {"file": "b"}),
    ]
    assert harness.locks == ["disk"]
    second = harness.run(batch, "report", names=[])
    assert second.value == {"completed": 1, "failed": 1, "planned": 3}


def test_jobs_of_their_own_are_told_apart_from_subjobs_and_a_key_is_one_of_them() -> None:
    local = Spinney()

    @local.job
    def work(job: Job) -> list[int]:
        job.prioritise(7)
        job.submit(count.options(queue="mail"), file="a")
        return [job.spawn(count.options(key="k"), file="b")] + [
            job.submit(count.options(key="k", forever=True), file=file) for file in ("c", "d")
        ]

    ran = run_stage(work)

    assert [(s.id, s.params, s.key, s.order) for s in ran.submitted] == [
        (4, {"file": "a"}, None, {"queue": "mail"}),
        (6, {"file": "c"}, "k", {"forever": True}),
    ]
    assert [s.id for s in ran.spawned] == [5]
    assert ran.value == [5, 6, 6]
    assert ran.harness.priority == 7


def test_a_stage_may_name_the_types_of_its_application_as_on_a_node() -> None:
    local = Spinney()

    @local.job
    def part(n: int) -> None: ...

    @local.job
    def work(job: Job, kind: str) -> None:
        job.spawn(kind, n=1)
        job.submit(kind, n=2)

    ran = run_stage(work, kind="part")

    assert [(s.type, s.params) for s in (*ran.spawned, *ran.submitted)] == [
        ("part", {"n": 1}),
        ("part", {"n": 2}),
    ]
    with pytest.raises(UnknownType, match="knows no job type 'foreign' by name"):
        run_stage(work, kind="foreign")


def test_a_taken_lock_shows_as_locked() -> None:
    ran = StageHarness(taken=["disk"]).run(batch, names=[])
    assert (ran.outcome, ran.message) == ("locked", "waits for the lock 'disk'")


@pytest.mark.parametrize(
    ("signal", "outcome", "value"),
    [
        (Defer(5, "later"), "defer", None),
        (Fail("broken", retryable=False), "error", None),
        (NotApplicable(), "not_applicable", None),
        (Warn("odd", value=3), "warning", 3),
        (Finish(value={"a": 1}), "finish", {"a": 1}),
    ],
)
def test_signals_become_outcomes(signal: BaseException, outcome: str, value: Any) -> None:
    local = Spinney()

    @local.job
    def work() -> None:
        raise signal

    ran = run_stage(work)
    assert (ran.outcome, ran.value, ran.signal) == (outcome, value, signal)


def test_a_signal_in_a_task_group_becomes_its_outcome_and_other_groups_come_through() -> None:
    local = Spinney()

    @local.job
    async def work(job: Job, wrong: bool = False) -> None:
        async def part() -> None:
            if wrong:
                raise ZeroDivisionError
            job.lock("disk")

        async with asyncio.TaskGroup() as group:
            group.create_task(part())

    ran = StageHarness(taken=["disk"]).run(work)
    assert (ran.outcome, ran.message) == ("locked", "waits for the lock 'disk'")
    with pytest.raises(ExceptionGroup):
        run_stage(work, wrong=True)


def test_what_is_no_signal_comes_through() -> None:
    local = Spinney()

    @local.job
    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_stage(work)


def test_a_job_below_writes_into_its_parents_data() -> None:
    local = Spinney()

    @local.job
    def work(job: Job) -> None:
        assert job.parent is not None
        job.parent.data.append("seen", job.id)
        job.root.data["last"] = job.id

    harness = StageHarness(parent_data={"seen": [1]})
    harness.run(work)
    assert harness.parent_data == {"seen": [1, 3]}
    assert harness.root_data == {"last": 3}


def test_programs_are_not_run_here() -> None:
    local = Spinney()
    with pytest.raises(UsageError, match="a program, no function"):
        run_stage(local.program("ls", ["ls"]))


def test_a_bench_tells_how_much_of_a_lock_was_taken_and_what_there_is_not() -> None:
    app = Spinney()

    @app.job
    def load(need: int, job: Job) -> None:
        job.lock("disk", amount=need, capacity=100)

    harness = StageHarness()
    assert harness.run(load, need=60).outcome == "ok"
    assert harness.amounts == {"disk": 60}
    with pytest.raises(UsageError, match="nobody can take 101"):
        harness.run(load, need=101)
    assert StageHarness(taken=["disk"]).run(load, need=1).outcome == "locked"
