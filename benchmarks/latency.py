"""How soon a job starts on an idle node, and how soon a submission returns beside a busy one."""

import subprocess
import sys
import threading
import time
from collections.abc import Mapping

from benchmarks.place import Site, percentile, site
from benchmarks.throughput import JOBS, ROWS

TRIES = 400
GAP_S = 0.02
"""Between two tries, so that the node is idle again."""

_SUBMITTER = """
import sys, time
from benchmarks.jobs import app as declared
from spinney import Spinney
url, tries, gap = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
app = Spinney(url)
app.types.update(declared.types)
for n in range(tries):
    begun = time.time_ns()
    app.submit("stamp", submitted_ns=begun)
    print((time.time_ns() - begun) / 1e6, flush=True)
    time.sleep(gap)
"""


def idle_start() -> Mapping[str, float]:
    """From the call of submit in another process to the first line of the job's function."""
    with site() as here, here.node(slots=2):
        _submit_from_outside(here, 20)
        here.wait_settled()
        _submit_from_outside(here, TRIES)
        here.wait_settled()
        with here.store.database.look() as tx:
            found = tx.all("select result from history where job_id > 20")
    delays = [int(result) / 1e6 for (result,) in found]
    return {"median ms": percentile(delays, 0.5), "p99 ms": percentile(delays, 0.99)}


def submit_beside_drain() -> Mapping[str, float]:
    """One job at a time from another process while a node drains at full speed."""
    with site() as here:
        app = here.app()
        for _ in range(4):
            app.submit_many("noop", ROWS)
        taken: list[float] = []
        with here.node(slots=2):
            here.wait_begun()
            outside = threading.Thread(target=lambda: taken.extend(_submit_from_outside(here, TRIES)))
            outside.start()
            outside.join()
            still = here.store.database
            with still.look() as tx:
                ((left,),) = tx.all("select count(*) from ready")
            if not left:
                raise RuntimeError(f"the node had run {4 * JOBS} jobs before the submitter was done: no figure")
            here.wait_settled()
        app.close()
    return {"median ms": percentile(taken, 0.5), "p99 ms": percentile(taken, 0.99), "max ms": max(taken)}


def _submit_from_outside(here: Site, tries: int) -> list[float]:
    """Milliseconds that each submission took."""
    command = [sys.executable, "-c", _SUBMITTER, here.url, str(tries), str(GAP_S / 4)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    time.sleep(GAP_S)
    return [float(line) for line in done.stdout.split()]
