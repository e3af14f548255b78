"""``make demo``: deposits real files with a node of its own, and shows what came of it.

``SOURCE`` names the folder (the running interpreter's standard library unless given), ``OUT`` where
to put everything (``demo-out``). With ``CRASH=1`` the node, with all its processes, is killed with
SIGKILL in the middle and another is started; afterwards the history and the bags are looked through
for a stage that ran twice or a digest that is wrong. Exit code 0 only when all is well.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import psutil

from spinney.apps.ingest import inventory, outbox
from spinney.apps.ingest.application import app, batches
from spinney.apps.ingest.audit import Audit, audit
from spinney.apps.ingest.stages import DISK_LIMIT_VARIABLE
from spinney.config import ENVIRONMENT
from spinney.model.errors import SpinneyError, UsageError
from spinney.model.jobs import Filter
from spinney.model.states import SETTLED, State
from spinney.stores.contract import Store
from spinney.stores.sql import open_store

MARK = ".spinney-demo"
"""By this file a folder is known to be an earlier demo's, which may be removed."""
CACHES = ["__pycache__", "site-packages", "dist-packages"]
CRASH_AT = 0.3
"""The share of objects that is done when the node is killed."""
LOOK_S = 0.03
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to deposit, and where everything goes."""

    source: Path
    leave_out: list[str]
    out: Path
    crash: bool

    @property
    def url(self) -> str:
        return f"sqlite:///{self.out / 'spinney.db'}"

    @property
    def archive(self) -> Path:
        return self.out / "archive"


def main() -> int:
    try:
        plan = _plan(os.environ)
        _make_room(plan.out)
        return _run(plan)
    except SpinneyError as error:
        print(f"demo: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _plan(environment: "os._Environ[str]") -> Plan:
    named = environment.get("SOURCE")
    source = Path(named or sysconfig.get_path("stdlib")).expanduser().resolve()
    if not source.is_dir():
        raise UsageError(f"SOURCE={named} is no folder; name one, as in make demo SOURCE=/some/folder")
    out = Path(environment.get("OUT") or "demo-out").resolve()
    if out == source or source in out.parents or out in source.parents:
        raise UsageError(f"{source} and {out} lie within each other; put the output elsewhere with OUT=/some/folder")
    return Plan(
        source=source, leave_out=[] if named else CACHES, out=out, crash=environment.get("CRASH", "") not in ("", "0")
    )


def _make_room(out: Path) -> None:
    if out.exists():
        if not (out / MARK).exists():
            raise UsageError(f"{out} is there and is no earlier demo's; move it away, or name another with OUT=")
        shutil.rmtree(out)
    out.mkdir(parents=True)
    (out / MARK).touch()


def _run(plan: Plan) -> int:
    os.environ[ENVIRONMENT] = plan.url
    os.environ.setdefault(DISK_LIMIT_VARIABLE, "0.99")
    subprocess.run(_spinney("init"), check=True, stdout=subprocess.DEVNULL)
    batch = batches.submit(source=plan.source, archive=plan.archive, leave_out=plan.leave_out)
    _say(f"Depositing {plan.source} as batch {batch} …")
    with closing(open_store(plan.url)) as store, (plan.out / "node.log").open("w") as log:
        if plan.crash:
            _until_killed(store, batch, log)
        with _node(log) as node:
            _watch(lambda display: display.poll() is not None, batch, node)
        folder = _job_folder(batch)
        report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else None
        if report is None:
            job = store.job(batch)
            raise UsageError(f"the batch is {job.state} without a report: {job.message}; see {plan.out / 'node.log'}")
        checked = audit(store, batch, plan.archive, report["deposit"])
    app.close()
    _tell(plan, folder, checked)
    return 1 if checked.faults or report["failures"] or report["refused"] or checked.bags < report["objects"] else 0


# --- nodes, and the death of one ---------------------------------------------------------------


def _until_killed(store: Store, batch: int, log: TextIO) -> None:
    """Run a node until a good part of the objects is done, then kill it whole."""
    below = Filter(root_id=batch)

    def far_enough(display: "subprocess.Popen[bytes]") -> bool:
        counts = store.counts(below)
        objects = sum(counts.values()) - 1
        busy = counts.get(State.RUNNING, 0) + counts.get(State.CLAIMED, 0)
        done = counts.get(State.COMPLETED, 0) >= CRASH_AT * objects > 0 and busy > 0
        return done or display.poll() is not None

    with _node(log) as node:
        _watch(far_enough, batch, node)
        killed = _kill_whole(node)
    if store.job(batch).state in SETTLED:
        _say("The batch had ended before the node could be killed in its middle; take a larger SOURCE.")
        return
    done = store.counts(below).get(State.COMPLETED, 0)
    _say(f"CRASH: killed the node's {killed} processes with SIGKILL when {done} objects were done; starting another …")


@contextmanager
def _node(log: TextIO) -> Iterator["subprocess.Popen[bytes]"]:
    """A node of this store; drained at the end unless it has gone before."""
    command = _spinney("node", "spinney.apps.ingest:app", "--name", "demo")
    node = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield node
    finally:
        if node.poll() is None:
            node.send_signal(signal.SIGTERM)
        try:
            node.wait(30)
        except subprocess.TimeoutExpired:
            _kill_whole(node)


def _kill_whole(node: "subprocess.Popen[bytes]") -> int:
    """SIGKILL to the guard, the supervisor and every worker; returns how many there were.

    They are stopped first, so that none sees another die: it is as if the power went.
    """
    guard = psutil.Process(node.pid)
    everybody = [guard, *guard.children(recursive=True)]
    for act in (psutil.Process.suspend, psutil.Process.kill):
        for process in everybody:
            with suppress(psutil.NoSuchProcess):
                act(process)
    psutil.wait_procs(everybody, timeout=30)
    node.wait(30)
    return len(everybody)


def _watch(
    enough: Callable[["subprocess.Popen[bytes]"], bool], batch: int, node: "subprocess.Popen[bytes]"
) -> None:
    """Show the batch's progress (``spinney wait``) until ``enough`` says so."""
    display = subprocess.Popen(_spinney("wait", str(batch)), stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while not enough(display):
            if node.poll() is not None:
                raise UsageError("the node has ended; what it said is in node.log")
            if time.monotonic() > deadline:
                raise UsageError(f"the batch has not ended in {PATIENCE_S:.0f} s; see node.log")
            time.sleep(LOOK_S)
    finally:
        if display.poll() is None:
            display.send_signal(signal.SIGINT)
        display.wait(30)


# --- what came of it ---------------------------------------------------------------------------


def _tell(plan: Plan, folder: Path, checked: Audit) -> None:
    _say("")
    _say((folder / "report.txt").read_text())
    _say("Looked through afterwards:")
    _say(f"  jobs {checked.jobs:,}, attempts {checked.attempts:,}, interrupted by a crash {checked.interrupted:,}")
    _say(f"  bags {checked.bags:,}, digests verified once more {checked.digests:,}")
    for fault in checked.faults:
        _say(f"  FAULT {fault}")
    if not checked.faults:
        _say("  no recorded stage ran twice, no digest is wrong")
    _say("")
    _say(f"  bags       {plan.archive}/")
    _say(f"  inventory  {plan.archive / inventory.FILE_NAME}")
    _say(f"  report     {folder / 'report.txt'}")
    _say(f"  messages   {folder / outbox.FILE_NAME}")
    _say(f"  store      {plan.out / 'spinney.db'}")
    _say(f"  node log   {plan.out / 'node.log'}")


def _job_folder(batch: int) -> Path:
    from spinney.model import places

    return app.settings.folders / places.job_folder(batch)


def _spinney(*words: str) -> list[str]:
    return [sys.executable, "-m", "spinney", *words]


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
