"""``python -m benchmarks [CASE ...]``: measure, print a table, write ``build/benchmarks.json``."""

import json
import platform
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    bare_start,
    bridge,
    claims,
    cluster,
    failing,
    fairness,
    holds,
    ingest,
    latency,
    many_jobs,
    memory,
    merritt,
    monitor,
    reading,
    receivers,
    serving,
    throughput,
)
from benchmarks.place import fsync_ms, loop_s

CASES = {
    "bulk submit": throughput.bulk_submit,
    "drain": throughput.drain,
    "drain of stages": throughput.drain_of_stages,
    "idle start": latency.idle_start,
    "idle start, without Spinney": bare_start.bare_start,
    "idle start, submitted elsewhere": latency.idle_start_elsewhere,
    "submit beside a drain": latency.submit_beside_drain,
    "behind a big batch": fairness.behind_a_big_batch,
    "claim": claims.flat_claims,
    "two nodes": cluster.two_nodes,
    "limit and shares": cluster.limit_and_shares,
    "claim beside 5,000,000": cluster.flat_beside_finished,
    "transaction held open": cluster.held_open,
    "dead rows": cluster.dead_rows,
    "memory of an idle node": memory.idle_node,
    "memory of a server": memory.server_after_pages,
    "failing": failing.frames,
    "reading": reading.reading,
    "hold and release 100,000": holds.hold_and_release,
    "hold what is next": holds.hold_what_is_next,
    "many jobs": many_jobs.many_jobs,
    "server: pages and lists": serving.pages,
    "server: event streams": serving.streams,
    "server: submit": serving.submit,
    "ingest": ingest.deposit,
    "ingest of 100,000": ingest.accept,
    "bridge": bridge.tasks,
    "merritt": merritt.acquire,
    "receivers: 10,000 files": receivers.many_files,
    "receivers: 200 archives": receivers.many_archives,
    "receivers: archive of 2 GB": receivers.huge_archive,
    "monitor": monitor.check_all,
    "monitor: pages and lists": monitor.pages,
}


def main(names: list[str]) -> int:
    """Run the cases of these names, or all."""
    unknown = [n for n in names if n not in CASES]
    if unknown:
        print(f"no case {unknown[0]!r}; choose from: {', '.join(CASES)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        machine = {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "fdatasync of 4 kB, ms": round(fsync_ms(Path(folder)), 3),
            "empty loop of 10,000,000, s": round(loop_s(), 2),
            "time": time.strftime("%Y-%m-%d %H:%M"),
        }
    table = Table("case", "figure", "value", title=", ".join(f"{k} {v}" for k, v in machine.items()))
    figures = {}
    for name in names or CASES:
        figures[name] = CASES[name]()
        for figure, value in figures[name].items():
            table.add_row(name, figure, f"{value:,.2f}" if value < 1000 else f"{value:,.0f}")
    Console(width=110).print(table)
    target = Path("build")
    target.mkdir(exist_ok=True)
    (target / "benchmarks.json").write_text(json.dumps({"machine": machine, "figures": figures}, indent=1))
    return 0


sys.exit(main(sys.argv[1:]))
