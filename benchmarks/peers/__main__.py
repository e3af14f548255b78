"""``python -m benchmarks.peers [--peer NAME ...] [--case NAME ...] [--rounds N] [--jobs N]``: print the table."""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from benchmarks.peers import servers
from benchmarks.peers.cases import CASES
from benchmarks.peers.catalogue import PEERS, Peer, choose
from benchmarks.peers.place import PeerFailed, Place
from benchmarks.peers.table import Line, markdown, merged
from benchmarks.place import fsync_ms, loop_s


def main(words: list[str] | None = None) -> int:
    """Measure what the command line names; the figures are kept in ``build/peers.json``."""
    options = _options(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # servers and peers end as they do with Ctrl-C
    file = Path("build/peers.json")
    runs = json.loads(file.read_text()) if options.add else []
    lines = [Line(peer) for peer in options.peer]
    with servers.postgresql() as server:
        circumstances = _circumstances(options, server)
        code = 0
        try:
            _measure_all(options, lines, server)
        except KeyboardInterrupt:  # what was measured until then is shown
            code = 130
    runs.append({"circumstances": circumstances, "lines": [asdict(line) for line in lines]})
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(runs, indent=1))
    print(markdown([run["circumstances"] for run in runs], merged(runs)))
    return code


def _measure_all(options: argparse.Namespace, lines: list[Line], server: servers.PrivateServer) -> None:
    for line in lines:
        _look_for(line)
    for number in range(options.rounds):
        for name in options.case:
            for line in lines:
                if line.versions:
                    print(f"round {number + 1}, {name}: {line.peer.name}", file=sys.stderr, flush=True)
                    _measure(line, name, options.jobs, server)


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description="Measure Spinney beside its peers."
    )
    names = ", ".join(peer.name for peer in PEERS)
    parser.add_argument(
        "--peer", nargs="*", default=[], metavar="NAME", help=f"words of their names, of: {names}"
    )
    parser.add_argument("--case", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=3, help="each peer is measured so often (default 3)")
    parser.add_argument(
        "--jobs", type=int, default=40_000, help="of the drain, after a tenth as many (default 40000)"
    )
    parser.add_argument(
        "--add", action="store_true", help="add to the table of the last run (build/peers.json)"
    )
    options = parser.parse_args(words)
    try:
        options.peer = choose(options.peer)
    except ValueError as error:
        parser.error(str(error))
    return options


def _look_for(line: Line) -> None:
    """Fill in the versions, or the reason for which the peer is not measured."""
    with tempfile.TemporaryDirectory(prefix="spinney-peers-") as folder:
        try:
            line.versions = Place(line.peer, Path(folder), _unused(line.peer)).versions()
        except PeerFailed as error:
            line.failures.append(f"it is not installed ({error})")


def _measure(line: Line, name: str, jobs: int, server: servers.PrivateServer) -> None:
    try:
        with _place(line.peer, server) as place:
            place.prepare()
            line.figures.append(CASES[name](place, jobs))
    except (PeerFailed, servers.NoServer) as error:
        line.failures.append(f"{name}: {error}")
        print(f"  {error}", file=sys.stderr, flush=True)


@contextmanager
def _place(peer: Peer, server: servers.PrivateServer) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="spinney-peers-") as name:
        folder = Path(name)
        match peer.store:
            case "postgresql":
                with servers.database(server) as url:
                    yield Place(peer, folder, url)
            case "redis":
                with servers.redis() as url:
                    yield Place(peer, folder, url)
            case _:
                file = folder / "jobs.db"
                yield Place(
                    peer, folder, f"sqlite:///{file}" if peer.name.startswith("Spinney") else str(file)
                )


def _unused(peer: Peer) -> str:
    return "redis://127.0.0.1:1" if peer.store == "redis" else "unused.db"


def _circumstances(options: argparse.Namespace, server: servers.PrivateServer) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder, server.connect() as connection:
        (version,) = connection.execute("show server_version").fetchone() or ("",)
        return {
            "at": time.strftime("%Y-%m-%d %H:%M"),
            "cases": " ".join(options.case),
            "rounds": options.rounds,
            "jobs": f"{options.jobs:,}",
            "cores": os.cpu_count(),
            "CPython": platform.python_version(),
            "PostgreSQL": version,
            "fdatasync of 4 kB": f"{fsync_ms(Path(folder)):.2f} ms",
            "empty loop of 10,000,000": f"{loop_s():.2f} s",
            "load before": f"{os.getloadavg()[0]:.1f}",
        }


if __name__ == "__main__":
    sys.exit(main())
