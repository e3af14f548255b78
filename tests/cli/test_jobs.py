"""What stands in a store, seen without a node."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

import job_verbs
from contract.everything import copied
from spinney.define.params.redaction import REDACT_NOTHING
from spinney.features.files.job_folder import JobFiles
from spinney.folders.folders import path
from spinney.model.errors import Refused
from spinney.model.homes import DirectoryEntry, FetchResult
from spinney.model.values.times import now_us
from spinney.store.sql import open_store
from spinney.terminal.output import display

from .shell import Shell, furnish
from .terminal import Terminal


def test_init_tells_the_facts_and_may_be_repeated(bare: Shell) -> None:
    output = bare.ok("init")
    again = json.loads(bare.ok("init", "--json"))

    assert "SQLite" in output
    assert again["version"] in output
    assert again["folders"] == str(bare.folder / "spinney.folders")
    assert (bare.folder / "spinney.db").stat().st_mode & 0o777 == 0o600


def test_the_store_comes_from_option_environment_or_file(bare: Shell) -> None:
    bare.ok("init", "--store", "sqlite:///a.db")
    (bare.folder / "spinney.toml").write_text('[spinney]\nstore = "sqlite:///missing.db"\n')

    bare.ok("list", "--store", "sqlite:///a.db")
    bare.ok("list", SPINNEY_STORE="sqlite:///a.db")
    assert "missing.db" in bare.refused(1, "list")


def test_parameters_come_as_words_and_as_json(shell: Shell) -> None:
    (shell.folder / "params.json").write_text('{"n": 1, "name": "from the file"}')

    shell.ok("submit", "double", "--params-file", "params.json", "-p", "n=7")
    shell.ok("submit", "double", "-p", "n=8", "-p", "name=5")
    done = shell.run("submit", "double", "--params-file", "-", stdin='{"n": 9}')

    assert done.stdout == "3\n"
    params = [json.loads(shell.ok("show", n, "--json"))["job"]["params"] for n in ("1", "2", "3")]
    assert params == [{"n": 7, "name": "from the file"}, {"n": 8, "name": "5"}, {"n": 9}]


def test_a_file_of_jobs_is_submitted_as_one(shell: Shell) -> None:
    jobs = ({"type": "double", "params": {"n": 1}}, {"type": "tell", "params": {"text": "x"}})
    lines = "".join(json.dumps(job) + "\n" for job in jobs)

    done = shell.run("submit", "--jobs", "-", stdin=lines)

    assert done.stdout == "1\n2\n"
    assert [j["type"] for j in shell.listed("list")] == ["tell", "double"]


def test_the_numbers_of_submitted_jobs_are_a_document_for_programs(shell: Shell) -> None:
    one = json.loads(shell.ok("submit", "double", "-p", "n=1", "--json"))
    two = json.loads(shell.submit_lines('{"n": 1}\n{"n": 2}\n', "double", "--json").stdout)

    assert (one, two) == ({"ids": [1], "held": 0}, {"ids": [2, 3], "held": 0})


def test_options_are_kept(shell: Shell) -> None:
    shell.ok("queue", "slow", "--create")
    shell.ok("submit", "double", "-p", "n=1")
    shell.ok(
        "submit",
        "double",
        "-p",
        "n=2",
        "--queue",
        "slow",
        "--priority",
        "3",
        "--collection",
        "c",
        "--submitter",
        "me",
        "--share",
        "s",
        "--key",
        "k",
        "--needs",
        "1",
    )
    shell.ok("submit", "double", "-p", "n=3", "--at", "2h")

    job = json.loads(shell.ok("show", "2", "--json"))["job"]
    wanted = {"queue": "slow", "priority": 3, "collection": "c", "submitter": "me", "share": "s", "key": "k"}
    assert {k: job[k] for k in wanted} == wanted
    assert (job["state"], job["waits_for"]) == ("waiting", "needs")
    assert "waiting (needs)" in shell.ok("show", "2")
    assert json.loads(shell.ok("show", "3", "--json"))["job"]["state"] == "scheduled"


def test_a_job_that_no_node_can_run_says_so(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")

    message = "no node is running; start one with 'spinney node'"
    assert message in shell.ok("show", "1")
    assert message in shell.ok("list")
    assert json.loads(shell.ok("show", "1", "--json"))["note"] == message


def test_lists_are_filtered_and_counted(shell: Shell) -> None:
    for n in range(3):
        shell.ok("submit", "double", "-p", f"n={n}", "--collection", f"c{n % 2}")
    shell.ok("submit", "tell", "-p", "text=x", "--at", "2999-01-01")

    def numbers(*words: str) -> list[int]:
        return [j["id"] for j in shell.listed("list", *words)]

    assert numbers() == [4, 3, 2, 1]
    assert numbers("--oldest", "--limit", "2") == [1, 2]
    assert numbers("--oldest", "--after", "2") == [3, 4]
    assert numbers("--type", "tell") == [4]
    assert numbers("--state", "pending", "--collection", "c0") == [3, 1]
    assert json.loads(shell.ok("list", "--count", "--json", "--type", "double"))["pending"] == 3
    assert "scheduled" in shell.ok("list")


def cancel(shell: Shell, reason: str) -> None:
    """Cancel job 1 for a reason that the commands of people do not take."""
    with closing(open_store(f"sqlite:///{shell.folder}/spinney.db")) as store:
        job_verbs.cancel(store, 1, tree=False, by="code", reason=reason, now_us=now_us())


def test_a_list_is_printed_as_csv_whole(shell: Shell) -> None:
    shell.submit_lines("".join(f'{{"n": {n}}}\n' for n in range(60)), "double")

    rows = list(csv.DictReader(io.StringIO(shell.ok("list", "--csv", "--type", "double"))))

    assert len(rows) == 60
    assert {json.loads(row["params"])["n"] for row in rows} == set(range(60))
    assert len(shell.ok("list", "--csv", "--limit", "2").splitlines()) == 3


def test_what_users_wrote_cannot_move_the_cursor(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    cancel(shell, "red \x1b[31m and\nnew line")

    shown = shell.ok("list") + shell.ok("show", "1")

    assert "\x1b" not in shown
    assert "\\x1b[31m and\\nnew line" in shown


def test_a_superseded_job_is_marked(bare: Shell) -> None:
    jobs = copied(bare.folder / "spinney.db").jobs
    top, job = jobs["rerun parent"], jobs["superseded failed"]

    assert f"superseded   job {top} was set to run again without it\n" in bare.ok("show", str(job))
    assert json.loads(bare.ok("show", str(job), "--json"))["superseded_by"] == top
    assert "superseded   " not in bare.ok("show", str(top))
    marked = [line.split()[0] for line in bare.ok("tree", str(top)).splitlines() if "(superseded)" in line]
    assert marked == [str(jobs["superseded ok"]), str(job)]


def test_superseded_jobs_are_not_counted_as_children(bare: Shell) -> None:
    top = copied(bare.folder / "spinney.db").jobs["rerun parent"]

    assert "children   " not in bare.ok("show", str(top))
    assert not sum(json.loads(bare.ok("show", str(top), "--json"))["children"].values())


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"


def test_nothing_that_users_wrote_reaches_a_terminal_unescaped(shell: Shell) -> None:
    """Whatever else a command prints: of its own it prints no control character but the line feed."""
    shell.ok("submit", "tell", "-p", f"text={HOSTILE}")
    shell.ok("submit", "double", "-p", "n=1", "-p", f"name={HOSTILE}")
    cancel(shell, HOSTILE)
    shell.refused(2, "cancel", "2", "--reason", HOSTILE)
    shell.refused(2, "hold", "2", "--reason", HOSTILE)
    folder = path(shell.folder / "spinney.folders", 1)
    folder.mkdir(parents=True)
    (folder / f"{HOSTILE}.txt").write_text("")

    for words in (
        ["list"],
        ["show", "1"],
        ["show", "2"],
        ["tree", "1"],
        ["explain", "1", "2"],
        ["holds"],
        ["audit", "list"],
        ["files", "1"],
        ["retry", "1", "--dry-run"],
        ["queue", "default"],
        ["queues"],
        ["failures"],
        ["stats"],
        ["list", "--message", HOSTILE],
        ["submit", "tell", "-p", f"{HOSTILE}=1"],
        ["submit", HOSTILE],
        ["show", HOSTILE],
        [HOSTILE],
        ["list", HOSTILE],
        ["list", f"--{HOSTILE}"],
        ["files", "1", HOSTILE],
        ["wait", "1"],
        ["logs", "1"],
    ):
        result = shell.call(*words)
        printed = (result.stdout + result.stderr).replace("\n", "")
        assert printed.isprintable(), (words, printed)


def test_a_submission_tells_on_a_terminal_alone_that_no_node_could_run_it(shell: Shell) -> None:
    submit = ("submit", "double", "-p", "n=1")

    with Terminal(shell.folder, ["-m", "spinney", *submit]) as terminal:
        assert terminal.end() == 0
        assert terminal.raw == b"1\r\nspinney: no node is running; start one with 'spinney node'\r\n"
    assert shell.call(*submit).stderr == ""
    with Terminal(shell.folder, ["-m", "spinney", *submit, "--at", "2999-01-31T08:00"]) as terminal:
        assert terminal.end() == 0
        assert terminal.raw == b"3\r\n"


def test_a_folder_that_a_stage_replaced_by_a_link_is_refused_with_what_to_do(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    folder = path(shell.folder / "spinney.folders", 1)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to("/etc")

    refusal = shell.refused(1, "files", "1")

    assert refusal == (
        "spinney: the folder of job 1 leads through a link, and links are not followed; on a host that has it, "
        "check its permissions, and move away what is not a folder\n"
    )


def test_a_folder_that_may_not_be_read_is_not_to_be_moved_away() -> None:
    class Forbidding:
        def get(self, path: str, *, start: int, length: int) -> FetchResult:
            return FetchResult(error="cannot be read there (Permission denied)")

    files = JobFiles(1, Forbidding(), REDACT_NOTHING)  # type: ignore[arg-type]

    with pytest.raises(Refused, match=r"denied\); on a host that has it, check its permissions"):
        list(files.everything())


def test_a_folder_whose_name_is_no_text_hides_no_other_file(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    folder = path(shell.folder / "spinney.folders", 1)
    inner = folder / "a" / os.fsdecode(b"caf\xe9")
    inner.mkdir(parents=True)
    for file in (inner / "1.txt", folder / "a" / "2.txt", folder / "3.txt"):
        file.touch()

    files = [json.loads(line) for line in shell.ok("files", "1", "--json").splitlines()]

    assert [(file["path"], file["kind"]) for file in files] == [
        ("3.txt", "file"),
        ("a/2.txt", "file"),
        ("a/caf\\xe9", "folder"),
    ]


def test_a_host_that_does_not_answer_ends_the_list() -> None:
    class Silent:
        def __init__(self) -> None:
            self.paths: list[str] = []

        def get(self, path: str, *, start: int, length: int) -> FetchResult:
            self.paths.append(path)
            if path:
                raise Refused("no node of that host answers")
            return FetchResult(names=tuple(DirectoryEntry(name, "folder", 0) for name in "ab"))

    silent = Silent()

    with pytest.raises(Refused, match="no node of that host answers"):
        list(JobFiles(1, silent, REDACT_NOTHING).everything())  # type: ignore[arg-type]

    assert silent.paths == ["", "a"]


def test_a_file_is_shown_without_its_escapes_on_a_terminal_alone(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    folder = path(shell.folder / "spinney.folders", 1)
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"\x1b]0;owned\x07text\n")

    with Terminal(shell.folder, ["-m", "spinney", "files", "1", "a.txt"]) as terminal:
        assert terminal.end() == 0
        assert terminal.raw == b"\\x1b]0;owned\\x07text\r\n"
    assert shell.ok("files", "1", "a.txt") == "\x1b]0;owned\x07text\n"


def test_cancel_says_what_it_did(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")

    assert shell.ok("cancel", "1", "--by", "ann") == "job 1 is cancelled\n"
    shown = shell.ok("show", "1")
    assert "cancelled" in shown
    assert "retry, rerun, delete" in shown
    assert shell.ok("cancel", "1", "--tree") == "1 job is left as it is: there was nothing to change\n"


def test_deleting_leaves_a_tombstone(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    shell.ok("cancel", "1")

    shell.ok("delete", "1")

    assert json.loads(shell.ok("show", "1", "--json"))["job"]["state"] == "deleted"


@pytest.fixture(scope="module")
def long_list(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """1,000 jobs: more than a pipe holds, and its reader reads at once."""
    shell = furnish(tmp_path_factory.mktemp("long"))
    lines = "".join(f'{{"n": {n}}}\n' for n in range(1000))
    assert shell.submit_lines(lines, "double").stdout.endswith("\n1000\n")
    return shell


@pytest.mark.parametrize("how", [["list", "--json"], ["list"], ["tree", "1", "--json"]], ids=" ".join)
def test_a_reader_that_leaves_early_is_no_error(long_list: Shell, how: list[str]) -> None:
    shell = long_list
    spinney = subprocess.Popen(
        [sys.executable, "-m", "spinney", *how, "--limit", "1000"],
        cwd=shell.folder,
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert spinney.stdout is not None
    assert spinney.stderr is not None

    spinney.stdout.readline()
    spinney.stdout.close()

    assert spinney.stderr.read() == b""
    assert spinney.wait(20) == 0, "the command did what it was asked; that the rest was not read is no error"


def test_ctrl_c_ends_a_wait_quietly(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    waiting = shell.start("wait", "1")
    assert waiting.stdout is not None
    assert "1 pending" in waiting.stdout.readline()

    waiting.send_signal(signal.SIGINT)

    _, err = waiting.communicate(timeout=20)
    assert (waiting.returncode, err) == (130, "")


def test_help_names_every_command(bare: Shell) -> None:
    output = bare.ok("--help")

    for command in (
        "init",
        "node",
        "submit",
        "list",
        "show",
        "tree",
        "wait",
        "logs",
        "retry",
        "rerun",
        "release",
        "cancel",
        "delete",
    ):
        assert f"  {command} " in output
    assert bare.ok("--version").startswith("spinney ")


def test_a_time_that_no_calendar_shows_is_shown_as_it_is_stored() -> None:
    assert display.format_time(None) == ""
    assert display.format_time(1_900_000_000_000_000).startswith("2030-03-1")
    assert display.format_time(2**63 - 1) == f"{2**63 - 1} µs from 1970"


def test_a_settled_job_is_assigned_to_another_collection(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1", "--collection", "gulls")
    assert "wait until it has settled" in shell.refused(1, "relabel", "1", "terns")
    shell.ok("cancel", "1")
    assert "cannot name a collection" in shell.refused(2, "relabel", "1", "common terns")

    assert "job 1 and the jobs below it belong to terns" in shell.ok("relabel", "1", "terns")

    assert [job["id"] for job in shell.listed("list", "--collection", "terns", "--state", "cancelled")] == [1]
    shell.ok("relabel", "1")
    assert json.loads(shell.ok("show", "1", "--json"))["job"]["collection"] is None
