"""The server beside a node that drains at full speed, on a store of some age: pages, lists, streams, submissions.

It is asked over its Unix socket, as this user, who is its admin there.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from benchmarks.place import PATIENCE_S, Site, percentile, site, until
from benchmarks.reading import ASIDE, COMPLETED, fill

ROUNDS = 30
STREAMS = 200
LINES = 1_000
BODIES = 40
STOCK = 60_000
"""So many jobs are kept pending while something is measured."""
A_JOB, A_BATCH, A_PENDING = 500_000, 1, COMPLETED + ASIDE + 1
LIVE_PART = "/#overview"
"""What the page's script asks for at the same address."""
ADDRESSES = (
    "/",
    LIVE_PART,
    "/batches",
    f"/batches/{A_BATCH}",
    "/jobs",
    "/jobs?state=failed",
    "/jobs?type=stamp",
    f"/jobs/{A_JOB}",
    f"/jobs/{A_PENDING}",
    "/queues",
    "/nodes",
    "/holds",
    "/locks",
    "/schedules",
    "/failures",
    "/audit",
    "/submit",
    "/users",
    "/api/v1/jobs",
    "/api/v1/jobs?state=failed",
    "/api/v1/jobs?state=pending&newest=false",
    "/api/v1/jobs?type=stamp",
    "/api/v1/jobs?collection=lone",
    "/api/v1/jobs/count",
    f"/api/v1/jobs/{A_JOB}",
    f"/api/v1/jobs/{A_PENDING}/explain",
    f"/api/v1/jobs/{A_BATCH}/tree?limit=1000",
    f"/api/v1/jobs/{A_BATCH}/children",
    f"/api/v1/jobs/{A_JOB}/attempts",
    "/api/v1/batches",
    f"/api/v1/batches/{A_BATCH}",
    "/api/v1/queues",
    "/api/v1/nodes",
    "/api/v1/holds",
    "/api/v1/locks",
    "/api/v1/schedules",
    "/api/v1/failures",
    "/api/v1/audit",
    "/api/v1/stats",
    "/api/v1/types",
)
TOPICS = ("overview", "batches", "jobs", "queues", "nodes", "failures", f"job:{A_JOB}", f"tree:{A_BATCH}")


def pages() -> Mapping[str, float]:
    """The 95th percentile of each page and list, in ms, while a node drains; and what the server weighs."""
    with site() as here:
        fill(here)
        with (
            here.node(slots=2),
            server_of(here) as (server, socket),
            _stocked(here),
            client_of(socket) as client,
            _watched(socket, 1),  # a page that is open keeps a stream open: here that of the overview
        ):
            figures = {address: _p95_ms(client, address) for address in ADDRESSES}
            memory = server.memory_info().rss / 2**20
    missing = [address for address, figure in figures.items() if figure < 0]
    if missing:
        print(f"not there: {', '.join(missing)}", file=sys.stderr)
    measured = {address: figure for address, figure in figures.items() if figure >= 0}
    slowest = dict(sorted(measured.items(), key=lambda item: -item[1])[:12])
    return {
        "the slowest, p95 ms": max(measured.values()),
        "server MB": memory,
        **{f"{address}, p95 ms": figure for address, figure in slowest.items()},
    }


def streams() -> Mapping[str, float]:
    """A node's pace without a server, with one, and with 200 open event streams: jobs a second, and the shares."""
    with site() as here:
        fill(here)
        with here.node(slots=2):
            alone = _pace(here)
            with server_of(here) as (server, socket):
                beside = _pace(here)
                with _watched(socket, STREAMS):
                    watched = _pace(here)
                memory = server.memory_info().rss / 2**20
            again = _pace(here)
    base = (alone + again) / 2
    return {
        "jobs/s alone": base,
        "beside a server": beside / base,
        f"with {STREAMS} streams": watched / base,
        "of that, because of streams": watched / beside,
        "server MB": memory,
    }


