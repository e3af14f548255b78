"""A command, and a node, whose standard streams were closed by whoever started them (``spinney list >&-``)."""

import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterable

import pytest

from .shell import Shell


def start(shell: Shell, closed: Iterable[int], *words: str) -> "subprocess.Popen[bytes]":
    """A command in a process that starts without these descriptors."""
    descriptors = tuple(closed)

    def close() -> None:
        for fd in descriptors:
            os.close(fd)

    return subprocess.Popen(
        [sys.executable, "-m", "spinney", *words],
        cwd=shell.folder,
        env=shell.environment(),
        preexec_fn=close,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_without_reader(shell: Shell, *words: str) -> tuple[int, bytes]:
    """Run a command whose output is a pipe that its reader has closed, and return the exit code and what it wrote to
    stderr."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return run_into(shell, writing, *words)
    finally:
        os.close(writing)


def run_into(shell: Shell, stdout: int, *words: str) -> tuple[int, bytes]:
    """Run a command with this standard output, and return the exit code and what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "spinney", *words],
        cwd=shell.folder,
        env=shell.environment(),
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        ((1,), ["list", "--json"], 0),
        ((2,), ["show", "99"], 1),
        ((0, 1, 2), ["submit", "double", "-p", "n=1"], 0),
        ((0,), ["submit", "double", "--jobs", "-"], 0),
        ((1, 2), ["frobnicate"], 2),
    ],
)
def test_a_command_without_a_stream_does_what_it_is_asked(
    shell: Shell, closed: tuple[int, ...], words: list[str], code: int
) -> None:
    process = start(shell, closed, *words)

    out, err = process.communicate(timeout=60)

    assert process.returncode == code, err
    assert b"Traceback" not in out + err
    assert b"NoneType" not in out + err


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "1", "2"],
        ["show", "1"],
        ["failures"],
        ["list"],
        ["tree", "1"],
        ["holds"],
        ["audit"],
        ["audit", "head"],
        ["doctor"],
        ["files", "1"],
        ["submit", "double", "-p", "n=1"],
        ["user", "add", "ann", "--role", "viewer", "--no-password"],
    ],
)
def test_a_reader_that_leaves_before_the_first_line_is_no_error(shell: Shell, words: list[str]) -> None:
    for _ in range(2):
        shell.ok("submit", "double", "-p", "n=1")

    assert run_without_reader(shell, *words) == (0, b"")


def test_a_connection_that_its_reader_has_reset_is_no_error(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as writing,
    ):
        reading, _ = server.accept()
        reading.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reading.close()

        assert run_into(shell, writing.fileno(), "list") == (0, b"")


@pytest.mark.parametrize(
    ("words", "state"), [(["cancel"], "cancelled"), (["hold", "--each", "--reason", "disk"], "held")]
)
def test_a_verb_on_several_jobs_goes_on_when_its_reader_leaves(
    shell: Shell, words: list[str], state: str
) -> None:
    for _ in range(2):
        shell.ok("submit", "double", "-p", "n=1")

    assert run_without_reader(shell, *words, "1", "2") == (0, b"")
    assert [job["state"] for job in shell.listed("list")] == [state, state]


def test_a_command_on_several_things_goes_on_when_nobody_reads_its_errors(shell: Shell) -> None:
    shell.ok("hold", "--queue", "default", "--reason", "disk")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        process = subprocess.run(
            [sys.executable, "-m", "spinney", "release", "--hold", "99", "--hold", "1"],
            cwd=shell.folder,
            env=shell.environment(),
            stdout=writing,
            stderr=writing,
            check=False,
        )
    finally:
        os.close(writing)

    assert process.returncode == 1
    assert shell.listed("holds") == []


def test_output_that_nobody_reads_is_not_followed(shell: Shell) -> None:
    """The job is pending and prints nothing: the command ends without having to write."""
    shell.ok("submit", "double", "-p", "n=1")

    assert run_without_reader(shell, "logs", "1", "--follow") == (0, b"spinney: job 1 has no output yet\n")


def test_a_node_without_streams_writes_into_none_of_its_files(shell: Shell) -> None:
    node = start(shell, (0, 1, 2), "node", "jobs:app", "--name", "n1", "--slots", "1")
    try:
        shell.ok("submit", "tell", "-p", "text=hello", "--wait")
        assert shell.ok("logs", "1", "--stdout").endswith("hello\n")
    finally:
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=60)

    assert node.returncode == 0
    run_dir = shell.folder / "spinney.db.run"
    assert [file.name for file in run_dir.rglob("*.lock") if file.stat().st_size] == []
    with sqlite3.connect(shell.folder / "spinney.db") as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
