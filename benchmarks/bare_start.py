"""What a start on an idle node takes without Spinney: three processes with the least that a durable start needs.

One inserts two rows in a file of SQLite, synced, and sends a datagram; the second takes them, not synced, and sends the
job on; the third notes the time. No start by way of three processes and a synced row can be quicker on this machine.
"""

import os
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.place import percentile

TRIES = 400
GAP_S = 0.02
"""Between two tries, as for an idle node."""


def bare_start() -> Mapping[str, float]:
    """From before the submission to the arrival of the job in the third process, in ms."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bare.db"
        submitter = _connection(file, "full")
        submitter.execute("create table jobs (id integer primary key, params text)")
        submitter.execute("create table ready (job_id integer primary key)")
        submitter.execute("create table leases (job_id integer primary key, node integer)")
        to_node, node = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to_worker, worker = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to_submitter, arrivals = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        children = [
            _child(lambda: _claim_jobs(file, node, to_worker), to_node, worker, arrivals),
            _child(lambda: _note_arrivals(worker, to_submitter), to_node, to_worker, node, arrivals),
        ]
        for end in (node, worker, to_worker, to_submitter):
            end.close()
        delays, taken = [], []
        for _ in range(TRIES):
            time.sleep(GAP_S)
            begun = time.time_ns()
            submitter.execute("begin immediate")
            job_id = submitter.execute("insert into jobs (params) values (?)", ("x" * 50,)).lastrowid
            submitter.execute("insert into ready values (?)", (job_id,))
            submitter.execute("commit")
            to_node.send(b"wake up")
            taken.append((time.time_ns() - begun) / 1e6)
            delays.append((int(arrivals.recv(100)) - begun) / 1e6)
        to_node.close()
        for child in children:
            os.waitpid(child, 0)
        submitter.close()
    return {
        "median ms": percentile(delays, 0.5),
        "p99 ms": percentile(delays, 0.99),
        "submit median ms": percentile(taken, 0.5),
    }


def _connection(file: Path, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma synchronous = {synchronous}")
    return connection


def _child(run: Callable[[], None], *others: socket.socket) -> int:
    """Start a process that runs this until its socket is closed. ``others``: the ends that are not its own."""
    child = os.fork()
    if child:
        return child
    try:
        for end in others:
            end.close()
        run()
    finally:
        os._exit(0)


def _claim_jobs(file: Path, node: socket.socket, to_worker: socket.socket) -> None:
    connection = _connection(file, "normal")
    while node.recv(100):
        connection.execute("begin immediate")
        jobs = connection.execute("select job_id, params from ready join jobs on id = job_id").fetchall()
        for job_id, _ in jobs:
            connection.execute("delete from ready where job_id = ?", (job_id,))
            connection.execute("insert into leases values (?, 1)", (job_id,))
        connection.execute("commit")
        for _, params in jobs:
            to_worker.send(params.encode())


def _note_arrivals(worker: socket.socket, to_submitter: socket.socket) -> None:
    while worker.recv(1000):
        to_submitter.send(str(time.time_ns()).encode())
