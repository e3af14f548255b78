"""What cannot be meant, or is not allowed: one sentence that says what to do, and nothing is stored."""

import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from servers import postgres_schema
from small_disk import small_disk
from spinney.model.errors import StoreUnavailable
from spinney.store.sql import open_store

from .shell import Shell


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["frobnicate"], "No such command"),
        (["lst"], "No such command 'lst' (did you mean 'list'?); '"),
        (["help"], "there is no command 'help'; write 'spinney --help'"),
        (["help", "list", "--json"], "there is no command 'help'; write 'spinney list --help'"),
        (["version"], "there is no command 'version'; write 'spinney --version'"),
        (["show"], "Missing argument"),
        (["show", "one"], "Invalid value for 'JOB': 'one' should be a whole number; '"),
        (["list", "--csv", "--json"], "--csv and --json exclude each other; leave one out"),
        (["list", "--csv", "--count"], "--csv and --count exclude each other; leave one out"),
        (["show", "0"], "Invalid value for 'JOB': '0' should be greater than or equal to 1; '"),
        (["priority", "1", "high"], "'high' should be a whole number; '"),
        *[
            ([verb, str(10**12)], "999999999999")
            for verb in (
                "show",
                "wait",
                "logs",
                "tree",
                "retry",
                "rerun",
                "release",
                "cancel",
                "delete",
            )
        ],
        (["show", str(2**70)], "999999999999"),
        *[
            (["list", option, number], f"Invalid value for '{option}'")
            for option in ("--root", "--parent", "--after")
            for number in ("0", str(10**12))
        ],
        (["list", "--type", "caf\udce9"], "not valid UTF-8"),
        (["list", "--submitter", "caf\udce9"], "not valid UTF-8"),
        (["submit", "double", "-p", "n=1", "--submitter", "caf\udce9"], "not valid UTF-8"),
        (["submit", "double", "-p", "n=1", "--submitter", "a\x01b"], r"'a\x01b' cannot be a user's name"),
        (["cancel", "1", "--by", "a\x01b"], r"'a\x01b' cannot be a user's name"),
        (["submit", "double", "-p", "n=1", "-p", "name=\udce9"], "not valid UTF-8"),
        (["cancel", "1", "--reason", "\udce9"], "not valid UTF-8"),
        (["list", "--limit", "many"], "--limit"),
        (["list", "--no-such"], "--no-such"),
        (["list", "--state", "runing"], "did you mean 'running'"),
        (["submit"], "name a job type"),
        (["submit", "dubble", "--param", "n=1"], "did you mean 'double'"),
        (["submit", "double"], "parameter 'n' is missing"),
        (["submit", "double", "-p", "n=two"], "'n' must be a whole number"),
        (["submit", "double", "-p", "n=1", "-p", "nam=x"], "did you mean 'name'"),
        (["submit", "double", "-p", "n"], "--param name=value"),
        (["submit", "double", "-p", "n=1", "-p", "n=2"], "given twice"),
        (["submit", "double", "-p", "n=1", "--queue", "../up"], "cannot name a queue"),
        (["submit", "double", "-p", "n=1", "--priority", "100"], "0 (first) to 99 (last)"),
        (
            ["submit", "double", "-p", "n=1", "--at", "tomorrow"],
            "--at 'tomorrow' is no time; write how long from now",
        ),
        (["submit", "double", "-p", "n=1", "--needs", "x"], "--needs 12"),
        *[
            (["submit", "double", "-p", "n=1", "--needs", n], "(1 to 999999999999)")
            for n in ("0", str(10**12), "9" * 5000)
        ],
        *[
            (["submit", "double", "-p", "n=1", "--at", at], "years 1970 to 8999")
            for at in ("1969-12-31T00:00+00:00", "9999-12-31T23:59+00:00", "0001-01-01T00:00+01:00")
        ],
        *[(["submit", "double", "-p", "n=1", "--at", at], "--at") for at in ("0001-01-01", "9999-13-01")],
        (["list", "--store", "sqlite:///:memory:"], "must be a file"),
        (["--store", "spinney.db", "list"], "the options of a command follow its name, as in 'spinney list"),
        (["list", "--store", "sqlite:///"], "write it as sqlite:///spinney.db or"),
        (["submit", "double", "-p", "n=1", "--key", "a\nb"], "cannot be a key"),
        (["submit", "double", "--params-file", "gone.json"], "cannot read gone.json"),
        (["submit", "double", "--params-file", "jobs.py"], "jobs.py is not JSON"),
        (["submit", "double", "--jobs", "x", "-p", "n=1"], "leave out --param"),
        (["node"], "no application is named"),
        (["node", "jobs.py"], "module:attribute"),
        *[
            ([command, "jobs:app", "--slots", n], "Invalid value for '--slots'")
            for command in ("node", "up")
            for n in ("0", "-1", "10001", "9" * 30)
        ],
        *[(["node", "jobs:app", "--lease", lease], "lease_period_s is") for lease in ("1", "1e300")],
        (["node", "jobs:app", "--lease", "-1"], "--lease must be at least 0 seconds"),
        *[(["node", "jobs:app", "--drain", limit], "--drain") for limit in ("-1", "inf", "nan")],
        (["node", "jobs:app", "--drain", "1e300"], "drain_limit_s is"),
        *[(["slots", "n1", n], "1 to 10,000") for n in ("0", "10001", "9" * 30)],
        (["audit", "list", "--after", str(2**70)], "--after"),
        (["webhook", "deliveries", "w", "--after", str(2**70)], "--after"),
        (["tree", "1", "--limit", str(2**70)], "--limit"),
        (["node", "jobs:app", "--name", "../n"], "cannot name a node"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_code_2(
    untouched: Shell, words: list[str], message: str
) -> None:
    assert message in untouched.refused(2, *words)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"n": 1}\n{"n": "x"}\n', "line 2"),
        ('{"n": 1}\nno json\n', "line 2 is no JSON"),
        ('{"n": 1}\n[]\n', "line 2"),
    ],
)
def test_of_a_list_with_one_bad_line_nothing_is_stored(untouched: Shell, lines: str, message: str) -> None:
    (untouched.folder / "jobs.jsonl").write_text(lines)

    assert message in untouched.refused(2, "submit", "double", "--jobs", "jobs.jsonl")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "99"], "there is no job 99"),
        (["tree", "99"], "there is no job 99"),
        (["logs", "99"], "there is no job 99"),
        (["retry", "99"], "there is no job 99"),
        (["cancel", "99"], "there is no job 99"),
        (["delete", "99"], "there is no job 99"),
        (["submit", "double", "-p", "n=1", "--needs", "99"], "there is no job 99"),
    ],
)
def test_a_job_that_is_not_there_is_code_1(untouched: Shell, words: list[str], message: str) -> None:
    assert message in untouched.refused(1, *words)


