"""Program stages: how a program of any language gets its job and says what became of it."""

import json
import signal
from pathlib import Path

import pytest
import pytest_asyncio
from executor_fixtures import alive, host, shared_host

from spinney.define.job import Assignment, Job
from spinney.define.params.redaction import REDACT_ALL, REDACT_NOTHING, Redactor
from spinney.model.types import StageSpec
from spinney.model.values.paths import ROOT_TOKEN
from spinney.node.worker.program import ProgramRunner
from spinney.testing import StageHarness

__all__ = ["host", "shared_host"]


@pytest_asyncio.fixture(loop_scope="module")
async def run(host):
    worker = host.keep(postmortem_bytes=2**20)

    async def run(stage="script", *, fence=1, **params):
        return await host.run(worker, stage, json.dumps(params), fence=fence, type_="program")

    return run


async def test_a_program_gets_its_parameters_and_leaves_its_value(host, run):
    params = {
        "how": "result",
        "n": 3,
        "yes": True,
        "half": 0.5,
        "none": None,
        "list": [1],
        "a-b.c": "ü",
        "long": "x" * 4097,
    }
    detail = await run(fence=1270, **params)
    value = json.loads(detail["result"])
    folder = host.folder(1270)
    assert value["params"] == params
    assert value["argv"] == ["one", "two words"]
    assert value["cwd"] == str(folder)
    env = value["env"]
    env.pop("SPINNEY_LONG", None)  # of these tests themselves
    own = f"{folder}/.spinney/script.1270"
    assert env == {
        "SPINNEY_PARAMS": f"{own}.params.json",
        "SPINNEY_RESULT": f"{own}.result.json",
        "SPINNEY_POSTMORTEM": f"{own}.frames",
        "SPINNEY_JOB": "1270",
        "SPINNEY_TYPE": "program",
        "SPINNEY_STAGE": "script",
        "SPINNEY_ATTEMPT": "1",
        "SPINNEY_FENCE": "1270",
        "SPINNEY_PARAM_HOW": "result",
        "SPINNEY_PARAM_N": "3",
        "SPINNEY_PARAM_YES": "true",
        "SPINNEY_PARAM_HALF": "0.5",
        "SPINNEY_PARAM_A_B_C": "ü",
    }
    assert list((folder / ".spinney").iterdir()) == []


async def test_files_of_an_attempt_that_was_killed_do_not_stay(host, run):
    own = host.folder(5) / ".spinney"
    own.mkdir(parents=True)
    (own / "script.4.params.json").write_text('{"secret": 1}')
    (own / "script.4.stdout").write_text("kept")
    await run(fence=5)
    assert [file.name for file in own.iterdir()] == ["script.4.stdout"]


async def test_exit_codes_are_outcomes(host, run):
    cases = [
        ("script", 0, "ok", None),
        ("script", 75, "defer", "exited with code 75"),
        ("script", 1, "error", "exited with code 1"),
        ("script", 255, "error", "spinney logs"),
        ("table", 3, "warning", "exited with code 3"),
        ("table", 4, "hold", None),
        ("table", 5, "finish", None),
        ("table", 6, "not_applicable", None),
        ("table", 0, "error", "exited with code 0"),
        ("table", 75, "defer", None),
    ]
    for fence, (stage, code, outcome, message) in enumerate(cases, 1):
        detail = await run(stage, fence=fence, code=code) or {"outcome": "ok"}
        assert detail["outcome"] == outcome, (stage, code)
        assert message is None or message in detail["message"]
        if outcome == "error":
            assert detail["code"] == (code or None)
            error = json.loads(detail["error"])
            assert (error["type"], error["traceback"]) == ("Fail", "")


async def test_what_goes_wrong_is_told(host, run):
    cases = [
        ("script", {"how": "signal"}, "was killed by SIGSEGV", True),
        ("script", {"how": "signal", "number": 40}, "was killed by signal 40", True),
        ("script", {"how": "signal", "number": 9}, "was killed by SIGKILL (if memory ran out", True),
        ("script", {"how": "junk"}, "no JSON", False),
        ("script", {"how": "huge"}, "longer than 65536 bytes", False),
        ("missing", {}, "no program 'no-such-program-anywhere'", True),
        ("forbidden", {}, "chmod +x", True),
    ]
    for fence, (stage, params, message, retryable) in enumerate(cases, 1):
        detail = await run(stage, fence=fence, **params)
        assert detail["outcome"] == "error"
        assert message in detail["message"]
        assert detail["retryable"] is retryable


