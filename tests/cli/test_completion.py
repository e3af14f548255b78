"""What a shell offers when Tab is pressed."""

import contextlib
import io
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from contextvars import copy_context
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.main import get_group

from own_commands import own_commands
from spinney.cli import completer, shells
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Verb
from spinney.model.states import SETTLED, State
from spinney.store import completion_names
from spinney.terminal.command_index import COMMAND_MODULES, HEADINGS, SUMMARIES

from .shell import Shell, furnish
from .terminal import Terminal

SPINNEY = Path(sys.executable).with_name("spinney")
TYPES = ["double", "fragile", "missing", "parent", "steps", "tell", "unheard", "until"]
EVIL = [
    "$(touch X)",
    "`touch X`",
    "a;touch X",
    "a\ntouch X",
    "'$(touch X)'",
    '"; touch X; "',
    "a b",
    "-rf",
    "~",
    "*",
    "=ls",
    "a&b",
    "a|b",
    "a>b",
    "a\\b",
    "$HOME",
    "{a,b}",
    "!!",
    "#a",
    "a\x1b[2J",
    "a\tb",
    "(a)",
    "a?",
    "[a]",
    "^a^b",
]


JOB = (
    "insert into jobs (id, type, state, queue, priority, share, lineage, root_id, params, created_us, collection, "
    "submitter) values (?, 'double', 'held', 'net', 50, 0, '', 0, '{}', 0, ?, ?)"
)


NODE = (
    "(id, name, boot_id, host, pid, slots, state, beat, started_us, seen_us, version, types, schema_version)"
)
TYPE = "insert into types values (?, json_object('name', ?, 'stages', json_array()))"


Completer = Callable[..., "subprocess.CompletedProcess[str]"]


def offered(folder: Path, line: str, ask: Completer | None = None, **env: str) -> list[str]:
    """Return the completions that are offered for the last word of a line, by bash's protocol.

    With ``_run`` as ``ask`` the program itself is asked."""
    done = answered(folder, line, ask, **env)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    kind, *words = done.stdout.splitlines()
    assert kind in ("words", "files")
    return words


def answered(
    folder: Path, line: str, ask: Completer | None = None, **env: str
) -> "subprocess.CompletedProcess[str]":
    piece = line.rpartition(" ")[2]
    return (ask or _call)(
        folder, _SPINNEY_LINE=line, _SPINNEY_PIECE=piece, _SPINNEY_COMPLETE="complete_bash", **env
    )