def test_what_the_state_of_a_job_forbids_is_code_1(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1", "--key", "k")

    assert "cancel it" in shell.refused(1, "submit", "double", "-p", "n=2", "--key", "k")
    for verb in ("retry", "rerun", "release", "delete"):
        shell.refused(1, verb, "1")
    assert json.loads(shell.ok("show", "1", "--json"))["job"]["state"] == "pending"


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('[spinney]\nstor = "sqlite:///x.db"\n', "did you mean 'store'"),
        ("[spinney]\nstore = 5\n", "must be text in quotes"),
        ("store =", "is not valid TOML"),
        ('[spinney]\nstore = "spinney.db"\n', "sqlite:///spinney.db"),
    ],
)
def test_a_configuration_at_fault_is_named(bare: Shell, toml: str, message: str) -> None:
    (bare.folder / "spinney.toml").write_text(toml)

    assert message in bare.refused(2, "list")


def test_a_process_of_its_own_ends_with_the_code(bare: Shell) -> None:
    usage, state = bare.run("list", "--limit", "x"), bare.run("list")

    assert (usage.returncode, state.returncode) == (2, 1)
    assert "Traceback" not in usage.stderr + state.stderr


def test_where_there_is_no_store_init_is_named(bare: Shell) -> None:
    assert "spinney init" in bare.refused(1, "list")
    assert list(bare.folder.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["list"], ["init"], ["submit", "double", "-p", "n=1"], ["node", "jobs:app"]]
)
def test_a_file_that_is_no_database_is_left_alone(shell: Shell, words: list[str]) -> None:
    garbage = b"this is no database at all, but a letter" * 100
    (shell.folder / "letter.db").write_bytes(garbage)

    ask = shell.run if words[0] == "node" else shell.call
    done = ask(*words, "--store", "sqlite:///letter.db")

    assert done.returncode == 1
    assert "letter.db" in done.stderr
    assert "Traceback" not in done.stderr
    assert (shell.folder / "letter.db").read_bytes() == garbage


