"""``spinney explain``: why a job is not running, and what would change it."""

import json

from spinney.model.types import StageSpec, TypeSpec
from spinney.terminal.connection import open_local_store
from waiting import until

from .shell import Shell


def test_no_node_is_running(shell: Shell) -> None:
    job = shell.ok("submit", "double", "-p", "n=1").strip()

    assert shell.ok("explain", job).splitlines() == [f"job {job}: no node is running", "  spinney node"]


def test_the_command_that_it_names_can_be_given_as_it_stands(shell: Shell) -> None:
    need = shell.ok("submit", "double", "-p", "n=1").strip()
    job = shell.ok("submit", "double", "-p", "n=2", "--needs", need).strip()

    document = json.loads(shell.ok("explain", job, "--json"))

    assert document["cause"] == "needs"
    assert shell.ok(*document["command"].split()[1:]).startswith(f"job {need}: ")


def test_when_it_starts_if_that_can_be_known(shell: Shell) -> None:
    job = shell.ok("submit", "double", "-p", "n=1", "--at", "2030-01-31T08:00:00+00:00").strip()

    output = shell.ok("explain", job)

    assert "it is scheduled for a time still to come" in output
    assert "expected to start at 2030-01-31" in output


def test_several_are_explained_one_line_of_json_each(shell: Shell) -> None:
    jobs = [shell.ok("submit", "double", "-p", f"n={n}").strip() for n in range(3)]

    document = [json.loads(line) for line in shell.ok("explain", *jobs, "--json").splitlines()]

    assert [str(each["job_id"]) for each in document] == jobs


def test_one_that_is_not_there(shell: Shell) -> None:
    result = shell.call("explain", "77")

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.strip() == "spinney: there is no job 77; check its number in the list of jobs"


def test_of_several_those_that_are_there_are_explained(shell: Shell) -> None:
    job = shell.ok("submit", "double", "-p", "n=1").strip()

    result = shell.call("explain", "77", job)

    assert (result.returncode, result.stdout.splitlines()[0]) == (1, f"job {job}: no node is running")
    assert result.stderr == "spinney: there is no job 77; check its number in the list of jobs\n"


def test_a_job_of_a_type_that_the_running_node_does_not_know(working: Shell) -> None:
    with open_local_store(f"sqlite:///{working.folder}/spinney.db") as store:
        store.register([TypeSpec(name="elsewhere", stages=(StageSpec(name="s"),))], [])
    job = working.ok("submit", "elsewhere").strip()

    until(lambda: "no node is running" not in working.ok("explain", job))
    assert "no running node (n1) knows job type 'elsewhere'" in working.ok("explain", job)
    working.ok("cancel", job)
