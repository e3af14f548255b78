"""Logging on a stream that nobody reads: it blocks nobody, and says afterwards how much is missing."""

import fcntl
import logging
import os

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
