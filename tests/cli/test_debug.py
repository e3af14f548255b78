"""A failed stage once more under a debugger, without a trace in the store."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from spinney.features.debug import stage_copy
from spinney.folders.folders import path
from spinney.terminal.connection import open_local_store
from waiting import until

from .shell import Shell, furnish
from .terminal import Terminal

HANDLERS = """
import asyncio
import os
from spinney import Hold, Job, Spinney

app = Spinney()
sort = app.pipeline("sort")

@app.job
def piece(n: int) -> None:
    pass

@sort.stage
def unpack(job: Job, n: int) -> int:
    (job.folder / "raw.txt").write_text("raw")
    job.data["lines"] = 3
    job.products.add("raw.txt", "Raw text")
    job.summary("unpacked 1 file")
    return n + 1

@sort.stage(max_attempts=1)
async def divide(job: Job, n: int) -> int:
    (job.folder / "raw.txt").write_text("changed by the stage")
    job.data["lines"] += 1
    job.lock("receiver:7")
    job.spawn_many(piece, [{"n": i} for i in range(n)])
    first = job.results["unpack"]
    if "MENDED" not in os.environ:
        raise ValueError(f"cannot divide {first}")
    return job.data["lines"] * first

async def lack() -> None:
    raise Hold("a part is missing")

@app.job
async def meet() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(lack())

app.program("script", ["sh", "-c", "echo from the program in $PWD; exit 3"])
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A store with a node that has run the pipeline ``sort`` of ``handlers.py``."""
    shell = furnish(tmp_path_factory.mktemp("debug"))
    (shell.folder / "handlers.py").write_text(HANDLERS)
    node = shell.start("node", "handlers:app", "--slots", "2", "--lease", "10m")
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        until(lambda: "sort" in store.types())
    yield shell
    node.terminate()
    node.communicate(timeout=30)


@pytest.fixture(scope="module")
def failed(shell: Shell) -> str:
    job = shell.ok("submit", "sort", "-p", "n=2").strip()
    assert shell.call("wait", job).returncode == 1
    return job


def everything(shell: Shell, job: str) -> tuple[object, ...]:
    """All that the store and the folder have of a job."""
    folder = next((shell.folder / "spinney.folders").rglob(f"{int(job):012d}"))
    files = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return (
        json.loads(shell.ok("show", job, "--json")),
        shell.ok("list", "--json"),
        shell.ok("locks", "--json"),
        files,
    )


def test_the_debugger_opens_where_the_stage_fails_and_nothing_is_recorded(shell: Shell, failed: str) -> None:
    before = everything(shell, failed)
    with Terminal(shell.folder, ["-m", "spinney", "debug", failed, "handlers:app"]) as terminal:
        terminal.wait_for("ValueError: cannot divide 3")
        terminal.wait_for("(Pdb)")
        terminal.type("p first * 1000\n")
        terminal.wait_for("3000")
        terminal.type("q\n")
        terminal.wait_for("subjobs spawned: 2")
        terminal.wait_for("locks taken: receiver:7")
        terminal.wait_for("data['lines']: 5")
        assert terminal.end() == 1
    assert everything(shell, failed) == before


def test_a_mended_stage_passes_with_the_results_of_earlier_stages(
    shell: Shell, failed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(shell, failed)
    monkeypatch.setenv("MENDED", "1")
    kept = tmp_path / "copies"

    output = shell.ok("debug", failed, "handlers:app", "--keep", str(kept))

    assert "the stage ended with: ok, 15" in output
    (copy,) = kept.rglob("raw.txt")
    assert copy.read_text() == "changed by the stage"
    assert everything(shell, failed) == before
    assert "is not empty" in shell.refused(2, "debug", failed, "handlers:app", "--keep", str(kept))


def test_output_that_is_not_copied_needs_no_room(
    shell: Shell, failed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENDED", "1")
    output = path(shell.folder / "spinney.folders", int(failed)) / ".spinney" / "much.stdout"
    output.parent.mkdir(exist_ok=True)
    output.touch()
    os.truncate(output, 1 << 43)

    shell.ok("debug", failed, "handlers:app", "--keep", str(tmp_path / "copies"))

    output.unlink()


def test_folders_that_do_not_fit_on_the_disk_are_not_copied(
    shell: Shell, failed: str, tmp_path: Path
) -> None:
    """Its copy would fill the disk, or the memory, of a host with nodes: it would have no holes."""
    folder = path(shell.folder / "spinney.folders", int(failed))
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 1 << 43)

    refusal = shell.refused(1, "debug", failed, "handlers:app", "--keep", str(tmp_path / "copies"))

    (folder / "sparse").unlink()
    assert "bytes, and " in refusal
    assert "have them copied to a disk with room: --keep FOLDER" in refusal
    assert list((tmp_path / "copies").iterdir()) == []


def test_what_vanishes_while_it_is_copied_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As drafts do that other jobs of the tree rename in the folder of their root."""
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("a", "drafts/b", "z/c"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "link").symlink_to("a")
    is_copied = stage_copy._is_copied

    def vanish_behind(path: Path) -> bool:
        copied = is_copied(path)
        if path.name == "a":
            (source / "a").unlink()
            (source / "link").unlink()
            shutil.rmtree(source / "drafts")
        return copied

    monkeypatch.setattr(stage_copy, "_is_copied", vanish_behind)

    stage_copy._copy_folder(source, target)

    assert [path.relative_to(target) for path in target.rglob("*") if path.is_file()] == [Path("z/c")]


