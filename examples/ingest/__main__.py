"""The steps of the demo: serve, deposit, report, correct, requeue, report again, check."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import orjson
import psutil

from examples.demo_tools import COMMAND, Process, make_folder, run_demo, running, wait_for
from examples.ingest import promise_checks
from examples.ingest.file_server import FileServer, run_server
from examples.ingest.plan import ARCHIVE, DEPOSITOR, PROFILE, Plan, plan, set_up
from examples.ingest.sample_deposit import Offer, find, offer
from spinney.apps.ingest.batches.batch_reports import report_folder
from spinney.apps.ingest.config.settings import FILE, VARIABLE
from spinney.apps.ingest.verbs.arrivals import Accepted, submit
from spinney.apps.ingest.verbs.requeues import Requeue
from spinney.apps.ingest.verbs.service import Service
from spinney.apps.ingest.verbs.submission import Submit
from spinney.command_line import open_control
from spinney.errors import UsageError, counted
from spinney.files.paths import shown
from spinney.jobs import SETTLED, Filter, State, job_folder

CRASH_AT = 0.3
"""The share of objects that is done when the node is killed."""
PATIENCE_S = 600.0
"""How long a step of the demo may take, in seconds."""
_NODE = ("node", "spinney.apps.ingest:app", "--name", "demo")
_MAILS = Filter(type="reports.mail")
_REPORTS = 2
_COMPLETED = "\nCompleted objects ("
"""The beginning of the list in a report's text that is not shown here."""


def main() -> int:
    """Run the demo by the environment's options, and return the exit code: 0 only when all is well."""
    return run_demo(_run)


def _run() -> list[str]:
    """Run the steps, print the results, and return what is not as it should be."""
    planned = plan(os.environ)
    make_folder(planned.out, FILE, VARIABLE)
    objects, left_out = find(planned.source, planned.leave_out)
    with run_server() as server:
        offered = offer(planned.source, objects, planned.out / "manifests", server.base_url)
        server.files, server.damaged_path = offered.served, offered.damage
        config = set_up(planned, server.host)
        with open_control(None) as control, planned.log.open("w") as log:
            service = Service(control=control, settings=config)
            submission = Submit(name=offered.batch.name, profile=PROFILE, submitter=DEPOSITOR)
            with offered.batch.open("rb") as payload:
                accepted = submit(service, payload, submission)
            _announce(planned, server, offered, left_out)
            _say(f"Depositing them as {accepted.bid}, job {accepted.job} …")
            demo = _Demo(plan=planned, service=service, batch=accepted, server=server, offered=offered)
            reports = demo.run(log)
            _say("Looking through history, inventory and archive …")
            result = promise_checks.check(service.store, accepted.job, service.settings, service.folders)
    faults = [*_report_faults(offered, reports), *result.faults]
    _print_result(planned, demo.folder, result, faults)
    return faults


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demo:
    """The batch, with the service and the file server of the demo: the state that its steps share."""

    plan: Plan
    service: Service
    batch: Accepted
    server: FileServer
    offered: Offer

    @property
    def folder(self) -> Path:
        """Return the folder of the batch's job, where its reports are."""
        return self.service.folders / job_folder(self.batch.job)

    def run(self, log: TextIO) -> list[dict[str, Any]]:
        """Play the demo, and return both reports as ``report.json`` has them.

        The steps: a node that is killed, if ``plan.crash``; a node that deposits everything, up to the first
        report; the byte corrected and the failed object requeued, up to the second; the mails sent. Raises
        SpinneyError when the node ends early or a report is missing.
        """
        if self.plan.crash:
            self._until_killed(log)
        with running(*_NODE, log=log) as node:
            self._watch(node)
            first = self._report(1)
            self._show(1)
            self.server.damaged_path = None
            (item,) = Requeue(names=[self.batch.bid]).run(self.service)["items"]
            _say(f"The byte is corrected, and {counted(item['requeued'], 'failed object')} requeued …")
            self._watch(node)
            second = self._report(_REPORTS)
            self._show(_REPORTS)
            if self.plan.smtp is not None:
                self._wait(self._mailed, "the mails are sent", node)
        return [first, second]

    def _until_killed(self, log: TextIO) -> None:
        """Run a node until a part of the objects is done, then kill all its processes.

        It is killed while objects are in progress, since a crash between two jobs would show nothing.
        """
        below = Filter(root_id=self.batch.job)

        def far_enough() -> bool:
            counts = self.service.store.counts(below)
            busy = counts.get(State.RUNNING, 0) + counts.get(State.CLAIMED, 0)
            return counts.get(State.COMPLETED, 0) >= CRASH_AT * len(self.offered.objects) and busy > 0

        with running(*_NODE, log=log) as node:
            self._watch(node, far_enough)
            killed = _kill_all_processes(node)
        if self.service.store.job(self.batch.job).state in SETTLED:
            _say("The batch had ended before the node could be killed in its middle; take a larger SOURCE.")
            return
        done = self.service.store.counts(below).get(State.COMPLETED, 0)
        _say(
            f"CRASH: killed the node's {killed} processes with SIGKILL when {done} objects were done; next one …"
        )

    def _watch(self, node: Process, enough: Callable[[], bool] = lambda: False) -> None:
        """Show the batch's progress, as a user would, until it has settled or ``enough`` returns True."""
        display = subprocess.Popen([*COMMAND, "wait", str(self.batch.job)], stdin=subprocess.DEVNULL)
        try:
            self._wait(lambda: display.poll() is not None or enough(), "the batch ends", node)
        finally:
            display.send_signal(signal.SIGINT)
            display.wait()

    def _wait(self, look: Callable[[], bool], what: str, node: Process) -> None:
        """Wait until ``look`` returns True. Raises SpinneyError when the node ends, or when that takes too long."""
        wait_for(look, what, self.plan.log, node=node, most_s=PATIENCE_S)

    def _mailed(self) -> bool:
        """Return whether the jobs of both mails have settled."""
        mails = self.service.store.jobs(_MAILS)
        return len(mails) >= _REPORTS and all(mail.state in SETTLED for mail in mails)

    def _report(self, number: int) -> dict[str, Any]:
        """Read a report of the batch. Raises UsageError where it was not written."""
        path = self._report_folder(number) / "report.json"
        if not path.exists():
            job = self.service.store.job(self.batch.job)
            raise UsageError(
                f"the batch is {job.state} without its report {number} ({job.message}); look into {self.plan.log}"
            )
        report: dict[str, Any] = orjson.loads(path.read_bytes())
        return report

    def _show(self, number: int) -> None:
        """Print the report without the completed objects."""
        text = (self._report_folder(number) / "report.txt").read_text()
        _say(f"\n{text.partition(_COMPLETED)[0].rstrip()}\n")

    def _report_folder(self, number: int) -> Path:
        return self.folder / report_folder(number)


