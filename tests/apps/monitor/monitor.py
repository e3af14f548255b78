"""A monitor as tests run it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import psutil

from cli.shell import Shell
from process_end import at_process_end
from waiting import until

PATIENCE_S = 120.0


@dataclass(kw_only=True)
class Monitor:
    """Its folder, and the nodes that have been started."""

    place: Path
    store: str
    tables: str | None = None
    nodes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def shell(self) -> Shell:
        """A command line in its folder."""
        return Shell(self.place)

    def set_up(self) -> None:
        """Make the store, the tables and an empty folder of tasks. In files they are a copy of what is made once."""
        if self.store.startswith("sqlite"):
            shutil.copytree(_set_up_in_files(), self.place, dirs_exist_ok=True)
            self._write_settings()
            return
        self._make()

    def _make(self) -> None:
        self._write_settings()
        (self.place / "tasks").mkdir()
        self.shell.ok("init")
        self.shell.ok("monitor", "init", "--no-tasks")

    def _write_settings(self) -> None:
        (self.place / "spinney.toml").write_text(
            f'[spinney]\nstore = "{self.store}"\nfolders = "spinney.folders"\n'
        )
        named = f'tables = "{self.tables}"\n' if self.tables else ""
        (self.place / "monitor.toml").write_text(f"{named}timeout_s = 5\nworkers = 8\n")

    def task(self, name: str, body: str, *, identify: str | None = None) -> Path:
        """Write a task in Bash; ``$gid``, ``$uri``, ``$uuid``, ``$type``, ``$version`` are those of the service."""
        identity = identify or f"{{{name.partition('_')[2].partition('.')[0]}}} {{The task {name}}}"
        file = self.place / "tasks" / name
        file.write_text(
            f'if [ "$1" = identify ]; then echo "{identity}"; exit 0; fi\n'
            f"IFS='|' read -r gid uri uuid type version <<< \"$1\"\n{body}\n"
        )
        return file

    def import_(self, rows: list[Mapping[str, Any]], *options: str) -> str:
        """Import services, and return what the command says."""
        file = self.place / "services.json"
        file.write_bytes(orjson.dumps(rows))
        return self.shell.ok("monitor", "import", str(file), *options)

    def start_node(self, slots: int = 1) -> "subprocess.Popen[bytes]":
        """Start a node that does checks. One with more slots starts more workers, which take long to load."""
        return self.start("node", "spinney.apps.monitor:app", "--slots", str(slots))

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command that runs until the test ends."""
        command = [sys.executable, "-m", "spinney", *words]
        log = (self.place / f"node-{len(self.nodes)}.log").open("wb")
        scratch = self.place / "scratch"  # what is left of checks that are killed goes with the test
        scratch.mkdir(exist_ok=True)
        environment = {**os.environ, "SPINNEY_STORE": self.store, "TMPDIR": str(scratch)}
        node = subprocess.Popen(command, cwd=self.place, env=environment, stdout=log, stderr=log)
        self.nodes.append(node)
        return node

    def nodes_of(self, running: "subprocess.Popen[bytes]") -> list[psutil.Process]:
        """The processes that a running monitor has started."""
        return psutil.Process(running.pid).children()

    def check(self, *selection: str) -> int:
        """Start a sequence, and return its number."""
        return int(self.shell.ok("monitor", "check", *selection))

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until it is so. Raises AssertionError with the nodes' logs where it does not become so."""
        until(done, self._logs, PATIENCE_S)

    def _logs(self) -> str:
        return "\n".join(file.read_text() for file in sorted(self.place.glob("node-*.log")))[-4000:]

    def is_settled(self, job_id: int) -> bool:
        """Whether a job has ended."""
        return self.job(job_id)["state"] in ("completed", "failed", "cancelled")

    def job(self, job_id: int) -> dict[str, Any]:
        """A job as the command line shows it."""
        return dict(orjson.loads(self.shell.ok("show", str(job_id), "--json"))["job"])

    def status(self, gid: int) -> dict[str, tuple[str, str]]:
        """Status and text of each task of a service."""
        lines = orjson.loads(self.shell.ok("monitor", "status", str(gid), "--json"))
        return {line["task"]: (line["status"], line["info"]) for line in lines}

    def close(self) -> None:
        """End the nodes."""
        for node in self.nodes:
            if node.poll() is None:
                node.send_signal(signal.SIGTERM)
        for node in self.nodes:
            node.wait(60)


@cache
def _set_up_in_files() -> Path:
    """Return a folder that is removed at the end of the process."""
    folder = tempfile.TemporaryDirectory(prefix="spinney-monitor-")
    at_process_end(folder.cleanup)
    place = Path(folder.name)
    Monitor(place=place, store=f"sqlite:///{place}/spinney.db")._make()
    return place


def service(number: int, **fields: Any) -> dict[str, Any]:
    """A row of an import."""
    return {
        "gid": number,
        "entity": "Sea Institute",
        "type": "WMS",
        "version": "1.3.0",
        "uri": f"http://127.0.0.1:9/{number}",
        "description": f"Map {number}",
        **fields,
    }
