"""The monitor: 4,500 services with 6 tasks each, against a stub server on this machine."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import insert

from benchmarks.place import percentile, site
from benchmarks.serving import client_of, server_of
from spinney.apps.monitor.inventory import TABLES
from spinney.apps.monitor.inventory.schema import entities, history, services, statuses

SERVICES, TASKS, WORKERS = 4_500, 6, 50
HOSTS = 150
"""Services share hosts, as they do in a catalogue; all of these names are this machine."""
HISTORY = 200_000
"""The rows of the history where pages are measured: each service is checked every four hours."""
LARGE = 900
"""The services of entity 1; the others have as many each."""
ROUNDS = 20
_ADDRESSES = (
    "/apps/monitor",
    "/apps/monitor/entities/1",
    "/apps/monitor/of/key-1",
    "/apps/monitor/services/7",
    "/apps/monitor/tasks",
    "/api/v1/apps/monitor/entities",
    "/api/v1/apps/monitor/services",
    "/api/v1/apps/monitor/services?format=csv",
    "/api/v1/apps/monitor/changes",
    "/api/v1/apps/monitor/changes?format=csv",
    "/api/v1/apps/monitor/metrics",
)
_COMMANDS = (
    b"NOOP",
    b"QUERY",
    b"JOBLIST",
    b"ENTITIES",
    b"LSSERV 1",
    b"QSERVICE 7",
    b"QTASK 7",
    b"REGTASKS",
    b"WHOS",
)
_SERVER = """
import http.server
class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("content-length", "4"); self.end_headers(); self.wfile.write(b"fine")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Quiet)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
_MODULE = """
from spinney.apps.monitor.checks.{check} import check

NAME, DESCRIPTION = "task_{number}", "Task {number}"
"""


_EMPTY_MODULE = """
from spinney.apps.monitor.tasks.findings import Finding

NAME, DESCRIPTION = "task_{number}", "Task {number}"

def check(service, context):
    return Finding()
"""


def check_all() -> Mapping[str, float]:
    """All services through all tasks in one sequence, from its start to its end, with socket commands beside it; and
    the same with tasks that do nothing, which is the part of the engine and of the results' tables."""
    figures = _check(_MODULE)
    empty = _check(_EMPTY_MODULE)
    share = empty["all services, s"] / figures["all services, s"]
    return {
        **figures,
        "with tasks that do nothing, s": empty["all services, s"],
        "share of the engine, %": 100 * share,
    }


def _check(module: str) -> Mapping[str, float]:
    with TemporaryDirectory() as folder, _stub() as port:
        place = Path(folder)
        _set_up(place, port, module)
        command = [sys.executable, "-m", "spinney", "monitor", "run"]
        running = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(lambda: (place / "monitor.sock").exists())
            sequence = _spinney(place, "monitor", "check", "--all").strip()
            began_s, waits_s = time.monotonic(), []
            while _state(place, sequence) not in ("completed", "failed"):
                waits_s += _ask(place / "monitor.sock")
                time.sleep(0.5)
            took_s = time.monotonic() - began_s
        finally:
            running.terminate()
            running.wait(60)
        counts = json.loads(_spinney(place, "monitor", "status", "--json"))["services"]
    if counts["ok"] != SERVICES:
        raise RuntimeError(f"only {counts['ok']} of {SERVICES} services were found in order: no figure")
    waits_s.sort()
    return {
        "all services, s": took_s,
        "tasks/s": SERVICES * TASKS / took_s,
        "socket command, p99 ms": waits_s[int(len(waits_s) * 0.99)] * 1000,
    }


def pages() -> Mapping[str, float]:
    """Every page and list, asked one after the other: the median and the longest of each, in ms."""
    figures = {}
    with site() as here:
        url = f"sqlite:///{here.folder}/monitor.db"
        (here.folder / "monitor.toml").write_text(f'tables = "{url}"\n')
        _fill(url)
        with server_of(here) as (_, socket_path), client_of(socket_path) as client:
            for address in _ADDRESSES:
                waits_ms = []
                for _ in range(ROUNDS):
                    began_s = time.perf_counter()
                    answer = client.get(address)
                    waits_ms.append((time.perf_counter() - began_s) * 1000)
                    answer.raise_for_status()
                figures[f"{address}, p50 ms"] = percentile(waits_ms, 0.5)
                figures[f"{address}, max ms"] = max(waits_ms)
    return {"the slowest, max ms": max(figures.values()), **figures}


