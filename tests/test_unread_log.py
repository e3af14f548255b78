"""Logging on a stream that nobody reads: it blocks nobody, and says afterwards how much is missing."""

import contextlib
import fcntl
import logging
import os
import socket
import threading
from unittest import mock

import pytest

from spinney.host import unread_log
from spinney.host.unread_log import UnblockedHandler, write_line


def test_lines_without_a_reader_are_dropped_and_counted(monkeypatch):
    monkeypatch.setattr(unread_log, "PATIENCE_S", 0.01)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    log = logging.Logger("unread")
    with os.fdopen(reader, "rb", buffering=0) as log_file, os.fdopen(writer, "w") as stream:
        log.addHandler(UnblockedHandler(stream))
        log.warning("first %s", "\udcff" + "x" * 4000)
        log.warning("second")
        log.warning("third")
        assert log_file.read(5000) == b"first \\udcff" + b"x" * 4000 + b"\n"
        log.warning("fourth")
        log.warning("fifth")
        assert log_file.read(5000) == b"2 lines of this log could not be written\nfourth\n"


def test_a_long_line_arrives_whole(tmp_path):
    with (tmp_path / "log").open("w") as stream:
        log = logging.Logger("read")
        log.addHandler(UnblockedHandler(stream))
        log.warning("x" * 100_000)
    assert (tmp_path / "log").read_text() == "x" * 100_000 + "\n"


def test_a_terminal_that_nobody_reads_blocks_nobody():
    """As that of a connection that hangs. It may have room for a part of a line."""
    reader, terminal = os.openpty()
    with os.fdopen(reader, "rb", buffering=0) as shown, os.fdopen(terminal, "w") as stream:
        assert any(not write_line(stream, "x" * 3000, 0.01) for _ in range(1000))
        assert os.get_blocking(stream.fileno())
        while len(shown.read(4096)) == 4096:
            pass
        assert write_line(stream, "last", 10)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_process_that_takes_the_room_of_another_blocks_it_no_longer_than_a_hanging_reader(kind):
    """As the nodes and workers of a service, which have one stderr: there was room when the line was begun."""
    reader, writer = os.pipe() if kind == "pipe" else [end.detach() for end in socket.socketpair()]
    with os.fdopen(reader, "rb", buffering=0), os.fdopen(writer, "w") as stream:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b"x"):
                pass
        os.set_blocking(writer, True)
        written = []
        thread = threading.Thread(
            target=lambda: written.append(write_line(stream, "late", 0.01)), daemon=True
        )
        with mock.patch.object(unread_log.select, "poll"):
            thread.start()
            thread.join(10)
        assert written == [False]
