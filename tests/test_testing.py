"""The kit for a user's own tests."""

import asyncio
import gc
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spinney import Defer, Fail, Finish, Job, NotApplicable, Spinney, Warn
from spinney.define.job import Child
from spinney.model.errors import (
    BadParameters,
    Cycle,
    DuplicateKey,
    Refused,
    UnknownType,
    UsageError,
)
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


@app.job
def quiet() -> None: ...


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


def test_nothing_is_left_in_the_folder_of_a_harness_whose_stage_writes_nothing(tmp_path: Path) -> None:
    harness = StageHarness(folder=tmp_path, parent_data={})

    harness.run(quiet)
    assert list(tmp_path.iterdir()) == []

    harness.run(count, file=Path("a.txt"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["seen"]


def test_a_temporary_folder_is_deleted_with_its_result_and_without_a_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ran = run_stage(count, file=Path("a.txt"))
        root = ran.folder
        del ran
        gc.collect()

    assert not root.exists()
    assert caught == []


def test_a_harness_refuses_children_that_are_none() -> None:
    with pytest.raises(UsageError, match=r"children takes a list of Child\(id, type, state\) .*, not 4$"):
        StageHarness(children=[4])  # type: ignore[list-item]


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


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (Fail(OSError("no disk")), "no disk"),  # type: ignore[arg-type]
        (Fail(), "failed by its own stage"),
        (Warn("a\0b"), "a\N{SYMBOL FOR NULL}b"),
        (Defer(5), ""),
    ],
)
def test_the_message_is_the_one_that_a_node_would_record(signal: Exception, message: str) -> None:
    def stage() -> None:
        raise signal

    assert run_stage(Spinney().job(stage)).message == message


def test_programs_run_in_the_folder_of_the_job_and_their_end_has_its_meaning() -> None:
    script = 'echo "$SPINNEY_PARAM_NAME" > seen; echo 7 > "$SPINNEY_RESULT"; exit "$SPINNEY_PARAM_CODE"'
    program = Spinney().program(
        "script", ["/bin/sh", "-c", script], params={"name": str, "code": int}, exit_codes={3: "warning"}
    )

    ran = run_stage(program, name="oak", code=0)
    assert (ran.outcome, ran.value) == ("ok", 7)
    assert (ran.folder / "seen").read_text() == "oak\n"
    ran = run_stage(program, name="oak", code=3)
    assert (ran.outcome, ran.value, ran.message) == ("warning", 7, "sh exited with code 3")
    ran = run_stage(program, name="oak", code=4)
    assert isinstance(ran.signal, Fail)
    assert ran.signal.code == 4


def test_a_function_that_is_no_job_type_is_neither_spawned_nor_submitted() -> None:
    def resize() -> None: ...

    @Spinney().job
    def album(job: Job, spawn: bool) -> None:
        (job.spawn if spawn else job.submit)(resize)

    for spawn in (True, False):
        with pytest.raises(UsageError, match=r"resize is no job type; make .* with @app\.job"):
            run_stage(album, spawn=spawn)


@pytest.mark.parametrize("value", [len, "count", app])
def test_what_is_no_job_type_is_not_run(value: Any) -> None:
    with pytest.raises(
        UsageError, match=r"is no job type; give the type and the name of a stage, as in run_stage"
    ):
        run_stage(value, file="c")


def test_an_external_stage_is_not_run_here() -> None:
    with pytest.raises(UsageError, match="no function"):
        run_stage(Spinney().external("elsewhere"))


def test_a_subjob_needs_no_more_than_its_number_type_and_state() -> None:
    harness = StageHarness(children=[Child(4, "count", State.COMPLETED)], results={"expand": 1})

    assert harness.run(batch, "report", names=["a"]).value == {"completed": 1, "planned": 1}


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


def test_what_was_read_is_a_copy_that_changes_nothing() -> None:
    local = Spinney()

    @local.job
    def work(job: Job) -> list[Any]:
        job.data["seen"] = [1]
        job.data["seen"].append(2)
        job.results["early"].append(2)
        next(job.children()).params["n"] = 2
        job.data.append("given", 2)
        return [job.data["seen"], next(job.children()).params]

    data = {"given": [1]}
    child = Child(8, "part", State.COMPLETED, None, None, None, 0, {"n": 1})
    harness = StageHarness(data=data, results={"early": [1]}, children=[child])

    assert harness.run(work).value == [[1], {"n": 1}]
    assert harness.data == {"seen": [1], "given": [1, 2]}
    assert harness.results["early"] == [1]
    assert data == {"given": [1]}


def _large_entry(job: Job) -> None:
    job.data["x"] = "x" * 2**16


def _long_list(job: Job) -> None:
    for _ in range(7):
        job.data.append("x", "x" * 10_000)


def _no_list(job: Job) -> None:
    job.data["x"] = {"a": 1}
    job.data.append("x", 2)


def _large_value(job: Job) -> str:
    return "x" * 2**16


def _large_warning(job: Job) -> None:
    raise Warn(value="x" * 2**16)


def _beyond_one(job: Job) -> None:
    job.lock("free", amount=2)


def _beyond_the_declared(job: Job) -> None:
    job.lock("mirror:a", amount=4)
    job.lock("mirror:a", amount=5)


def _key_of_another_type(job: Job) -> None:
    job.submit(count.options(key="k"), file="a")
    job.submit(batch.options(key="k"), names=[])


def _key_of_a_subjob_of_another_type(job: Job) -> None:
    job.spawn(count.options(key="k"), file="a")
    job.spawn(batch.options(key="k"), names=[])


def _need_of_itself(job: Job) -> None:
    job.submit(count.options(needs=[job.id]), file="a")
    job.spawn(count.options(needs=[4711]), file="a")
    job.spawn(count.options(needs=[job.id]), file="a")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_large_entry, BadParameters, "'x' is larger than 64 kB"),
        (_long_list, BadParameters, "'x' is larger than 64 kB"),
        (_no_list, Refused, "'x' of job 3 is no list"),
        (_large_value, BadParameters, "is 65538 bytes long as JSON"),
        (_large_warning, BadParameters, "is 65538 bytes long as JSON"),
        (_beyond_one, UsageError, "has a capacity of 1, so that nobody can take 2"),
        (_beyond_the_declared, UsageError, "has a capacity of 4, so that nobody can take 5"),
        (_key_of_another_type, DuplicateKey, "'k' is taken by job 4"),
        (_key_of_a_subjob_of_another_type, DuplicateKey, "'k' is taken for ever by job 4"),
        (_need_of_itself, Cycle, "take 3 out of its needs"),
    ],
)
def test_what_a_node_refuses_is_refused(function: Any, error: type[Exception], message: str) -> None:
    local = Spinney()
    local.lock("mirror:*", capacity=4)
    with pytest.raises(error, match=message):
        run_stage(local.job(function))


def test_a_stage_that_runs_again_and_returns_nothing_has_no_result() -> None:
    local = Spinney()

    @local.job
    def work(job: Job) -> dict[str, Any] | None:
        return None if job.data.append("runs", 1) > 1 else dict(job.results)

    harness = StageHarness(results={"early": 1})
    harness.run(work)
    assert harness.results == {"early": 1, "work": {"early": 1}}
    harness.run(work)
    assert harness.results == {"early": 1}


async def test_an_async_stage_within_an_event_loop_says_how_to_run_it() -> None:
    with pytest.raises(UsageError, match=r"asyncio\.to_thread"):
        run_stage(batch, names=[])
    ran = await asyncio.to_thread(run_stage, batch, names=[])
    assert ran.value == 0
