"""The connection of commands to ZooKeeper, while the server stands still."""

import os
import signal
import threading
from pathlib import Path

import pytest
from kazoo.exceptions import KazooException

from spinney.bridges.merritt import MerrittCommitUncertain, transactions
from spinney.bridges.merritt.transactions import Transaction, Witness
from spinney.bridges.merritt_connection import connected
from waiting import until
from zookeeper_servers import standalone


def test_requests_to_a_server_that_stands_still_fail_instead_of_waiting_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "_WITNESS_S", 0.1)
    raised: list[str] = []
    with standalone() as server, connected(server.address, session_s=3) as client:
        transaction = Transaction(client)
        transaction.create("/new")

        def read() -> None:
            with pytest.raises(KazooException):
                client.retry(client.get, "/")
            raised.append("read")

        def write() -> None:
            with pytest.raises(MerrittCommitUncertain):
                transaction.commit(Witness("/new", b"", 0))
            raised.append("write")

        threads = [threading.Thread(target=each, daemon=True) for each in (read, write)]
        pid = int((server.folder / "pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        until(lambda: _is_stopped(pid))  # until one of its threads has had the signal, the others go on
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        os.kill(pid, signal.SIGCONT)

    assert sorted(raised) == ["read", "write"]


def _is_stopped(pid: int) -> bool:
    """Return whether all threads of a process are stopped."""
    stats = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)