def test_step_stops_at_the_first_line_of_the_stage(shell: Shell, failed: str) -> None:
    arguments = ["-m", "spinney", "debug", failed, "handlers:app", "--step", "--stage", "unpack"]
    with Terminal(shell.folder, arguments) as terminal:
        terminal.wait_for('-> (job.folder / "raw.txt").write_text("raw")')
        terminal.type("p n, dict(job.results)\n")
        terminal.wait_for("(2, {})")
        terminal.type("c\n")
        terminal.wait_for("the stage ended with: ok, 3")
        assert terminal.end() == 0


def test_a_stage_that_is_left_in_the_middle_has_not_passed(shell: Shell, failed: str) -> None:
    arguments = ["-m", "spinney", "debug", failed, "handlers:app", "--step", "--stage", "unpack"]
    with Terminal(shell.folder, arguments) as terminal:
        terminal.wait_for("(Pdb)")
        terminal.type("q\n")
        terminal.wait_for("the debugger was left before the stage ended")
        assert terminal.end() == 1


def test_so_it_is_within_a_task_group(shell: Shell) -> None:
    job = shell.ok("submit", "meet").strip()
    until(lambda: "held: a part is missing" in shell.ok("explain", job))
    arguments = ["-m", "spinney", "debug", job, "handlers:app", "--step", "--stage", "meet"]
    with Terminal(shell.folder, arguments) as terminal:
        terminal.wait_for("-> async with asyncio.TaskGroup() as group:")
        terminal.type("n\n")
        terminal.wait_for("-> group.create_task(lack())")
        terminal.type("q\n")
        terminal.wait_for("the debugger was left before the stage ended")
        assert terminal.end() == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_copy_is_removed_when_a_signal_ends_the_command(
    shell: Shell, failed: str, tmp_path: Path, number: signal.Signals
) -> None:
    arguments = ["-m", "spinney", "debug", failed, "handlers:app"]
    with Terminal(shell.folder, arguments, TMPDIR=str(tmp_path)) as terminal:
        terminal.wait_for("(Pdb)")
        assert len(list(tmp_path.iterdir())) == 1
        # The prompt is printed before Python waits for a line, and a signal between the two is noticed at the next key.
        until(lambda: psutil.Process(terminal.process.pid).status() == psutil.STATUS_SLEEPING)
        terminal.process.send_signal(number)
        assert terminal.process.wait(timeout=20) == -number
    assert list(tmp_path.iterdir()) == []


def test_a_signal_in_a_task_group_is_the_outcome_there_and_on_the_node(shell: Shell) -> None:
    job = shell.ok("submit", "meet").strip()
    until(lambda: "held: a part is missing" in shell.ok("explain", job))

    output = shell.ok("debug", job, "handlers:app", "--stage", "meet")

    assert "the stage ended with: hold, a part is missing" in output


@pytest.mark.parametrize("step", [[], ["--step"]])
def test_no_debugger_opens_where_the_parameters_do_not_fit_the_code_of_today(
    shell: Shell, failed: str, step: list[str]
) -> None:
    (shell.folder / "renamed.py").write_text(HANDLERS.replace("n: int", "count: int"))

    shown = shell.run("debug", failed, "renamed:app", *step)

    assert shown.returncode == 1
    assert "stage 'divide' of 'sort': parameter 'count' is missing" in shown.stdout
    assert "(Pdb)" not in shown.stdout


def test_the_debugger_opens_at_a_failure_of_the_stages_own_with_its_message(
    shell: Shell, failed: str
) -> None:
    (shell.folder / "failing.py").write_text(
        HANDLERS.replace("Hold, Job", "Fail, Hold, Job").replace("raise ValueError(", "raise Fail(")
    )

    shown = shell.run("debug", failed, "failing:app")

    assert shown.returncode == 1
    assert "Fail: cannot divide 3" in shown.stderr
    assert "features/debug" not in shown.stderr
    assert "(Pdb)" in shown.stdout


def test_a_program_runs_in_the_copy(shell: Shell) -> None:
    job = shell.ok("submit", "script").strip()
    shell.call("wait", job)
    shown = shell.run("debug", job, "handlers:app")
    assert shown.returncode == 1
    assert "from the program in /" in shown.stdout
    assert "spinney-debug-" in shown.stdout
    assert "exited with code 3" in shown.stdout


def test_what_cannot_be_debugged_is_refused(shell: Shell, failed: str) -> None:
    passed = shell.ok("submit", "piece", "-p", "n=1", "--wait").split()[0]
    assert "name one with --stage" in shell.refused(1, "debug", passed, "handlers:app")
    assert "no stage 'polish'" in shell.refused(2, "debug", failed, "handlers:app", "--stage", "polish")
    assert "has no job type 'sort'" in shell.refused(2, "debug", failed, "jobs:app")
    assert "no application is named" in shell.refused(2, "debug", failed)
    assert "is no debugger" in shell.refused(2, "debug", failed, "handlers:app", "--debugger", "json")


def test_products_and_summaries_are_shown_with_the_job(shell: Shell, failed: str) -> None:
    text = shell.ok("show", failed)
    assert f"product      Raw text: #{failed} raw.txt" in text
    assert f"summary      #{failed}: unpacked 1 file" in text
    assert "_ =" not in text