def test_a_command_says_who_has_the_store_locked_and_gives_up_in_the_end(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.store.sql.connection.sqlite.TELL_AFTER_S", 0.02)
    monkeypatch.setattr("spinney.store.sql.connection.sqlite.PATIENCE_S", 0.2)
    foreign = sqlite3.connect(shell.folder / "spinney.db", isolation_level=None)
    foreign.execute("begin exclusive")

    result = shell.call("submit", "double", "-p", "n=1")

    assert result.returncode == 1
    waiting, given_up = result.stderr.splitlines()
    assert waiting.startswith("spinney: waiting for ")
    assert f"spinney.db, which is locked by process {os.getpid()} (" in waiting
    assert "end its transaction there, or close that program, then do it again" in given_up
    assert shell.ok("list", "--json") == ""
    foreign.close()


def test_a_current_folder_that_was_removed_is_named(bare: Shell) -> None:
    gone = bare.folder / "gone"
    gone.mkdir()
    code = (
        f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); "
        "from spinney.cli import main; sys.exit(main.run(['list']))"
    )

    # As for the installed command, which does not look for modules in the current folder: Python 3.13.0 fails there.
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], env=bare.environment(), capture_output=True, text=True
    )

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("spinney: the current folder was removed; change to an existing one (cd)")


