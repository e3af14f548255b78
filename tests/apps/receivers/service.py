"""The service in a folder of its own, with a real node, and archives for it."""

import csv
import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cli.shell import Shell
from examples.receivers.simulation import BEGUN, TAGS, Scene, file_name, write_files
from spinney.apps.receivers import app
from spinney.apps.receivers.database.receiver_database import ReceiverDatabase
from spinney.apps.receivers.database.snapshots import snapshot

DEADLINE_S = 90.0
SERIALS = ("7F5ERPI46977", "0613BB000593")


Content = list[list[tuple[Any, ...]]]


def content(db: sqlite3.Connection) -> Content:
    """What was detected of a receiver."""
    return [db.execute(f"select * from {table} order by 1, 2, 3").fetchall() for table in ("runs", "hits")]


class Service:
    """The service in a folder of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._nodes: list[subprocess.Popen[bytes]] = []
        self.write_tags(len(TAGS))
        self.spinney("init")
        self.spinney("receivers", "init")

    def write_tags(self, number: int) -> None:
        """Write the first tags of the table; 0: a table that cannot be read."""
        with (self.place / "tags.csv").open("w", newline="") as file:
            writer = csv.DictWriter(
                file, ["tag", "frequency", "gap1", "gap2", "gap3", "interval"], extrasaction="ignore"
            )
            writer.writeheader()
            for tag in TAGS[:number]:
                writer.writerow(tag.model_dump())
            if not number:
                file.write("broken,row\n")

    @property
    def environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith("SPINNEY_")}

    def call(self, *words: str) -> "subprocess.CompletedProcess[str]":
        with patch.dict(os.environ):  # commands of the service name its store there
            try:
                return Shell(self.place).call(*words)
            finally:
                app.close()  # the application opens a store once for each process, and this one has other tests

    def spinney(self, *words: str) -> str:
        result = self.call(*words)
        assert result.returncode == 0, (words, result.stdout, result.stderr)
        return result.stdout

    def start_node(self, slots: int = 1) -> "subprocess.Popen[bytes]":
        """Start a node. Each slot costs a worker, which loads NumPy; with two, receivers are detected at once."""
        words = [
            sys.executable,
            "-m",
            "spinney",
            "node",
            "spinney.apps.receivers:app",
            "--name",
            "oak",
            "--slots",
            str(slots),
        ]
        log = (self.place / "node.log").open("ab")
        self._nodes.append(
            subprocess.Popen(words, cwd=self.place, env=self.environment, stderr=log, start_new_session=True)
        )
        return self._nodes[-1]

    def kill_node(self) -> None:
        """End the node and all that it runs without a warning."""
        node = self._nodes[-1]
        with suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
        node.wait()

    def upload(self, source: Path) -> str:
        return self.spinney("receivers", "upload", str(source), "--project", "gulls").strip()

    def ended(self, job: str) -> str:
        """Wait until the job has settled, and return its state."""
        self.call("wait", job)
        return str(self.show(job)["job"]["state"])

    def show(self, job: str) -> Any:
        return json.loads(self.spinney("show", job, "--json"))

    def content(self, serial: str) -> Content:
        """What was detected of a receiver."""
        with snapshot(self.place / "receivers" / "databases" / f"SG-{serial}.sqlite") as db:
            return [
                db.execute(f"select * from {table} order by 1, 2, 3").fetchall() for table in ("runs", "hits")
            ]

    def close(self) -> None:
        for node in self._nodes:
            if node.poll() is None:
                node.terminate()
                node.wait(DEADLINE_S)


def raw_files(folder: Path, pieces: int = 6, seconds: float = 120) -> dict[str, list[Path]]:
    """Files of two receivers."""
    files = {}
    for number, serial in enumerate(SERIALS):
        lines = Scene(seconds=seconds, noise_per_s=2.0, seed=number).lines()
        cuts = [len(lines) * piece // pieces for piece in range(1, pieces)]
        files[serial] = [
            path.rename(path.with_name(path.name.replace(SERIALS[0], serial)))
            for path in write_files(lines, folder / serial, cuts, packed=True)
        ]
    return files


def archive(files: dict[str, list[Path]], target: Path) -> Path:
    """One zip with all files, of which one receiver's are in a zip of their own, and with files that are no good."""
    inner = target.with_name("inner.zip")
    with zipfile.ZipFile(inner, "w") as within:
        for path in files[SERIALS[1]]:
            within.write(path, f"deep/{path.name}")
    with zipfile.ZipFile(target, "w") as whole:
        for path in files[SERIALS[0]]:
            whole.write(path, f"SGdata/{path.name}")
        whole.write(inner, "second/inner.zip")
        whole.writestr(f"bad/{file_name(9, BEGUN)}", b"")
        whole.writestr(f"bad/{file_name(9, BEGUN + 1)}", b"\0" * 10_000)
        whole.writestr(f"bad/{file_name(9, BEGUN + 2)}.gz", gzip.compress(b"p,1,2,3,4,5\n" * 1000)[:-30])
        whole.writestr("notes.doc", b"where we were")
        whole.writestr("evil.zip", b"PK\x03\x04 not a zip")
    return target


def expected(files: dict[str, list[Path]], place: Path) -> dict[str, Content]:
    """What is detected when each receiver's files are given at once."""
    contents = {}
    for serial, paths in files.items():
        path = place / f"{serial}.sqlite"
        ReceiverDatabase(path, TAGS).detect(paths, now_s=BEGUN + 86_400)
        with snapshot(path) as db:
            contents[serial] = [
                db.execute(f"select * from {table} order by 1, 2, 3").fetchall() for table in ("runs", "hits")
            ]
    return contents
