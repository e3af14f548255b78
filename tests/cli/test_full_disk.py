"""The disk of the store is really full: every command says so in one sentence, and nothing is half-written."""

import os
import subprocess
import sys

import pytest

from .shell import Shell

CANNOT_MOUNT = 77
COMMANDS = (
    "list",
    "show 1",
    "submit double -p n=2",
    "cancel 1",
    "doctor --json --only counter-behind",
    "init",
    "init --store sqlite:///new.db",
)
SCRIPT = f"""
mkdir disk
mount -t tmpfs -o size=4m none disk || exit {CANNOT_MOUNT}
cp -r jobs.py spinney.db spinney.folders disk && cd disk || exit 1
"$PYTHON" -m spinney submit double -p n=1 >&2 || exit 1
dd if=/dev/zero of=filler bs=4k 2>/dev/null
"$PYTHON" -c "$EACH"
rm filler
"$PYTHON" -m spinney list --json | wc -l
"$PYTHON" -c 'import sqlite3; print(*sqlite3.connect("spinney.db").execute("pragma integrity_check").fetchone())'
"""
"""In a mount namespace of its own, with which the disk goes."""
EACH = """
import contextlib, io, sys
from spinney.cli import main
for words in map(str.strip, sys.stdin):
    with contextlib.redirect_stdout(sys.stderr), contextlib.redirect_stderr(io.StringIO()) as said:
        code = main.run(words.split())
    print(words, code, said.getvalue(), sep="|", end="", flush=True)
"""
"""All of them by one process, which is what differs least from one each."""


def test_every_command_on_a_full_disk_says_so_and_nothing_is_lost(shell: Shell) -> None:
    own = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]

    result = subprocess.run(
        [*own, "sh", "-c", SCRIPT],
        cwd=shell.folder,
        env=shell.environment(PYTHON=sys.executable, EACH=EACH),
        input="".join(f"{words}\n" for words in COMMANDS),
        capture_output=True,
        text=True,
        timeout=100,
    )
    if result.returncode == CANNOT_MOUNT or (
        result.returncode and not result.stdout and "unshare" in result.stderr
    ):
        pytest.skip(f"no disk can be mounted here: {result.stderr.strip()}")

    *sentences, count, check = result.stdout.splitlines()
    full = "the disk that holds {} is full; make room, then go on: nothing was half-written"
    for words, line in zip(COMMANDS, sentences, strict=True):
        file = shell.folder / "disk" / (words.partition("sqlite:///")[2] or "spinney.db")
        assert line == f"{words}|1|spinney: {full.format(file)}", result.stderr
    assert (count, check) == ("1", "ok"), result.stderr