def _fill(url: str) -> None:
    """Make the tables, with services of 91 entities, their newest results, and the history of some days."""
    tables = TABLES.open(url)
    tables.init()
    now_us = time.time_ns() // 1000
    step_us = 4 * 3_600_000_000
    numbers = range(1, SERVICES + 1)
    of_task = HISTORY // SERVICES
    rows = [
        {
            "gid": gid,
            "task": f"task_{number % TASKS}",
            "status": "error" if (gid + number) % 40 == 0 else "ok",
            "before": "error" if (gid + number) % 40 == 1 else "ok",
            "info": f"HTTP status code 200, {gid * number:,} bytes",
            "at_us": now_us - number * step_us - gid * 1000,
            "duration_s": 0.3,
            "job_id": number * SERVICES + gid,
        }
        for number in range(of_task + 1)
        for gid in numbers
    ][:HISTORY]
    newest = [
        {**{name: row[name] for name in row if name not in ("before", "job_id")}, "since_us": row["at_us"]}
        for row in rows[: SERVICES * TASKS]
    ]
    with tables.write() as connection:
        connection.execute(
            insert(entities),
            [
                {
                    "eid": eid,
                    "description": f"Entity {eid}",
                    "page_key": f"key-{eid}",
                    "email": f"{eid}@example.org",
                }
                for eid in range(1, 92)
            ],
        )
        connection.execute(
            insert(services),
            [
                {
                    "gid": gid,
                    "eid": 1 if gid <= LARGE else 2 + gid % 90,
                    "uuid": str(gid),
                    "type": "WMS",
                    "uri": f"https://example.org/{gid}",
                    "description": f"Service {gid}",
                    "added_us": now_us,
                    "checked_us": now_us - gid * 1000,
                }
                for gid in numbers
            ],
        )
        connection.execute(insert(history), rows)
        connection.execute(insert(statuses), newest)
    tables.close()


def _set_up(place: Path, port: int, module: str) -> None:
    hosts = [f"127.0.0.{number}" for number in range(1, HOSTS + 1)]
    network = f"[network]\nprivate = {json.dumps(hosts)}\n"
    (place / "monitor.toml").write_text(f'workers = {WORKERS}\n{network}[socket]\nlisten = ""\n')
    (place / "tasks").mkdir()
    for number in range(TASKS):
        check = "http" if number == 1 else "uri"
        (place / "tasks" / f"{number}0_task.py").write_text(module.format(check=check, number=number))
    rows = [
        {
            "gid": number,
            "entity": f"Entity {number % 90}",
            "type": "HTTP",
            "uri": f"http://{hosts[number % HOSTS]}:{port}/{number}",
            "description": f"Service {number}",
        }
        for number in range(1, SERVICES + 1)
    ]
    (place / "services.json").write_text(json.dumps(rows))
    for words in (("init",), ("monitor", "init"), ("monitor", "import", "services.json")):
        _spinney(place, *words)


@contextmanager
def _stub() -> Iterator[int]:
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait()


def _spinney(place: Path, *words: str) -> str:
    environment = {**os.environ, "SPINNEY_STORE": f"sqlite:///{place}/spinney.db"}
    command = [sys.executable, "-m", "spinney", *words]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def _state(place: Path, sequence: str) -> str:
    return str(json.loads(_spinney(place, "show", sequence, "--json"))["job"]["state"])


def _ask(path: Path) -> list[float]:
    """Return how long each command took over one connection, in seconds."""
    waits_s = []
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(path))
        for command in _COMMANDS:
            began_s = time.monotonic()
            client.sendall(command + b"\n")
            reply = b""
            while not reply.endswith(b"\n\n"):
                reply += client.recv(1 << 16)
            waits_s.append(time.monotonic() - began_s)
    return waits_s


def _wait(is_so: Callable[[], bool], patience_s: float = 60.0) -> None:
    until_s = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > until_s:
            raise TimeoutError("the monitor did not start")
        time.sleep(0.05)