def _call(folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """Do what ``_run`` does, but in this process, which saves the time that starting Python takes."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPINNEY_")}
    err = io.StringIO()
    with (
        tempfile.TemporaryFile() as out,
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment | env, clear=True),
        contextlib.redirect_stdout(io.TextIOWrapper(out, encoding="utf-8")),
        contextlib.redirect_stderr(err),
    ):
        code = copy_context().run(completer.print_completions, env[shells.VARIABLE])
        out.seek(0)
        output = out.read().decode()
    return subprocess.CompletedProcess((), code, output, err.getvalue())


def _run(folder: Path, *python: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the program itself."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPINNEY_")}
    argv = [sys.executable, *python, SPINNEY]
    return subprocess.run(argv, cwd=folder, env=environment | env, capture_output=True, text=True, timeout=60)


def change(folder: Path, *statements: tuple[str, tuple[object, ...]]) -> None:
    """Write into a store what its own verbs would not let in."""
    with closing(sqlite3.connect(folder / "spinney.db", isolation_level=None)) as database:
        for sql, values in statements:
            database.execute(sql, values)


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


@pytest.fixture
def rich(tmp_path: Path, first_rich: Shell) -> Shell:
    """A store that has a name of each kind."""
    shutil.copytree(first_rich.folder, tmp_path, dirs_exist_ok=True)
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def first_rich(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The one of which the others are copies."""
    shell = furnish(tmp_path_factory.mktemp("rich"))
    shell.ok("queue", "net", "--create")
    shell.ok(
        "submit", "double", "-p", "n=1", "--queue", "net", "--collection", "run:7", "--submitter", "ann@uni"
    )
    shell.ok("submit", "double", "-p", "n=2", "--queue", "net", "--collection", "run:8", "--submitter", "bob")
    shell.ok("schedule", "add", "nightly", "double", "-p", "n=1", "--every", "1h")
    shell.ok("schedule", "add", "weekly", "double", "-p", "n=1", "--every", "1h", "--paused")
    shell.ok("hold", "--queue", "net", "--reason", "it is down")
    shell.ok("hold", "--type", "tell", "--reason", "it is loud")
    shell.ok("user", "add", "ann@uni", "--role", "viewer", "--no-password")
    shell.ok("webhook", "add", "archive", "https://archive.example.org/told")
    shell.ok("inbox", "add", "uploads", "/srv/uploads", "double", "-p", "n=1")
    node = f"insert into nodes {NODE} values (?, ?, '', '', 1, 1, ?, 0, 0, 0, '', '[]', '0001')"
    parked = "insert into inactive_jobs (job_id, state, since_us, fingerprint) values (?, 'failed', 0, ?)"
    lock = "insert into locks (name, job_id, fence, since_us) values (?, ?, 1, 0)"
    change(
        shell.folder,
        (node, (1, "oak", "left")),
        (node, (2, "oak", "active")),
        (node, (3, "elm", "left")),
        ("insert into homes (id, mark, host, path) values (1, 'm', 'thor', '/f')", ()),
        (lock, ("receiver:SG-1", 1)),
        (lock, ("receiver:SG-1", 2)),
        (lock, ("two words", 1)),
        (parked, (101, "00ff00ff00ff00ff")),
        (parked, (102, "00ff00ff00ff00ff")),
        (parked, (103, "abcd000000000000")),
    )
    return shell


# --- what is offered -----------------------------------------------------------------------------


def test_users_are_offered(rich: Shell) -> None:
    assert offered(rich.folder, "spinney user disable a") == ["ann@uni"]
    assert offered(rich.folder, "spinney token make ci --user ") == ["ann@uni"]


def test_names_of_the_store_are_offered(shell: Shell) -> None:
    shell.ok("queue", "net", "--create")
    shell.ok("submit", "double", "-p", "n=1", "--queue", "net")

    assert offered(shell.folder, "spinney list --type ", _run) == TYPES
    assert offered(shell.folder, "spinney list --type t") == ["tell"]
    assert offered(shell.folder, "spinney list --type=t") == ["--type=tell"]
    assert offered(shell.folder, "spinney submit d") == ["double"]
    assert offered(shell.folder, "spinney stats --queue ") == ["default", "net"]
    assert offered(shell.folder, "spinney list --state c") == ["cancelled", "claimed", "completed"]
    assert offered(shell.folder, "spinney list --type steps --stage ") == ["first", "second"]
    assert {"first", "double"} <= set(offered(shell.folder, "spinney retry --from "))


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("list --collection ", ["run:7", "run:8"]),
        ("hold --collection run:8", ["run:8"]),
        ("submit double --submitter ", ["ann@uni", "bob"]),
        ("list --submitter b", ["bob"]),
        ("list --node ", ["elm", "oak"]),
        ("node jobs:app --name o", ["oak"]),
        ("doctor --repair --dead ", ["oak"]),
        ("rehome --host ", ["thor"]),
        ("schedule show ", ["nightly", "weekly"]),
        ("schedule pause ", ["nightly"]),
        ("schedule resume ", ["weekly"]),
        ("schedule add ", []),
        ("unlock ", ["receiver:SG-1"]),
        ("lock rec", ["receiver:SG-1"]),
        ("unlock receiver:SG-1 --job ", ["1", "2"]),
        ("unlock --reason gone rec", ["receiver:SG-1"]),
        ("release --hold ", ["1", "2"]),
        ("release --hold 1 --hold 2", ["2"]),
        ("retry --failure ", ["00ff00ff00ff00ff", "abcd000000000000"]),
        ("list --failure a", ["abcd000000000000"]),
        ("keep double ", sorted(SETTLED)),
        ("keep double completed ", ["declared", "forever"]),
        ("retry --state ", sorted(ALLOWED_STATES[Verb.RETRY])),
        ("user add cid --role ", ["viewer", "submitter", "operator", "admin"]),
        ("token make ci --role o", ["operator"]),
        ("webhook deliveries hook --outcome d", ["due", "delivered"]),
    ],
)
def test_at_each_place_what_can_be_given_there(rich: Shell, line: str, completions: list[str]) -> None:
    assert offered(rich.folder, f"spinney {line}") == completions


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("sta", ["stats", "stack"]),
        ("schedule p", ["pause"]),
        ("--ver", ["--version"]),
        ("audit --st", ["--steps", "--store"]),
        ("audit list --st", ["--steps", "--store"]),
        ("audit v", ["verify"]),
        ("retry --canary-w", ["--canary-wait"]),
        ("retry --json --js", []),
        ("submit double --para", ["--param", "--params-file"]),
        ("submit double -p n=1 --para", ["--param", "--params-file"]),
        ("list --he", ["--help"]),
        ("nonsense --st", []),
        ("list -- --st", []),
        ("list -yp --typ", ["--type"]),
    ],
)
def test_commands_and_options_are_offered(bare: Shell, line: str, completions: list[str]) -> None:
    assert offered(bare.folder, f"spinney {line}") == completions


