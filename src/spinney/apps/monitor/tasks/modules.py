"""Python modules as tasks: ``NAME``, ``DESCRIPTION``, and ``check(service, context)``, which returns a ``Finding``."""

import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.settings import Network
from spinney.apps.monitor.tasks.findings import Finding, error, of_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The surroundings of a check, which it gets beside the service: its time limit, a folder and the rules of the
    network."""

    timeout_s: float
    """The time limit of the task, in seconds; what the check does should take less."""
    data: Path
    """A folder of this service, which stays; the check makes it where it needs it."""
    network: Network
    """What it may reach, and how gently; ``checks.fetch`` keeps to it."""


Check = Callable[[Service, Context], Finding]
"""The function of a module that checks a service."""


class Unfit(Exception):
    """A module is no task; the message says why."""


def identification(file: Path) -> Sequence[str]:
    """Return the command that answers ``identify`` for a module. It loads the module in a process of its own, since
    what a module does when it is loaded may take for ever."""
    return (sys.executable, "-m", "spinney.apps.monitor.tasks.identify_module", str(file))


def load(file: Path) -> tuple[str, str, Check]:
    """Load a module under a name of its own, and return its name, its description and its function. It is
    executed each time, and stays out of ``sys.modules``, so that two files of one name do not meet. Raises
    Unfit where its import fails or something is missing."""
    spec = importlib.util.spec_from_file_location(f"spinney_monitor_task_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise Unfit("it cannot be imported")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - somebody's code may fail in any way
        raise Unfit(f"its import failed: {type(problem).__name__}: {problem}") from None
    name, check = getattr(module, "NAME", ""), getattr(module, "check", None)
    if not isinstance(name, str) or not name or not callable(check):
        raise Unfit("it needs a text NAME and a function check(service, context)")
    return name, str(getattr(module, "DESCRIPTION", "")), check


def run(check: Check, service: Service, context: Context) -> Finding:
    """Return what a check found; an error where it raised, or did not end in time.

    Python cannot end a thread: one that does not return stays until the process ends, and its finding is
    dropped. It is a daemon, and holds nothing that others need."""
    findings: list[Finding] = []

    def call() -> None:
        try:
            findings.append(of_module(check(service, context)))
        except BaseException as problem:  # noqa: BLE001 - a check's fault is an error of this service alone
            findings.append(error("task_error", f"the check failed: {type(problem).__name__}: {problem}"))

    thread = threading.Thread(target=call, daemon=True, name="monitor check")
    thread.start()
    thread.join(context.timeout_s)
    if not findings:
        return error("task_timeout", f"the task did not end within {context.timeout_s:g} s")
    return findings[0]
