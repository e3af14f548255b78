"""Commands of packages: real distributions, as an installer leaves them, in a folder on PYTHONPATH."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.terminal import applications

from .shell import Shell

OCEAN = '''
from typing import Annotated

import typer

from spinney.model.errors import Refused

app = typer.Typer(help="All about the sea.")


@app.command()
def depth(at: str, metres: Annotated[bool, typer.Option("--metres")] = False) -> None:
    """How deep it is."""
    if at == "nowhere":
        raise Refused("nowhere is no place; name one")
    if at == "nothing":
        raise ZeroDivisionError("so deep")
    typer.echo(f"{at}: {'1 m' if metres else 'deep'}")
'''


class Host:
    """A machine on which packages are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder, folder / "site"
        self.site.mkdir()

    def install(
        self, name: str, commands: str, code: str = OCEAN, summary: str | None = "All about the sea"
    ) -> None:
        (self.site / f"{name}.py").write_text(code)
        info = self.site / f"{name}-1.0.dist-info"
        info.mkdir()
        summary_line = "" if summary is None else f"Summary: {summary}\n"
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{summary_line}")
        (info / "entry_points.txt").write_text(f"[spinney.commands]\n{commands}\n")

    def run(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SPINNEY_")}
        path = os.pathsep.join((str(self.site), os.environ.get("PYTHONPATH", "")))
        return subprocess.run(
            [sys.executable, "-m", "spinney", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment | {"PYTHONPATH": path, "COLUMNS": "120", "TERM": "dumb"} | env,
        )

    def offered(self, line: str) -> list[str]:
        piece = line.rpartition(" ")[2]
        done = self.run(_SPINNEY_LINE=line, _SPINNEY_PIECE=piece, _SPINNEY_COMPLETE="complete_bash")
        return done.stdout.splitlines()[1:]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def shell(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """The same machine, without the start of a process for each command."""
    monkeypatch.syspath_prepend(str(host.site))
    before = set(sys.modules)
    applications.installed_commands.cache_clear()
    yield Shell(host.folder)
    applications.installed_commands.cache_clear()
    for name in set(sys.modules) - before:
        if name in ("ocean", "pond"):
            del sys.modules[name]


def test_a_command_of_a_package_is_run(host: Host) -> None:
    host.install("ocean", "sea = ocean:app")

    done = host.run("sea", "depth", "here", "--metres")

    assert (done.stdout, done.stderr, done.returncode) == ("here: 1 m\n", "", 0)


def test_a_package_may_bring_the_command_help(host: Host) -> None:
    host.install("ocean", "help = ocean:app")

    done = host.run("help", "depth", "here", "--metres")

    assert (done.stdout, done.stderr, done.returncode) == ("here: 1 m\n", "", 0)


def test_its_errors_are_told_like_spinneys_own(
    host: Host, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.install("ocean", "sea = ocean:app")
    monkeypatch.setattr("tempfile.tempdir", str(host.folder))

    assert "nowhere is no place; name one" in shell.refused(1, "sea", "depth", "nowhere")
    assert "sea depth --help' shows the usage" in shell.refused(2, "sea", "depth")
    with pytest.raises(pytest.fail.Exception, match="ZeroDivisionError: so deep"):  # an internal error
        shell.call("sea", "depth", "nothing")


def test_it_works_through_a_server_where_its_package_has_routes_for_servers(host: Host, shell: Shell) -> None:
    host.install(
        "ocean", "sea = ocean:app\n[spinney.routes]\nsea = ocean:router\n[spinney.commands]\nlake = ocean:app"
    )

    assert shell.ok("--server", "unix:/s", "sea", "depth", "here") == "here: deep\n"
    assert "not through a server" in shell.refused(2, "--server", "unix:/s", "lake", "depth", "here")


def test_its_help_is_that_of_a_group(host: Host, shell: Shell) -> None:
    host.install("ocean", "sea = ocean:app")

    output = shell.ok("sea", "-h")

    assert " sea [OPTIONS] COMMAND [ARGS]..." in output
    assert "How deep it is." in output
    assert "--install-completion" not in output


def test_help_lists_them_and_imports_none(host: Host, shell: Shell) -> None:
    host.install("ocean", "sea = ocean:app\nloch = ocean:other", "raise RuntimeError('imported')")
    host.install("pond", "pond = pond:app", summary=None)
    host.install(
        "lake", "lake = lake:app", '"""Measure a lake.\n\nAnd more."""\nraise RuntimeError("imported")'
    )

    result = shell.call("--help")

    assert (result.returncode, result.stderr) == (0, "")
    behind = result.stdout.partition("Applications:")[2].splitlines()
    shown = [line.split(maxsplit=1) for line in behind if line.strip()]
    mine = ("lake", "loch", "pond", "sea")  # this distribution brings one itself
    assert [row for row in shown if row[0] in mine] == [
        ["lake", "Measure a lake."],
        ["loch", "All about the sea"],
        ["pond", "Of pond 1.0."],
        ["sea", "All about the sea"],
    ]


def test_without_packages_there_is_no_such_heading(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "GROUP", "spinney.commands.of.nobody")  # one may be installed here

    assert "Applications" not in shell.ok("--help")


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ("ocean:app", "raise RuntimeError('a\\nb')", "(RuntimeError: a b)"),
        ("ocean:app", "import nothing_of_the_kind", "No module named 'nothing_of_the_kind'"),
        ("ocean:app", "def app(:", "SyntaxError"),
        ("ocean:app", "raise SystemExit(0)", "(SystemExit: 0)"),
        ("ocean:app", "app = [1]", "ocean:app is not a typer.Typer but a list"),
        ("ocean:gone", OCEAN, "has no attribute 'gone'"),
        ("ocean.app:", OCEAN, "cannot be loaded"),
        (
            "ocean:app",
            OCEAN.replace('typer.Option("--metres")', 'typer.Option("--metres"), typer.Option("--feet")'),
            "MultipleTyperAnnotationsError",
        ),
    ],
)
def test_a_broken_one_is_told_in_one_sentence(
    host: Host, shell: Shell, value: str, code: str, message: str
) -> None:
    host.install("ocean", f"sea = {value}", code)

    sentence = shell.refused(2, "sea", "depth", "here")

    assert "the command 'sea' of ocean 1.0 cannot be loaded" in sentence
    assert message in sentence


def test_a_mistake_in_the_settings_of_a_command_is_no_fault_of_its_package(host: Host, shell: Shell) -> None:
    """A package may read its settings when it is imported."""
    code = "from spinney.errors import UsageError\nraise UsageError('ocean.toml, line 3: depth is no number')"
    host.install("ocean", "sea = ocean:app", code)

    sentence = shell.refused(2, "sea", "depth", "here")

    assert "ocean.toml, line 3: depth is no number" in sentence
    assert "package" not in sentence


def test_a_broken_one_breaks_no_other(host: Host, shell: Shell) -> None:
    host.install("ocean", "sea = ocean:app", "raise RuntimeError('imported')")
    host.install("pond", "pond = pond:app")

    assert shell.ok("pond", "depth", "here") == "here: deep\n"
    assert shell.ok("init")
    assert shell.ok("locks")
    assert host.offered("spinney sea ") == []


def test_names_that_are_taken_or_none_are_ignored_with_a_warning(host: Host, shell: Shell) -> None:
    host.install("ocean", "list = ocean:app\nsea = ocean:app\n\x1b[31mred = ocean:app")
    host.install("pond", "sea = pond:app", "raise RuntimeError('imported')")

    result = shell.call("sea", "depth", "here")

    assert result.stdout == "here: deep\n"
    assert [line.partition(" is ignored: its name ")[2] for line in result.stderr.splitlines()] == [
        "may have only small letters, digits and single dashes",
        "is the name of one of Spinney's own commands",
        "is already that of a command of ocean 1.0",
    ]
    assert "\x1b" not in result.stderr
    own = shell.call("list", "--help")
    assert "--oldest" in own.stdout
    assert own.stderr == ""


def test_a_package_that_is_damaged_breaks_nothing(host: Host, shell: Shell) -> None:
    shell.ok("init")
    host.install("ocean", "this is no entry point")

    shell.ok("list")
    result = shell.call("--help")
    assert (result.returncode, result.stdout.count("\n") > 40) == (0, True)
    assert result.stderr.startswith(
        "spinney: the entry points of installed packages cannot be read (TypeError: "
    )
    assert "No such command 'sea'" in shell.call("sea").stderr


def test_a_shell_is_offered_them_with_their_commands_and_options(host: Host) -> None:
    host.install("ocean", "sea = ocean:app")

    assert host.offered("spinney se") == ["serve", "sea"]
    assert host.offered("spinney ")[-1] == "sea"
    assert host.offered("spinney sea ") == ["depth"]
    assert host.offered("spinney sea depth --m") == ["--metres"]


def test_what_a_shell_is_told_of_a_command_needs_no_import(host: Host) -> None:
    host.install("ocean", "sea = ocean:app", "raise RuntimeError('imported')")

    done = host.run(_TYPER_COMPLETE_ARGS="spinney se", _SPINNEY_COMPLETE="complete_zsh")

    assert '"sea":"All about the sea"' in done.stdout