def test_what_the_encoding_of_the_output_lacks_is_escaped(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1", "-p", "name=Grün 🌳")
    result = subprocess.run(
        [sys.executable, "-m", "spinney", "show", "1"],
        cwd=shell.folder,
        capture_output=True,
        env=shell.environment(PYTHONIOENCODING="latin-1"),
    )

    assert (result.returncode, result.stderr) == (0, b"")
    assert "Grün \\U0001f333".encode("latin-1") in result.stdout


def test_another_programs_database_is_left_alone(bare: Shell) -> None:
    with sqlite3.connect(bare.folder / "other.db") as db:
        db.execute("CREATE TABLE mine (a)")

    assert "spinney init" in bare.refused(1, "list", "--store", "sqlite:///other.db")


def test_a_folder_that_cannot_be_written_is_named(bare: Shell) -> None:
    assert "/proc/" in bare.refused(1, "init", "--store", "sqlite:////proc/spinney/spinney.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(bare: Shell) -> None:
    bare.folder.chmod(0o500)
    try:
        assert "folder" in bare.refused(1, "init")
    finally:
        bare.folder.chmod(0o700)


@pytest.mark.parametrize(
    ("right", "message"),
    [
        (os.R_OK, "cannot read the store"),
        (os.W_OK, "which SQLite has to do even to read it; check the owner and rights .*, or read a backup"),
    ],
)
def test_who_has_no_right_to_a_store_learns_which_reading_takes(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, right: int, message: str
) -> None:
    def may(path: object, mode: int, **_: object) -> bool:
        return not mode & right

    monkeypatch.setattr(os, "access", may)  # as for a user without the right, whom root cannot be
    assert re.search(message, shell.refused(1, "list"))


@pytest.mark.parametrize(("killed", "without_index"), [(False, False), (True, False), (True, True)])
def test_on_a_read_only_file_system_a_store_is_read_and_not_written(
    bare: Shell, *, killed: bool, without_index: bool
) -> None:
    (bare.folder / "jobs.py").write_text("from spinney import Spinney\napp = Spinney()\n")
    with small_disk(bare.folder / "disk", 16) as disk:
        store = ("--store", f"sqlite:///{disk.folder}/spinney.db")
        bare.ok("init", *store)
        hold = ("hold", "--queue", "default", "--reason", "in the file", *store)
        bare.ok(*hold)
        if killed:  # so that what was written last is only in the log
            write = (
                "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
                "db.execute(\"update holds set reason = 'in the log'\"); db.commit(); os._exit(0)"
            )
            subprocess.run([sys.executable, "-c", write, str(disk.folder / "spinney.db")], check=True)
        if without_index:  # as in a copy of the file and its log
            (disk.folder / "spinney.db-shm").unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)

        assert ("in the log" if killed else "in the file") in bare.ok("holds", *store)
        assert "its file system is read-only" in bare.refused(1, *hold)
        if killed:
            return
        node = bare.run("node", "jobs:app", *store)

    assert (node.returncode, node.stderr.count("\n")) == (2, 1), node.stderr
    assert "not mounted read-only" in node.stderr


@contextmanager
def one_descriptor_left() -> Iterator[None]:
    """Let this process have one more file open at a time within the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept: list[int] = []
    with suppress(OSError):
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (max(int(fd.name) for fd in Path("/proc/self/fd").iterdir()) + 1, hard)
        )
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))
    os.close(kept.pop())
    try:
        yield
    finally:
        for descriptor in kept:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_many_open_files_are_told_from_missing_rights(shell: Shell) -> None:
    with closing(open_store(f"sqlite:///{shell.folder}/spinney.db")) as store:
        with (
            one_descriptor_left(),
            pytest.raises(StoreUnavailable, match="Too many open files; raise the limit"),
        ):
            store.nodes()
        assert store.nodes() == []


def test_a_read_only_server_is_told_from_one_that_is_away(bare: Shell) -> None:
    (bare.folder / "spinney.toml").write_text('[spinney]\nfolders = "folders"\n')
    with postgres_schema() as url:
        bare.ok("init", "--store", url)
        standby = f"{url}&options=-c%20default_transaction_read_only%3Don"

        output = bare.refused(1, "hold", "--type", "x", "--reason", "y", "--store", standby)

    assert "is read-only: it is a standby" in output


def test_folders_of_another_store_are_refused(shell: Shell) -> None:
    (shell.folder / "spinney.toml").write_text(f'[spinney]\nfolders = "{shell.folder}/spinney.folders"\n')

    output = shell.refused(1, "init", "--store", "sqlite:///second.db")

    assert f"{shell.folder}/spinney.folders belongs to another store" in output
    assert "below [spinney] in spinney.toml" in output
    assert not list(shell.folder.glob("second.db*")), "nothing was made"


def test_folders_of_another_store_are_refused_to_an_empty_file(shell: Shell) -> None:
    (shell.folder / "spinney.toml").write_text(f'[spinney]\nfolders = "{shell.folder}/spinney.folders"\n')
    second = shell.folder / "second.db"
    second.touch()

    assert "belongs to another store" in shell.refused(1, "init", "--store", f"sqlite:///{second}")
    assert second.stat().st_size == 0, "nothing was made"


def test_folders_of_another_store_are_refused_to_a_server_without_a_store(shell: Shell) -> None:
    (shell.folder / "spinney.toml").write_text(f'[spinney]\nfolders = "{shell.folder}/spinney.folders"\n')
    with postgres_schema() as url:
        output = shell.refused(1, "init", "--store", url)

        assert "belongs to another store" in output
        assert "no Spinney store" in shell.refused(1, "list", "--store", url), "nothing was made"


def test_folders_of_another_store_are_refused_to_a_store_that_is_there(shell: Shell) -> None:
    shell.ok("init", "--store", "sqlite:///second.db")
    (shell.folder / "spinney.toml").write_text(f'[spinney]\nfolders = "{shell.folder}/spinney.folders"\n')

    assert "belongs to another store" in shell.refused(1, "init", "--store", "sqlite:///second.db")
    shell.ok("init")


def test_a_node_in_a_folder_whose_path_is_not_utf8_says_so(shell: Shell) -> None:
    folder = Path(os.fsdecode(os.fsencode(shell.folder) + b"/caf\xe9"))
    folder.mkdir()

    assert Shell(folder).refused(2, "node", "jobs:app") == (
        f"spinney: the path {shell.folder}/caf\\udce9 is not valid UTF-8, so that no node can work there; rename the "
        "folder\n"
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [("jobs:ap", "it has: app"), ("broken:app", "ZeroDivisionError")],
)
def test_a_node_without_its_application_says_so(shell: Shell, target: str, message: str) -> None:
    (shell.folder / "broken.py").write_text("1 / 0\n")

    done = shell.run("node", target)

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_its_own_leaves_a_traceback_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from spinney.cli import commands, main

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("this should not be")

    monkeypatch.setattr(commands, "program", lambda: fail)

    assert main.run([]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "this should not be" in error
    file = Path(next(word for word in error.split() if word.endswith(".traceback,")).rstrip(","))
    assert "RuntimeError: this should not be" in file.read_text()
    file.unlink()


def test_no_refusal_shows_a_password(bare: Shell) -> None:
    (bare.folder / "spinney.toml").write_text('[spinney]\nfolders = "folders"\n')

    output = bare.refused(2, "list", "--store", "mysql://ann:secret@host/db")

    assert "'mysql://ann@host/db' is no URL of a store" in output


def test_making_a_store_shows_no_password(bare: Shell) -> None:
    (bare.folder / "spinney.toml").write_text('[spinney]\nfolders = "folders"\n')
    with postgres_schema() as url:
        parts = urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
        with_password = urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:secret@{host}"))

        output = bare.ok("init", "--store", with_password)

    assert "postgresql://" in output
    assert "secret" not in output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("list", "there are no jobs; 'spinney submit TYPE' makes one"),
        ("list --state failed", "no job matches"),
        ("list --after 7", "there is no job behind job 7"),
        ("schedule list", "there are no schedules; 'spinney schedule add NAME TYPE --every 1h' makes one"),
        ("inbox list", "there are no inboxes; 'spinney inbox add NAME FOLDER TYPE' makes one"),
        ("webhook list", "there are no webhooks; 'spinney webhook add NAME URL' makes one"),
        ("user list", "there are no users; 'spinney user add NAME --role admin' makes the first"),
        ("token list", "there are no tokens; 'spinney token make NAME' makes one"),
    ],
)
def test_an_empty_list_says_so(shell: Shell, words: str, sentence: str) -> None:
    assert shell.ok(*words.split()) == f"{sentence}\n"
    assert shell.listed(*words.split()) == []