def test_all_commands_are_offered_in_their_order(bare: Shell) -> None:
    assert offered(bare.folder, "spinney ", _run) == [
        *SUMMARIES,
        "disbatch",
        "ingest",
        "merritt",
        "monitor",
        "receivers",
    ]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("submit double --params-file ", "files"),
        ("submit double -p file=/e", "files"),
        ("audit export ", "files"),
        ("list --type ", "words"),
        ("list --type nothing", "words"),
        ("unlock ", "words"),
    ],
)
def test_files_are_left_to_the_shell_where_no_name_is_wanted(bare: Shell, line: str, kind: str) -> None:
    assert answered(bare.folder, f"spinney {line}").stdout.splitlines() == [kind]


def test_the_store_that_is_meant_is_asked(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    url = f"sqlite:///{shell.folder}/spinney.db"

    assert offered(elsewhere, "spinney list --type ") == []
    assert offered(elsewhere, f"spinney list --store {url} --type ") == TYPES
    assert offered(elsewhere, f"spinney list --store={url} --type ") == TYPES
    assert offered(elsewhere, f"spinney list --store '{url}' --type ") == TYPES
    assert offered(elsewhere, "spinney list --type ", _run, SPINNEY_STORE=url) == TYPES
    (elsewhere / "spinney.toml").write_text(f'[spinney]\nstore = "{url}"\n')
    assert offered(elsewhere, "spinney list --type ") == TYPES


def test_every_word_of_a_name_is_completed(shell: Shell) -> None:
    """Whatever command has such an option offers what the store knows."""
    completions = {
        "--type": TYPES,
        "--queue": ["default"],
        "--in-queue": ["default"],
        "--state": sorted(State),
    }
    possible = {verb.value: sorted(ALLOWED_STATES[verb]) for verb in Verb}
    seen = []
    with contextlib.chdir(shell.folder):
        for name, command in _commands(own_commands()):
            for parameter in command.params:
                for option in set(parameter.opts) & set(completions):
                    context = command.make_context(name, [], resilient_parsing=True)
                    values = [item.value for item in parameter.shell_complete(context, "")]
                    assert (
                        values == (possible.get(name) if option == "--state" else None) or completions[option]
                    )
                    seen.append((name, option))
    assert len(seen) > 15


def test_every_option_of_a_kind_knows_its_names() -> None:
    kinds = {
        "--type",
        "--queue",
        "--in-queue",
        "--state",
        "--stage",
        "--collection",
        "--submitter",
        "--node",
        "--hold",
        "--failure",
        "--dead",
    }
    bare = [
        (name, option)
        for name, command in _commands(own_commands())
        for parameter in command.params
        for option in set(parameter.opts) & kinds
        if parameter._custom_shell_complete is None
    ]
    assert bare == []


def test_the_catalogue_has_every_command_where_it_is() -> None:
    from importlib import import_module

    import typer

    assert sorted(COMMAND_MODULES) == sorted(name for under in HEADINGS.values() for name in under)
    for module in set(COMMAND_MODULES.values()):
        alone = typer.Typer()
        alone.add_typer(import_module(f"spinney.{module}").app)
        names = set(get_group(alone).commands)
        assert names == {name for name, home in COMMAND_MODULES.items() if home == module}


def _commands(commands: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command.commands, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


# --- names that shells would take for something else ----------------------------------------------


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_what_a_shell_would_evaluate_is_not_offered(rich: Shell, kind: str) -> None:
    for n, bad in enumerate(EVIL, 1000):
        change(
            rich.folder,
            (TYPE, (bad, bad)),
            ("insert into queues values (?, '{}')", (bad,)),
            (JOB, (n, bad, bad)),
            ("insert into locks (name, job_id, fence, since_us) values (?, 7, 1, 0)", (bad,)),
            (
                f"insert into nodes {NODE} values (?, ?, '', '', 1, 1, 'active', 0, 0, 0, '', '[]', '0001')",
                (n, bad),
            ),
            ("insert into schedules values (?, '{}', 0, null, null, '', 0)", (bad,)),
        )
    for line, good in (
        ("list --type ", TYPES),
        ("list --queue ", ["default", "net"]),
        ("list --collection ", ["run:7", "run:8"]),
        ("list --submitter ", ["ann@uni", "bob"]),
        ("list --node ", ["elm", "oak"]),
        ("unlock ", ["receiver:SG-1"]),
        ("schedule show ", ["nightly", "weekly"]),
    ):
        ask: Completer = _run if line.startswith("unlock") and kind == "bash" else _call
        done = ask(
            rich.folder,
            _SPINNEY_COMPLETE=f"complete_{kind}",
            _SPINNEY_LINE=f"spinney {line}",
            _SPINNEY_PIECE="",
            _TYPER_COMPLETE_ARGS=f"spinney {line}",
            _TYPER_COMPLETE_FISH_ACTION="get-args",
        )
        quoted = "\n".join('"' + name.replace(":", r"\\:") + '"' for name in good)
        script = {
            "bash": "\n".join(["words", *good]),
            "zsh": f"_arguments '*: :(({quoted}))'",
            "fish": "\n".join(good),
        }
        assert (done.stdout, done.stderr) == (f"{script[kind]}\n", ""), line


def test_what_is_being_typed_is_not_told_back(bare: Shell) -> None:
    for word in ("$(touch X)", "'; touch X; '", "--json=$(touch X)", "--run-dir=$(touch X)"):
        for line in (f"spinney submit {word}", f"spinney node --run-dir {word}", f"spinney node {word}"):
            ask: Completer = _run if line == "spinney submit $(touch X)" else _call
            done = ask(bare.folder, _SPINNEY_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
            assert (done.stdout, done.stderr) == ("_files\n", "")


# --- real shells ----------------------------------------------------------------------------------

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@contextlib.contextmanager
def bash(shell: Shell, home: Path, *, at: Path | None = None) -> Iterator[Terminal]:
    """An interactive bash of its own with the script that is shown, at its prompt."""
    script = _call(shell.folder, _SPINNEY_COMPLETE="source_bash").stdout
    (home / "rc").write_text(f"PS1='READY> '\nPATH={shlex.quote(str(SPINNEY.parent))}:$PATH\n{script}\n")
    (home / "inputrc").write_text(
        "set show-all-if-ambiguous on\nset bell-style none\nset page-completions off\n"
    )
    start = f"import os; os.execvp('bash', ['bash', '--noprofile', '--rcfile', {str(home / 'rc')!r}, '-i'])"
    env = {"HOME": str(home), "INPUTRC": str(home / "inputrc"), "HISTFILE": "/dev/null"}
    with Terminal(at or shell.folder, ["-c", start], columns=200, **env) as terminal:
        terminal.wait_for("READY>")
        yield terminal


@needs_bash
def test_bash_finds_the_store_and_completes_names_with_colons(
    rich: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home, away = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("away")
    url = f"sqlite:///{rich.folder}/spinney.db"
    change(rich.folder, ("update jobs set collection = 'solo:a=b@c:d'", ()))

    with bash(rich, home, at=away) as terminal:
        for typed, becomes in [
            (f"list --store {url} --type st", "--type steps "),
            (f"list --store={url} --type=st", "--type=steps "),
            (f'list --store "{url}" --type "st', '--type "steps" '),
            (f"list --store {url} --collection s", "--collection solo:a=b@c:d "),
            (f"list --store {url} --collection solo:", "--collection solo:a=b@c:d "),
            (f"list --store {url} --collection solo:a=", "--collection solo:a=b@c:d "),
            (f"list --store {url} --collection solo:a=b@", "--collection solo:a=b@c:d "),
            (f"list --store {url} --collection=solo:a=b", "--collection=solo:a=b@c:d "),
            (f"list --store {url} --collection 'solo:a", "--collection 'solo:a=b@c:d' "),
            (f"list --store {url} --collection solo\\:a", "--collection solo:a=b@c:d "),
            (f"unlock --store {url} rec", " receiver:SG-1 "),
            (f"list --store {url} --submitter ann@", "--submitter ann@uni "),
        ]:
            # What follows the Tab shows where the word that was completed ends.
            terminal.type(f"spinney {typed}\t| END")
            terminal.wait_for(lambda t, end=f"{becomes}| END": end in "".join(t.text.splitlines()))
            terminal.type("\x15\x0c")
            terminal.wait_for(lambda t: t.text.strip() == "READY>")


@needs_bash
def test_bash_runs_nothing_that_a_name_says(rich: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A name that stands alone is put on the line, where Enter would run what it says."""
    change(
        rich.folder,
        ("delete from types", ()),
        (TYPE, ("$(touch X)",) * 2),
        ("update jobs set collection = '`touch X`', submitter = ';touch X'", ()),
    )
    with bash(rich, tmp_path_factory.mktemp("home")) as terminal:
        for option in ("--type", "--collection", "--submitter"):
            terminal.type(f"spinney list {option} \t\r")
            terminal.wait_for(f"'{option}' requires")
        terminal.type("spinney list --type $(touch X\t\x15spinney list --collection '$(\t\x15echo D''ONE\r")
        terminal.wait_for("DONE")

    assert not (rich.folder / "X").exists()


@needs_bash
def test_bash_offers_files_only_where_one_may_stand(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (shell.folder / "zebra.json").write_text("{}")

    with bash(shell, tmp_path_factory.mktemp("home")) as terminal:
        terminal.type("spinney submit double --params-file ze\t| END")
        terminal.wait_for("--params-file zebra.json | END")
        terminal.type("\x15spinney submit double -p file=ze\t| END")
        terminal.wait_for("-p file=zebra.json | END")
        terminal.type("\x15spinney list --type ze\t| END")
        terminal.wait_for("--type ze| END")


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(bare: Shell, kind: str) -> None:
    ask: Completer = _run if kind == "bash" else _call
    script = ask(bare.folder, _SPINNEY_COMPLETE=f"source_{kind}").stdout

    assert f"_SPINNEY_COMPLETE=complete_{kind}" in script
    # The same that --show-completion prints and --install-completion writes.
    shown = subprocess.run(
        [SPINNEY, "--show-completion", kind],
        cwd=bare.folder,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert shown.stdout == script


@pytest.mark.parametrize("kind", ["zsh", "fish"])
def test_other_shells_are_told_what_each_command_does(bare: Shell, kind: str) -> None:
    line = {"_TYPER_COMPLETE_ARGS": "spinney hold", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}

    output = _call(bare.folder, _SPINNEY_COMPLETE=f"complete_{kind}", **line).stdout

    assert "hold" in output
    assert "List the active holds" in output


@pytest.mark.parametrize("kind", ["zsh", "fish"])
def test_a_name_with_a_colon_is_whole_in_other_shells(rich: Shell, kind: str) -> None:
    for line, word in (
        ("list --collection run:7", "run:7"),
        ("list --collection=run:7", "--collection=run:7"),
    ):
        env = {"_TYPER_COMPLETE_ARGS": f"spinney {line}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        output = _call(rich.folder, _SPINNEY_COMPLETE=f"complete_{kind}", **env).stdout
        quoted = word.replace(":", r"\\:")
        assert output == (f"{word}\n" if kind == "fish" else f"_arguments '*: :((\"{quoted}\"))'\n")


def test_help_tells_how_to_install_it(bare: Shell) -> None:
    assert "--install-completion" in bare.ok("--help")


# --- as if nobody had looked ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "toml", ["store =", '[spinney]\nstore = "nonsense"\n', '[spinney]\nstore = "sqlite:///:memory:"\n']
)
def test_a_configuration_at_fault_is_not_told_here(bare: Shell, toml: str) -> None:
    (bare.folder / "spinney.toml").write_text(toml)

    assert offered(bare.folder, "spinney list --type ") == []


LINES = ["list --type ", "list --type steps --stage ", "list --collection ", "unlock "]


KINDS = tuple(completion_names.SQL)


def names(url: str, kind: str, begins: str = "") -> list[str]:
    return completion_names.names(url, kind, begins, type=None, lock="receiver:SG-1", default=None)


def _absent(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _letter(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1000)


def _torn(path: Path) -> None:
    """Its first page is good, what the others hold is not."""
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9000])


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "create table types (name blob, spec int); insert into types values (x'ff00', 7), (5, 'no json');"
            "create table jobs (id integer primary key, collection, submitter);"
            "insert into jobs (collection, submitter) values (x'ff00', 5); create table nodes (id, name);"
        )


SPOILT = [_absent, _empty, _letter, _torn, _cut, _folder, _pipe, _foreign]


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda f: f.__name__[1:])
def test_of_what_is_no_store_nothing_is_said_or_made(
    rich: Shell, tmp_path_factory: pytest.TempPathFactory, spoil: Any
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    spoil(rich.folder / "spinney.db")
    before = files(rich.folder)

    for line in LINES:
        ask = _run if (spoil, line) == (_torn, LINES[0]) else _call
        done = answered(rich.folder, f"spinney {line}", ask, TMPDIR=str(temporary))
        assert (done.stderr, done.stdout) == ("", "words\n"), line
    url = f"sqlite:///{rich.folder}/spinney.db"
    assert {kind: suggested for kind in KINDS if (suggested := names(url, kind))} == {}
    assert files(rich.folder) == before
    assert list(temporary.iterdir()) == []


def test_an_error_of_its_own_is_not_told(bare: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    env = {"TMPDIR": str(temporary), "_SPINNEY_COMPLETE": "complete_bash"}

    for env_too in (
        {},
        {"_SPINNEY_LINE": ""},
        {"_SPINNEY_LINE": "spinney list", "_SPINNEY_PIECE": "elsewhere"},
    ):
        done = (_call if env_too else _run)(bare.folder, **env, **env_too)
        assert (done.stdout, done.stderr) == ("", "")
    for value in ("complete_nonsense", "nonsense", "_"):
        done = (_run if value == "nonsense" else _call)(bare.folder, **env | {"_SPINNEY_COMPLETE": value})
        assert (done.stdout, done.stderr, done.returncode) == ("", "", 1)
    assert list(temporary.iterdir()) == []


def test_looking_leaves_nothing_behind(rich: Shell) -> None:
    before = files(rich.folder)
    assert not [name for name in before if name.endswith(("-wal", "-shm"))]

    assert offered(rich.folder, "spinney list --collection ", _run) == ["run:7", "run:8"]
    url = f"sqlite:///{rich.folder}/spinney.db"
    assert [kind for kind in KINDS if not names(url, kind)] == []

    assert files(rich.folder) == before


KILLED = """
import os, signal, sys
from spinney.model.settings.queues import QueueSpec
from spinney.store.sql import open_store
open_store(sys.argv[1]).register([], [QueueSpec(name="fresh", limit=1)])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("index", [True, False], ids=["log and its index", "log alone"])
def test_what_a_killed_process_left_stays_as_it_is(shell: Shell, index: bool) -> None:
    url = f"sqlite:///{shell.folder}/spinney.db"
    died = subprocess.run([sys.executable, "-c", KILLED, url], timeout=60)
    assert died.returncode == -signal.SIGKILL
    if not index:
        (shell.folder / "spinney.db-shm").unlink()
    before = files(shell.folder)
    assert before["spinney.db-wal"]

    values = offered(shell.folder, "spinney list --queue ", _run)

    assert files(shell.folder) == before
    assert values == (["default", "fresh"] if index else [])


def test_what_was_just_written_by_an_open_store_is_seen(shell: Shell) -> None:
    from spinney.model.settings.queues import QueueSpec
    from spinney.store.sql import open_store

    url = f"sqlite:///{shell.folder}/spinney.db"
    with closing(open_store(url)) as store:
        store.register([], [QueueSpec(name="fresh", limit=1)])

        assert "fresh" in names(url, "queue")
    assert "fresh" in names(url, "queue")


def test_a_store_elsewhere_is_not_asked() -> None:
    assert completion_names.names("postgresql://host/base", "type") == []


# --- how much is looked at, and loaded ------------------------------------------------------------


def test_names_are_sought_and_not_gathered_from_all_jobs(rich: Shell) -> None:
    columns = (
        "id, type, state, queue, priority, share, lineage, root_id, params, created_us, collection, submitter"
    )
    many = (
        f"insert into jobs ({columns}) with recursive n(x) as (select 1000 union all select x + 1 from n where "
        "x < 200000) select x, 'double', 'completed', 'net', 50, 0, '', x, '{}', 0, 'big', 'zoe' from n"
    )
    change(rich.folder, (many, ()))
    url = f"sqlite:///{rich.folder}/spinney.db"

    assert names(url, "collection") == ["big", "run:7", "run:8"]
    assert names(url, "submitter", "b") == ["bob"]

    # What cannot be sought would be a walk over all of them, and is broken off.
    change(rich.folder, ("drop index jobs_by_collection", ()))
    assert names(url, "collection") == []


def test_no_more_names_are_given_than_can_be_read(rich: Shell) -> None:
    many = "with recursive n(x) as (select 1000 union all select x + 1 from n where x < 9000) "
    columns = (
        "id, type, state, queue, priority, share, lineage, root_id, params, created_us, collection, submitter"
    )
    change(
        rich.folder,
        (
            f"insert into jobs ({columns}) {many} select x, 'double', 'held', 'net', 50, 0, '', x, '{{}}', 0, "
            "'c' || x, 's' || x from n",
            (),
        ),
        (f"insert into locks (name, job_id, fence, since_us) {many} select 'l' || x, x, 1, 0 from n", ()),
        (f"insert into holds {many} select x, 'job', x, '', '', 0, null, 0, 0 from n", ()),
        (
            f"insert into nodes {NODE} {many} "
            "select x, 'n' || x, '', '', 1, 1, 'left', 0, 0, 0, '', '[]', '0001' from n",
            (),
        ),
        (
            f"insert into inactive_jobs (job_id, state, since_us, fingerprint) {many} select x, 'failed', 0, x from n",
            (),
        ),
        (f"insert into queues {many} select 'q' || x, '{{}}' from n", ()),
    )
    url = f"sqlite:///{rich.folder}/spinney.db"

    kinds = ("collection", "submitter", "lock", "hold", "node", "failure", "queue")
    assert {kind: len(names(url, kind)) for kind in kinds} == dict.fromkeys(kinds, completion_names.MOST)
    assert names(url, "collection", "c899") == [f"c899{n}" for n in range(10)]
    assert names(url, "hold", "899") == [f"899{n}" for n in range(10)]


@pytest.mark.parametrize(
    ("line", "spared"),
    [
        ("sta", ("typer", "sqlite3", "spinney.model.jobs")),
        (
            "list --type ",
            (
                "sqlalchemy",
                "rich",
                "orjson",
                "spinney.store.sql",
                "spinney.features.jobs.actions_cli",
            ),
        ),
    ],
)
def test_a_tab_loads_only_what_its_command_needs(shell: Shell, line: str, spared: tuple[str, ...]) -> None:
    request = {"_SPINNEY_COMPLETE": "complete_bash", "_SPINNEY_LINE": f"spinney {line}", "_SPINNEY_PIECE": ""}

    done = _run(shell.folder, "-X", "importtime", **request)

    loaded = {imported.rpartition("|")[2].strip() for imported in done.stderr.splitlines()}
    assert "spinney.cli.main" in loaded
    assert loaded & set(spared) == set()
