"""What the README says is so: its code, its commands, its picture, its links."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.main import get_command

from spinney.cli.commands import full_app
from spinney.model.states import State, lawful
from spinney.stores.sql import open_store

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


def test_its_parts_stand_in_their_order() -> None:
    titles = re.findall(r"^## (.*)", README, flags=re.M)

    assert titles == [
        "Two commands",
        "An application",
        "The life of a job",
        "Commands",
        "What it promises",
        "Where to read on",
    ]


def test_it_says_in_three_sentences_what_it_is_for() -> None:
    opening = README.partition("\n\n")[2].partition("\n\n## ")[0]

    assert len(re.findall(r"\.(?:\s|$)", opening)) == 3


def test_the_example_is_the_file_and_short() -> None:
    assert blocks("python") == [(ROOT / "examples" / "squeeze.py").read_text()]
    assert len(blocks("python")[0].splitlines()) < 30


def test_the_picture_shows_lawful_ways_and_every_state() -> None:
    arrows = re.findall(r"^    (\S+) --> (\w+|\[\*\])", blocks("mermaid")[0], flags=re.M)

    drawn = set()
    for before, after in arrows:
        if after == "[*]":
            assert before == State.DELETED
            continue
        drawn.add(State(after))
        assert lawful(None if before == "[*]" else State(before), State(after)), f"{before} --> {after}"
    assert drawn == set(State)


def test_the_table_names_every_command_and_only_options_there_are() -> None:
    commands = dict(get_command(full_app()).commands)  # type: ignore[attr-defined]
    rows = dict(re.findall(r"^\| `spinney (\w+)[^`]*` \| (.*) \|$", README, flags=re.M))

    assert set(rows) == set(commands)
    for name, text in rows.items():
        group = [commands[name], *getattr(commands[name], "commands", {}).values()]
        options = {o for command in group for p in command.params for o in p.opts}
        assert set(re.findall(r"`(--[a-z-]+)", text)) <= options, name


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README)

    assert [t for t in targets if not (ROOT / t).exists()] == []


def test_the_make_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()

    for target in re.findall(r"^    make (\w+)", README, flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_the_commands_work_as_they_stand(
    tmp_path: Path, until_true: Callable[[Callable[[], object]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up, use = blocks("sh")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.delenv("SPINNEY_STORE", raising=False)
    (tmp_path / "squeeze.py").write_text(blocks("python")[0])
    (tmp_path / "letters").mkdir()
    for name in ("ann", "bob"):
        (tmp_path / "letters" / name).write_text(name * 1000)

    # The shell stays as long as its background node: what a terminal does at its end, the test does.
    terminal = subprocess.Popen(
        ["bash", "-euc", f"{set_up}\ntrap 'kill $!' TERM\nwait $!\nwait $!"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_true(lambda: _knows(tmp_path, "folder"))
        done = subprocess.run(["bash", "-euc", use], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        in_python = subprocess.run(
            [
                sys.executable,
                "-c",
                f"from squeeze import folder\nprint({_said_in_python(tmp_path / 'letters')})",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        terminal.terminate()
        terminal.wait(30)

    assert done.returncode == 0, done.stderr
    assert "job 1 folder completed" in done.stdout
    assert 'report = {"completed":2}' in done.stdout
    assert len(list(tmp_path.glob("spinney.folders/*/*/*/000000000001/*.gz"))) == 2
    assert in_python.stdout == "4\n", in_python.stderr


def _said_in_python(letters: Path) -> str:
    (call,) = re.findall(r"^Or in Python: `(.*)`\.$", README, flags=re.M)
    return call.replace("/home/ann/letters", str(letters))


def _knows(folder: Path, job_type: str) -> bool:
    if not (folder / "spinney.db").exists() or not (folder / "spinney.folders").exists():
        return False
    with closing(open_store(f"sqlite:///{folder}/spinney.db")) as store:
        return job_type in store.types()