def _kill_all_processes(node: Process) -> int:
    """Kill the guard, the supervisor and every worker of a node with SIGKILL, and return how many there were.

    They are stopped first, so that none sees another die, as in a power cut.
    """
    guard = psutil.Process(node.pid)
    stopped: list[psutil.Process] = []
    # Until there are no new ones: a stopped process starts none.
    while new := [child for child in (guard, *guard.children(recursive=True)) if child not in stopped]:
        stopped += new
        for process in new:
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                process.suspend()
    for process in stopped:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stopped)
    node.wait()
    return len(stopped)


def _announce(planned: Plan, server: FileServer, offered: Offer, left_out: list[str]) -> None:
    """Print what is going to be deposited, and which byte is wrong."""
    files = sum(len(sample.files) for sample in offered.objects)
    _say(
        f"{planned.source}: {counted(len(offered.objects), 'object')} of {counted(files, 'file')}, "
        f"served at {server.host}"
    )
    for sentence in left_out:
        _say(f"  left out: {sentence}")
    _say(f"  one byte of {offered.damage} is wrong as it is served")


# --- the results ------------------------------------------------------------------------------


def _report_faults(offered: Offer, reports: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each difference between the reports and the expected ones: one object failed in
    the first, none in the second, which names that object as mended."""
    first, second = reports
    name = shown(offered.damaged.name)
    failed = [(end["title"], end["stage"]) for end in first["failed"]]
    faults = []
    if failed != [(name, "downloading")]:
        faults.append(
            f"the first report should have one failed object, {name} at downloading, and has {failed}"
        )
    if second["state"] != "completed" or second["totals"]["completed"] != len(offered.objects):
        faults.append(f"the second report should have all objects completed, and has {second['totals']}")
    if second["changes"]["mended"] != [name]:
        faults.append(f"the second report should list {name} as completed now, and has {second['changes']}")
    return faults


def _print_result(planned: Plan, folder: Path, result: promise_checks.CheckResult, faults: list[str]) -> None:
    """Print what was checked, and where everything is."""
    _say(
        f"  jobs {result.jobs:,}, attempts {result.attempts:,}, interrupted by a crash {result.interrupted:,}"
    )
    _say(f"  objects {result.objects:,}, files read once more {result.files:,}, bytes {result.bytes:,}")
    if not faults:
        _say("  no recorded stage ran again unasked, nothing in the archive is wrong, nothing is left over")
    _say("")
    for name, place in (
        ("archive", planned.out / ARCHIVE),
        ("inventory", planned.out / "home" / "inventory.db"),
        ("reports", folder / "reports"),
        ("settings", planned.out / FILE),
        ("store", planned.out / "spinney.db"),
        ("node log", planned.log),
    ):
        _say(f"  {name:<10} {place}")
    _say("")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
