"""The command line beside a node at work."""

import json
from pathlib import Path
from typing import Any

from contract.behind import sql_store
from spinney.model.types import StageSpec, TypeSpec
from spinney.model.values.paths import job_folder
from spinney.terminal.connection import open_local_store
from waiting import until

from .shell import Shell
from .terminal import Terminal


def submit(shell: Shell, *words: str) -> str:
    """The number of the job that was made."""
    return shell.ok("submit", *words).strip()


def shown_job(shell: Shell, job: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(shell.ok("show", job, "--json"))
    return document


def test_a_job_is_waited_for_and_shown(working: Shell) -> None:
    result = working.call("submit", "double", "-p", "n=21", "--wait")

    assert result.returncode == 0, result.stderr
    job = result.stdout.split("\n")[0]
    assert f"job {job} double completed" in result.stdout
    assert shown_job(working, job)["results"] == {"double": 42}
    assert [a["outcome"] for a in shown_job(working, job)["attempts"]] == ["ok"]
    assert "double = 42" in working.ok("show", job)


def test_a_job_that_is_submitted_and_waited_for_is_a_document_for_programs(working: Shell) -> None:
    done = working.call("submit", "double", "-p", "n=21", "--wait", "--json")

    assert done.returncode == 0, done.stderr
    job = json.loads(done.stdout)
    assert (job["state"], job["params"]["n"]) == ("completed", 21)
    assert done.stderr.splitlines()[0] == str(job["id"])


def test_a_failure_keeps_its_traceback_and_can_be_retried(working: Shell, tmp_path: Path) -> None:
    job = submit(working, "fragile", "-p", f"flag={tmp_path}/flag")

    failed = working.call("wait", job)

    assert failed.returncode == 1
    assert f"job {job} fragile failed" in failed.stdout
    assert "the flag is not up" in failed.stdout
    assert 'raise ValueError("the flag is not up")' in working.ok("show", job)
    (tmp_path / "flag").touch()
    assert f"job {job} goes on" in working.ok("retry", job)
    assert "completed" in working.ok("wait", job)


def test_what_a_job_writes_is_printed(working: Shell) -> None:
    job = submit(working, "tell", "-p", "text=hello")
    working.ok("wait", job)
    attempt = str(shown_job(working, job)["attempts"][0]["fence"])

    both = working.ok("logs", job)
    assert "hello" in both
    assert "to stderr" in both
    assert working.ok("logs", job, "--stderr").splitlines()[1:] == ["to stderr"]
    assert working.ok("logs", job, "--attempt", attempt, "--stdout") == "hello\n"
    assert "no attempt 7777777" in working.refused(2, "logs", job, "--attempt", "7777777")

    folder = working.folder / "spinney.folders" / job_folder(int(job)) / ".spinney"
    (folder / f"tell.{attempt}.stdout").write_text("no line feed")
    assert f"no line feed\n== tell, attempt {attempt}, stderr ==\nto stderr" in working.ok("logs", job)


def test_what_a_job_writes_is_harmless_on_a_terminal(working: Shell) -> None:
    job = submit(working, "tell", "-p", "text=\x1b[31mred")
    working.ok("wait", job)

    with Terminal(working.folder, ["-m", "spinney", "logs", job, "--stdout"]) as terminal:
        assert terminal.end() == 0
        assert b"\\x1b[31mred\r\n" in terminal.raw
        assert b"\x1b[31m" not in terminal.raw
    assert "\x1b[31mred" in working.ok("logs", job)


def test_output_that_was_lost_is_told_by_show_and_logs(working: Shell) -> None:
    job = submit(working, "unheard")
    working.ok("wait", job)
    (working.folder / "spinney.folders" / job_folder(int(job)) / ".spinney").unlink()

    lost = "some of its output was lost (18 bytes: "
    assert lost in working.ok("show", job)
    result = working.call("logs", job)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert result.stderr.startswith("spinney: unheard, attempt ")
    assert lost in result.stderr
    assert "has written nothing" not in result.stderr


def test_logs_are_followed_while_a_job_runs(working: Shell, tmp_path: Path) -> None:
    job = submit(working, "until", "-p", f"flag={tmp_path}/flag")
    following = working.start("logs", job, "--follow", "--stdout")
    assert following.stdout is not None
    assert "attempt" in following.stdout.readline()
    assert following.stdout.readline() == "started\n"

    (tmp_path / "flag").touch()

    rest, _ = following.communicate(timeout=20)
    assert (rest, following.returncode) == ("done\n", 0)


def test_a_running_job_is_cancelled(working: Shell, tmp_path: Path) -> None:
    job = submit(working, "until", "-p", f"flag={tmp_path}/never")
    until(lambda: shown_job(working, job)["job"]["state"] == "running")

    working.ok("cancel", job, "--reason", "not needed")

    assert "cancelled" in working.call("wait", job).stdout


def test_a_pipeline_is_retried_from_a_stage_and_run_again(working: Shell, tmp_path: Path) -> None:
    job = submit(working, "steps", "-p", f"flag={tmp_path}/flag")
    assert working.call("wait", job).returncode == 1
    (tmp_path / "flag").touch()

    working.ok("retry", job, "--from", "first")
    working.ok("wait", job)
    working.ok("rerun", job, "--from", "second")
    working.ok("wait", job)

    assert [(a["stage"], a["outcome"]) for a in shown_job(working, job)["attempts"]] == [
        ("first", "ok"),
        ("second", "error"),
        ("first", "ok"),
        ("second", "ok"),
        ("second", "ok"),
    ]
    assert "third" in working.call("rerun", job, "--from", "third").stderr


def test_a_tree_is_shown_and_deleted(working: Shell) -> None:
    job = submit(working, "parent", "-p", "n=3")
    working.ok("wait", job)

    tree = working.listed("tree", job)
    assert [(j["type"], j["parent_id"]) for j in tree] == [("parent", None)] + [("double", int(job))] * 3
    children = [str(j["id"]) for j in tree[1:]]
    assert "3 completed" in working.ok("show", job)
    assert f"\n  {children[0]} " in working.ok("tree", job)

    output = working.ok("delete", job)

    assert all(child in output for child in children)
    assert {shown_job(working, j)["job"]["state"] for j in (job, *children)} == {"deleted"}


def test_deleting_removes_what_a_job_wrote(working: Shell) -> None:
    job = submit(working, "tell", "-p", "text=x")
    working.ok("wait", job)
    folder = next(working.folder.glob(f"spinney.folders/*/*/*/{int(job):012d}"))

    working.ok("delete", job)

    assert not folder.exists()


def test_a_missing_program_fails_its_job_with_a_sentence(working: Shell) -> None:
    result = working.call("wait", submit(working, "missing"))

    assert result.returncode == 1
    assert "no-such-program-anywhere" in result.stdout


def test_a_type_that_no_running_node_knows_is_named(working: Shell) -> None:
    with open_local_store(f"sqlite:///{working.folder}/spinney.db") as store:
        store.register([TypeSpec(name="foreign", stages=(StageSpec(name="only"),))], [])
    job = submit(working, "foreign")

    assert "no running node knows the type 'foreign'" in working.ok("show", job)


def test_a_node_says_which_stages_its_code_has(working: Shell) -> None:
    with open_local_store(f"sqlite:///{working.folder}/spinney.db") as store:
        (node,) = store.nodes()

    assert node.knows("double", "double")
    assert not node.knows("double", "of_newer_code")


def test_a_list_of_jobs_is_waited_for(working: Shell) -> None:
    lines = "".join(f'{{"n": {n}}}\n' for n in range(300))

    done = working.submit_lines(lines, "double", "--wait")

    assert done.returncode == 0, done.stderr
    assert "300 of 300 settled: 300 completed" in done.stdout


def test_a_job_whose_parameters_cannot_be_read_fails_with_a_sentence_and_the_node_goes_on(
    working: Shell,
) -> None:
    working.ok("hold", "--queue", "default", "--reason", "damage it first")
    jobs = [submit(working, type_, "-p", "n=1") for type_ in ("double", "parent")]
    programs = [submit(working, "missing")]
    with (
        open_local_store(f"sqlite:///{working.folder}/spinney.db") as store,
        sql_store(store).database.write() as tx,
    ):
        tx.run(
            "update jobs set params = '{' where id in (select j.value from json_each(?) j)",
            (json.dumps([int(job) for job in jobs + programs]),),
        )

    working.ok("release", "--queue", "default")
    result = working.call("submit", "double", "-p", "n=21", "--wait")

    assert result.returncode == 0, result.stderr
    working.call("wait", *jobs, *programs)
    for job in jobs + programs:
        assert (
            shown_job(working, job)["job"]["state"],
            "cannot be read" in shown_job(working, job)["job"]["message"],
        ) == ("failed", True)
    assert "json-unreadable" in working.call("doctor").stdout
