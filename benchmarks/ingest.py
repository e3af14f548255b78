"""The ingest service: deposits from a server on this machine, big manifests, and a small batch behind a big one."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from benchmarks.place import Site, site, until
from spinney.apps.ingest import app
from spinney.apps.ingest.application import batches
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.apps.ingest.verbs.setup import prepare
from spinney.files.digests import digest
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.rights.actor import Actor
from spinney.model.states import SETTLED, State

OBJECTS, FILES = 1_000, 10
MANY = 100_000
SMALL = 20
"""Objects of the batch that comes behind the big one."""

_SERVER = """
import functools, http.server, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as any server for many small files has it
    wbufsize = 1 << 16
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=sys.argv[1]))
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def deposit() -> Mapping[str, float]:
    """1,000 objects of 10 files of 5 kB: from submission to the report.

    Three slots, for on two cores an object waits a quarter of its time for the disk and for the supervisor.
    """
    with _service() as (here, port):
        batch = _submit(here, PayloadKind.BATCH_MANIFEST, lambda: _objects(here, port, OBJECTS))
        os.sync()  # a depositor's files have long been written; the node is not to wait for them
        with here.node(slots=3, app="spinney.apps.ingest:app"):
            began = time.monotonic()
            _settled(here, batch)
            took_s = time.monotonic() - began
        completed = here.store.counts(Filter(root_id=batch)).get(State.COMPLETED, 0)
    if completed != OBJECTS + 1:
        raise RuntimeError(f"only {completed} of {OBJECTS + 1} jobs were completed: no figure")
    return {"1,000 objects, s": took_s, "objects/s": OBJECTS / took_s}


def accept() -> Mapping[str, float]:
    """A batch manifest of 100,000 objects, from submission until all their jobs are accepted; then a small batch."""
    with _service() as (here, port):
        big = _submit(here, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, lambda: _files(here, port, MANY))
        with here.node(slots=2, app="spinney.apps.ingest:app"):
            began = time.monotonic()
            until(lambda: here.store.counts(Filter(parent_id=big)), "the objects of the big batch")
            accepted_s = time.monotonic() - began
            until(lambda: _completed(here, big) > 20, "the big batch to begin")
            small = _submit(here, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, lambda: _files(here, port, SMALL))
            began, done = time.monotonic(), _completed(here, big)
            _settled(here, small)
            small_s, others = time.monotonic() - began, _completed(here, big) - done
            order, now_us = Order(verb=Verb.CANCEL, tree=True), time.time_ns() // 1000
            here.store.bulk.apply(order, [big], Actor(by="bench"), now_us=now_us)
    return {
        "100,000 objects accepted, s": accepted_s,
        "20 objects behind them, s": small_s,
        "objects of the big one meanwhile": others,
    }


# --- the service ------------------------------------------------------------------------------


@contextmanager
def _service() -> Iterator[tuple[Site, int]]:
    with site() as here, _web(here.folder / "www") as port:
        home = here.folder / "home"
        (home / "profiles").mkdir(parents=True)
        (here.folder / "ingest.toml").write_text(
            f'home = "{home}"\n[storage.main]\nurl = "{here.folder}/archive"\n'
            '[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n'
        )
        (home / "profiles" / "bench.toml").write_text(f'collection = "bench"\nhosts = ["127.0.0.1:{port}"]\n')
        variables = {"SPINNEY_INGEST": str(here.folder / "ingest.toml"), "SPINNEY_STORE": here.url}
        with mock.patch.dict(os.environ, variables):
            assert list(prepare(settings.load()))
            yield here, port
            app.close()


@contextmanager
def _web(folder: Path) -> Iterator[int]:
    folder.mkdir()
    server = subprocess.Popen([sys.executable, "-c", _SERVER, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.wait()


def _submit(here: Site, kind: PayloadKind, rows: Callable[[], Iterator[Row]]) -> int:
    bid = orders.new_bid()
    folder = settings.load().incoming / bid
    folder.mkdir(parents=True)
    with (folder / "manifest").open("wb") as stream:
        write(rows(), kind, stream)
    order = {"bid": bid, "profile": "bench", "kind": kind, "name": "manifest", "submitter": "bench"}
    made = batches.options(collection="bench", submitter="bench")
    app._locations = (here.url, here.folder / "bench.folders")
    return made.submit(order=order)


def _objects(here: Site, port: int, n: int) -> Iterator[Row]:
    """Object manifests, each of ten files."""
    for k in range(n):
        folder = here.folder / "www" / f"o{k}"
        folder.mkdir()
        with (folder / "manifest").open("wb") as stream:
            write(
                list(_files_of(folder, f"http://127.0.0.1:{port}/o{k}", k)),
                PayloadKind.OBJECT_MANIFEST,
                stream,
            )
        yield Row(url=f"http://127.0.0.1:{port}/o{k}/manifest", name=f"o{k}")


def _files_of(folder: Path, url: str, k: int) -> Iterator[Row]:
    for n in range(FILES):
        content = f"{k}/{n}\n".encode() * 700
        (folder / f"{n}.txt").write_bytes(content)
        yield Row(
            url=f"{url}/{n}.txt",
            name=f"{n}.txt",
            digest=digest("sha256", hashlib.sha256(content).hexdigest()),
        )


def _files(here: Site, port: int, n: int) -> Iterator[Row]:
    """One file, as so many objects."""
    (here.folder / "www" / "one.txt").write_text("one\n")
    for k in range(n):
        yield Row(url=f"http://127.0.0.1:{port}/one.txt", name=f"{k}.txt", size_bytes=4)


def _settled(here: Site, job_id: int) -> None:
    until(lambda: here.store.job(job_id).state in SETTLED, "the batch to settle")


def _completed(here: Site, batch: int) -> int:
    return here.store.counts(Filter(parent_id=batch, states=frozenset({State.COMPLETED}))).get(
        State.COMPLETED, 0
    )