WITHOUT_LOADER = Path("/bin/true").read_bytes().replace(b"/ld-", b"/no-")


@pytest.mark.parametrize("is_script", [True, False])
async def test_a_program_whose_interpreter_or_loader_is_missing_is_not_called_missing_itself(
    host, run, is_script
):
    program = host.folder(1) / "windows.sh"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"#!/bin/sh\r\nexit 0\r\n" if is_script else WITHOUT_LOADER)
    program.chmod(0o755)

    message = (await run("windows"))["message"]

    assert "'./windows.sh' cannot be started: the interpreter that its first line names" in message
    assert "or the loader of a binary" in message


@pytest.mark.parametrize("how", ["fifo", "directory", "symlink", "unreadable-link"])
async def test_a_result_that_is_no_plain_file_is_refused_and_not_in_the_next_ones_way(host, run, how):
    detail = await run(how=how)
    assert (detail["outcome"], detail["retryable"]) == ("error", False)
    assert "the result file of the program" in detail["message"]
    assert "SPINNEY_RESULT" in detail["message"]
    assert list((host.folder(1) / ".spinney").iterdir()) == []
    assert (await run(how="result", fence=2))["outcome"] == "ok"


async def test_what_it_writes_is_the_attempts_output(host, run):
    assert await run(how="write") == {"outcome": "ok", "output": True}
    assert host.printed(1) == "to stdout\n"
    assert host.printed(1, "stderr") == "to stderr\n"


async def test_a_program_that_signals_its_group_does_not_hit_the_worker(host, run):
    detail = await run(how="group")
    assert "was killed by SIGTERM" in detail["message"]
    assert host.keep().alive
    assert host.exits == {}


async def test_a_program_that_ignores_term_ends_with_kill(host):
    worker = host.keep(postmortem_bytes=2**20)
    host.give(worker, "stubborn", (1, "{}"), type_="program")
    file = host.folder(1) / "pid"
    await host.until(file.exists)
    await worker.kill_attempt(0.1)
    assert not alive(int(file.read_text()))  # which only KILL can have done
    how = await host.ended(worker)
    # The worker itself heeds TERM, and has ended by it where the machine was quick.
    assert how.signal in (signal.Signals.SIGTERM.name, signal.Signals.SIGKILL.name)
    assert [line.fence for line in how.running] == [1]


async def test_parameters_that_mean_one_variable_fail_instead_of_hiding_one(run):
    detail = await run(**{"a-b": 1, "a_b": 2})
    assert (detail["outcome"], detail["retryable"]) == ("error", False)
    assert "would both be SPINNEY_PARAM_A_B in the environment of a program; rename one" in detail["message"]


@pytest.mark.parametrize(
    ("redactor", "named"),
    [
        (REDACT_NOTHING, {"SPINNEY_POSTMORTEM"}),
        (Redactor(frozenset({"word"}), ("secret",)), {"SPINNEY_POSTMORTEM", "SPINNEY_SECRETS"}),
        (REDACT_ALL, set()),
    ],
    ids=["nothing", "some", "all"],
)
def test_a_program_keeps_frames_only_where_it_can_be_told_what_to_hide(tmp_path, redactor, named):
    spec = StageSpec(name="show", program=("sh", "-c", "env > variables.txt"))
    (tmp_path / ROOT_TOKEN).touch()
    job = Job(Assignment(9, 40, "program", "show", 1, "{}", None, 9, tmp_path), StageHarness())

    ProgramRunner(spec, (), lambda params: redactor)("{}", job)

    variables = {line.partition("=")[0] for line in (job.folder / "variables.txt").read_text().splitlines()}
    assert variables & {"SPINNEY_POSTMORTEM", "SPINNEY_SECRETS"} == named
