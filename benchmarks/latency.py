"""How soon a job starts on an idle node, and how soon a submission returns beside a busy one."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping

from benchmarks.place import Site, percentile, site
from benchmarks.throughput import JOBS, ROWS

TRIES = 400
GAP_S = 0.02
"""Between two tries, so that the node is idle again."""
BUSY_GAP_S = 0.005
"""The same beside a busy node, which has jobs for some seconds only."""

_SUBMITTER = """
import sys, time
from benchmarks.jobs import app as declared
from spinney import Spinney
url, folders, tries, gap = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
app = Spinney(url, folders=folders)
app.types.update(declared.types)
for n in range(tries):
    begun = time.time_ns()
    app.submit("stamp", submitted_ns=begun)
    print((time.time_ns() - begun) / 1e6, flush=True)
    time.sleep(gap)
"""


def idle_start() -> Mapping[str, float]:
    """From the call of submit in another process to the first line of the job's function."""
    return _idle_start({})


def idle_start_elsewhere() -> Mapping[str, float]:
    """The same for a submitter on another host: no run-time directory is shared, so that no datagram gets there.
    On a store in a file that is what polling does; on PostgreSQL the node hears of it."""
    with tempfile.TemporaryDirectory() as nowhere:
        return _idle_start({"XDG_RUNTIME_DIR": nowhere})


def _idle_start(environment: Mapping[str, str]) -> Mapping[str, float]:
    with site() as here, here.node(slots=2):
        _submit_from_outside(here, 20, environment)
        here.wait_settled()
        with here.store.database.look() as tx:  # a store on a server may be used by several cases
            before = tx.value("select max(id) from jobs")
        taken = _submit_from_outside(here, TRIES, environment)
        here.wait_settled()
        with here.store.database.look() as tx:
            rows = tx.all("select result from history where job_id > ?", (before,))
    delays = [int(result) / 1e6 for (result,) in rows]
    return {
        "median ms": percentile(delays, 0.5),
        "p99 ms": percentile(delays, 0.99),
        "submit median ms": percentile(taken, 0.5),
    }


def submit_beside_drain() -> Mapping[str, float]:
    """One job at a time from another process while a node drains at full speed."""
    with site() as here:
        app = here.app()
        for _ in range(4):
            app.submit_many("noop", ROWS)
        taken: list[float] = []
        with here.node(slots=2):
            here.wait_begun()
            outside = threading.Thread(
                target=lambda: taken.extend(_submit_from_outside(here, TRIES, gap_s=BUSY_GAP_S))
            )
            outside.start()
            outside.join()
            still = here.store.database
            with still.look() as tx:
                ((left,),) = tx.all("select count(*) from ready")
            if not left:
                raise RuntimeError(
                    f"the node had run {4 * JOBS} jobs before the submitter was done: no figure"
                )
            here.wait_settled()
        app.close()
    return {"median ms": percentile(taken, 0.5), "p99 ms": percentile(taken, 0.99), "max ms": max(taken)}


def _submit_from_outside(
    here: Site, tries: int, environment: Mapping[str, str] | None = None, *, gap_s: float = GAP_S
) -> list[float]:
    """Milliseconds that each submission took."""
    command = [sys.executable, "-c", _SUBMITTER, here.url, str(here.folder), str(tries), str(gap_s)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | (environment or {})
    )
    time.sleep(GAP_S)
    return [float(line) for line in done.stdout.split()]
