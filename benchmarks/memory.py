"""What an idle node and a server need of the machine's memory.

RSS counts pages that processes share once for each of them; PSS divides each page among all processes of the machine
that have it, other programs in Python among them. ``alone`` is what there would be without those: what each process has
for itself, and the pages of files of the one that has most of them. All are sums of ``/proc/PID/smaps_rollup``."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from benchmarks.place import site, until
from benchmarks.serving import ADDRESSES, client_of, server_of

IDLE_S = 2.0


def idle_node() -> Mapping[str, float]:
    """Guard, supervisor and two workers, each of which has run jobs, with nothing to do."""
    with site() as here, here.node(slots=2) as supervisor:
        app = here.app()
        app.submit_many("nap", [{"seconds": 0.05}] * 40)
        here.wait_settled()
        app.close()
        until(lambda: len(supervisor.children()) == 2, "two workers")
        time.sleep(IDLE_S)
        guard = supervisor.parent()
        assert guard is not None
        workers = supervisor.children()
        each = {"guard": guard, "supervisor": supervisor, "a worker": workers[0]}
        parts = {f"{name}, PSS MB": _of(process.pid)["Pss"] for name, process in each.items()}
        return _sizes([guard, supervisor, *workers]) | parts


def server_after_pages() -> Mapping[str, float]:
    """A server beside 1,000 jobs, after each of its pages and lists was asked for three times."""
    addresses = [
        address for address in ADDRESSES if not any(letter.isdigit() for letter in address.split("/v1/")[-1])
    ]
    with site() as here, server_of(here) as (server, socket), client_of(socket) as client:
        app = here.app()
        app.submit_many("noop", [{"text": "x" * 36}] * 1_000)
        app.close()
        for address in addresses * 3:
            client.get(address).raise_for_status()
        return _sizes([server])


def _sizes(processes: Sequence[psutil.Process]) -> dict[str, float]:
    sizes = [_of(process.pid) for process in processes]
    anonymous = [size["Anonymous"] for size in sizes]
    from_files = [size["Rss"] - size["Anonymous"] for size in sizes]
    return {
        "RSS MB": sum(size["Rss"] for size in sizes),
        "PSS MB": sum(size["Pss"] for size in sizes),
        "alone on a machine, MB": sum(anonymous) + max(from_files),
    }


def _of(pid: int) -> dict[str, float]:
    """The kernel's counts, in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(rest.split()[0]) / 1024 for name, rest in (line.split(":") for line in lines)}
