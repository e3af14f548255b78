"""Workers keep the frames of failed attempts beside their output, and of nothing else."""

import pytest
import pytest_asyncio
from executor_fixtures import host, shared_host

from spinney.postmortem.documents import read, summary

__all__ = ["host", "shared_host"]

APP = "frames_app:app"


@pytest_asyncio.fixture(loop_scope="module", params=[False, True], ids=["serial", "concurrent"])
async def worker(host, request):
    return host.keep(app=APP, concurrent=request.param, postmortem_bytes=2**20)


def frames(host, fence, stage):
    path = host.folder(fence) / ".spinney" / f"{stage}.{fence}.frames"
    return read(path.read_bytes()) if path.exists() else None


@pytest.mark.parametrize("stage", ["raises", "fails", "awaits"])
async def test_a_failure_leaves_its_frames(host, worker, stage):
    row = await host.run(worker, stage, '{"n": 3}', type_="kept")

    assert row["outcome"] == "error"
    (exception,) = frames(host, 1, stage)
    frame = exception.frames[-1]
    assert frame.function == stage
    assert summary(frame.variables["n"]) == "int = 3"
    assert (host.folder(1) / ".spinney" / f"{stage}.1.frames").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("stage", ["passes", "defers", "holds", "warns"])
async def test_other_outcomes_leave_none(host, worker, stage):
    await host.run(worker, stage, '{"n": 3}', type_="kept")

    assert not host.folder(1).exists()


async def test_a_type_may_do_without(host, worker):
    assert (await host.run(worker, "private", '{"n": 3}', type_="private"))["outcome"] == "error"
    assert not host.folder(1).exists()


@pytest.mark.parametrize("times", [2, 3000])
async def test_secret_parameters_are_in_no_frame(host, worker, times):
    await host.run(worker, "secretive", f'{{"pin": "{"x1y2z3" * times}"}}', type_="secretive")

    path = host.folder(1) / ".spinney" / "secretive.1.frames"
    assert b"spare" in path.read_bytes()
    assert b"x1y2z3" not in path.read_bytes()


@pytest.mark.parametrize("concurrent", [False, True])
async def test_an_attempt_whose_frames_cannot_be_described_has_failed_all_the_same(host, concurrent):
    worker = host.start(app=APP, concurrent=concurrent, postmortem_bytes=2**20, open_files=100)
    for fence, (stage, reason) in enumerate(
        [("speechless", "cannot be recorded"), ("exhausts", "Too many open files")], 1
    ):
        assert reason in (await host.run(worker, stage, '{"n": 0}', fence=fence, type_="kept"))["message"]


async def test_a_node_may_do_without(host):
    worker = host.start(app=APP, postmortem_bytes=0)
    await host.run(worker, "raises", '{"n": 3}', type_="kept")
    assert not host.folder(1).exists()


async def test_a_folder_that_cannot_be_written_changes_nothing_of_the_failure(host, worker):
    host.folder(1).mkdir(parents=True)
    (host.folder(1) / ".spinney").write_text("in the way")

    assert "division" in (await host.run(worker, "raises", '{"n": 3}', type_="kept"))["message"]


async def test_a_python_program_opts_in(host):
    worker = host.keep(app=APP, postmortem_bytes=2**20)

    assert (await host.run(worker, "program", type_="program"))["outcome"] == "error"
    (exception,) = frames(host, 1, "program")
    assert exception.name == "ZeroDivisionError"
    assert summary(exception.frames[-1].variables["rows"]) == "list (2)"
    assert "ZeroDivisionError" in host.printed(1, "stderr")


@pytest.mark.parametrize("times", [2, 3000])
async def test_secret_parameters_are_in_no_frame_of_a_program(host, times):
    worker = host.keep(app=APP, postmortem_bytes=2**20)
    params = f'{{"pin": "{"x1y2z3" * times}"}}'

    await host.run(worker, "secretive_program", params, type_="secretive_program")

    (path,) = (host.folder(1) / ".spinney").glob("*.frames")
    assert b"spare" in path.read_bytes()
    assert b"x1y2z3" not in path.read_bytes()
    assert b"123456" not in path.read_bytes()
    assert not list(path.parent.glob("*.json"))


@pytest.mark.parametrize(("type_", "most"), [("private_program", 2**20), ("program", 0)])
async def test_a_program_keeps_no_frames_where_its_type_or_node_does_without(host, type_, most):
    worker = host.keep(app=APP, postmortem_bytes=most)

    assert (await host.run(worker, type_, type_=type_))["outcome"] == "error"
    assert not list((host.folder(1) / ".spinney").glob("*.frames"))