def submit() -> Mapping[str, float]:
    """Jobs a second in bodies of 1,000 JSON lines, one after the other, nobody running them."""
    orders = [{"type": "noop", "params": {"text": f"{n:036d}"}} for n in range(LINES)]
    body = b"".join(json.dumps(order).encode() + b"\n" for order in orders)
    with site() as here, server_of(here) as (server, socket), client_of(socket) as client:
        begun = time.perf_counter()
        for _ in range(BODIES):
            answer = client.post(
                "/api/v1/jobs/batch", content=body, headers={"Content-Type": "application/x-ndjson"}
            )
            answer.raise_for_status()
        taken = time.perf_counter() - begun
        memory = server.memory_info().rss / 2**20
    return {"jobs/s": BODIES * LINES / taken, "server MB": memory}


# --- the parts ----------------------------------------------------------------------------------


@contextmanager
def server_of(here: Site) -> Iterator[tuple[psutil.Process, Path]]:
    socket = here.folder / "bench.sock"
    command = [
        sys.executable,
        "-m",
        "spinney",
        "serve",
        "--port",
        "0",
        "--socket",
        str(socket),
        "--store",
        here.url,
    ]
    with (here.folder / "server.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=here.folder, env=os.environ)
        try:
            until(lambda: _answers(socket), "the server to answer", process)
            yield psutil.Process(process.pid), socket
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def _answers(socket: Path) -> bool:
    if not socket.exists():
        return False
    try:
        with client_of(socket) as client:
            return client.get("/ready").status_code == 200
    except httpx.HTTPError:
        return False


def client_of(socket: Path) -> httpx.Client:
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://localhost", timeout=60
    )


def _p95_ms(client: httpx.Client, address: str) -> float:
    """-1: there is no such page."""
    taken = []
    headers = {"HX-Request": "true"} if address == LIVE_PART else {}
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        answer = client.get(address, headers=headers)
        taken.append((time.perf_counter() - begun) * 1e3)
        if answer.status_code != 200:
            return -1.0
    return percentile(taken, 0.95)


@contextmanager
def _stocked(here: Site) -> Iterator[None]:
    """The node always has something to drain."""
    over = threading.Event()

    def stock() -> None:
        app = here.app()
        while not over.is_set():
            app.submit_many("noop", [{"text": f"{n:036d}"} for n in range(STOCK // 2)])
            while not over.is_set() and _pending(here) > STOCK // 2:
                over.wait(0.2)
        app.close()

    thread = threading.Thread(target=stock)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _pending(here: Site) -> int:
    from spinney.store.sql import open_store

    store = open_store(here.url)  # a store belongs to one thread
    try:
        with store.database.look() as tx:
            return int(tx.value("select count(*) from (select 1 from ready limit ?)", (STOCK,)))
    finally:
        store.close()


def _pace(here: Site) -> float:
    """Jobs a second of a drain."""
    with here.store.database.look() as tx:
        last = tx.value("select value from counters where name = 'job'")
    app = here.app()
    app.submit_many("noop", [{"text": f"{n:036d}"} for n in range(150_000)])
    app.close()
    here.wait_settled()
    return here.rate(last)


@contextmanager
def _watched(socket: Path, streams: int) -> Iterator[None]:
    """Streams that are read by a process of their own."""
    watching = subprocess.Popen(
        [sys.executable, "-c", "from benchmarks.serving import watch; watch()", str(socket), str(streams)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    assert watching.stdout is not None
    watching.stdout.readline()  # all are open
    try:
        yield
    finally:
        watching.kill()
        watching.wait()


def watch() -> None:
    """Open all streams, say so, and read what comes until killed."""
    asyncio.run(_watch(sys.argv[1], int(sys.argv[2])))


async def _watch(socket: str, streams: int) -> None:
    async def one(number: int) -> asyncio.StreamReader:
        topic = TOPICS[number % len(TOPICS)]
        reader, writer = await asyncio.open_unix_connection(socket)
        writer.write(f"GET /events?topic={topic} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"retry:")
        return reader

    async def read(reader: asyncio.StreamReader) -> None:
        while await reader.read(65_536):
            pass

    readers = [await one(number) for number in range(streams)]
    print("open", flush=True)
    await asyncio.gather(*map(read, readers))
