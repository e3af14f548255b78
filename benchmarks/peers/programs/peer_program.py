"""What the programs of the peers share: the record that each job leaves, and the verbs by which the runner drives them.

A program in Python is started as ``peer_program.py MODULE VERB``, so that workers find its job under the module's name;
that of graphile-worker as ``PROGRAM VERB``. It starts in an empty folder, with PEER_STORE (where its jobs are kept) and
PEER_LOG (the file of records) in its environment:

    versions        print a JSON object of package and version, and end
    prepare         make the tables, and end
    work CASE       run jobs until SIGTERM; CASE is ``drain`` or a number of slots
    submit          read lines, and answer each with one line: ``bulk COUNT SECONDS TAG`` submits as the documentation
                    says that many jobs are submitted, and answers the seconds; ``singly COUNT GAP`` submits one by one;
                    ``left`` answers how many jobs are not recorded as done
"""

import asyncio
import json
import os
import struct
import sys
import time
from importlib import import_module
from importlib.metadata import version
from typing import Protocol

RECORD = struct.Struct("<qqq")
"""The job's tag, and when its function began and ended, in ns since 1970."""
TEXT = "0" * 36
"""With it the parameters of a job are some 70 bytes of JSON."""


class Peer(Protocol):
    """What a program in Python says of its peer."""

    packages: tuple[str, ...]

    def prepare(self) -> None: ...
    def open(self) -> None: ...
    def bulk(self, count: int, seconds: float, tag: int) -> None: ...
    def one(self, tag: int) -> None: ...
    def left(self) -> int: ...
    def work(self, case: str) -> None: ...


class _Log:
    """Opened by the process that runs jobs, when the first one ends."""

    file: int | None = None


def run_job(tag: int, seconds: float) -> None:
    """The job of every peer: sleep for so long, and leave a record."""
    began = time.time_ns()
    if seconds:
        time.sleep(seconds)
    write_record(tag, began)


async def run_job_async(tag: int, seconds: float) -> None:
    """The same as a coroutine."""
    began = time.time_ns()
    if seconds:
        await asyncio.sleep(seconds)
    write_record(tag, began)


def write_record(tag: int, began: int) -> None:
    """Append the record: one call of the system, which no other process can split."""
    if _Log.file is None:
        _Log.file = os.open(os.environ["PEER_LOG"], os.O_WRONLY | os.O_APPEND)
    os.write(_Log.file, RECORD.pack(tag, began, time.time_ns()))


def main(module: str, *words: str) -> None:
    """Do what the command line says."""
    peer: Peer = import_module(module).Peer()
    match words:
        case ["versions"]:
            print(json.dumps({name: version(name) for name in peer.packages}))
        case ["prepare"]:
            peer.prepare()
        case ["work", case]:
            peer.work(case)
        case ["submit"]:
            peer.open()
            for line in sys.stdin:
                print(_answer(peer, line.split()), flush=True)


def _answer(peer: Peer, words: list[str]) -> float:
    match words:
        case ["bulk", count, seconds, tag]:
            began = time.perf_counter()
            peer.bulk(int(count), float(seconds), int(tag))
            return time.perf_counter() - began
        case ["singly", count, gap]:
            for _ in range(int(count)):
                peer.one(time.time_ns())
                time.sleep(float(gap))
            return 0
        case _:
            return peer.left()


if __name__ == "__main__":
    main(*sys.argv[1:])
