"""What the README says is so: its code, its commands, its length."""

import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from spinney.store.sql import open_store
from waiting import until

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_the_example_is_the_file_and_short() -> None:
    assert blocks("python") == [(ROOT / "examples" / "words.py").read_text()]
    assert len([line for line in blocks("python")[0].splitlines() if line]) <= 15


def test_the_make_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()

    for target in re.findall(r"^    make (\w+)", README, flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_the_commands_work_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up, use, repair = blocks("sh")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.delenv("SPINNEY_STORE", raising=False)
    (tmp_path / "words.py").write_text(blocks("python")[0])
    (tmp_path / "letters").mkdir()
    for name in ("ann", "bob"):
        (tmp_path / "letters" / name).write_text(f"from {name}")
    unreadable = tmp_path / "letters" / "carl"
    unreadable.mkdir()

    def run(*command: str) -> str:
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stderr
        return result.stdout

    # The shell stays as long as its background node: what a terminal does at its end, the test does.
    terminal = subprocess.Popen(
        ["bash", "-euc", f"{set_up}\ntrap 'kill $!' TERM\nwait $!\nwait $!"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _knows(tmp_path, "folder"))
        before = run("bash", "-uc", use)
        unreadable.rmdir()
        unreadable.write_text("from carl")
        after = run("bash", "-euc", repair)
        call = f"from words import folder\nprint({_said_in_python(tmp_path / 'letters')})"
        in_python = run(sys.executable, "-c", call)
    finally:
        terminal.terminate()
        terminal.wait(30)

    assert "job 1 folder failed" in before
    assert 'report = {"completed":2,"failed":1}' in before or 'report = {"failed":1,"completed":2}' in before
    assert "job 1 folder completed" in after
    assert 'report = {"completed":3}' in after
    assert in_python == "5\n"


def _said_in_python(letters: Path) -> str:
    (call,) = re.findall(r"^Or in Python: `(.*)`\.$", README, flags=re.M)
    return call.replace("/home/ann/letters", str(letters))


def _knows(folder: Path, job_type: str) -> bool:
    if not (folder / "spinney.db").exists() or not (folder / "spinney.folders").exists():
        return False
    with closing(open_store(f"sqlite:///{folder}/spinney.db")) as store:
        return job_type in store.types()
