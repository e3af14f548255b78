"""The check of one service: a job whose stages are the tasks, in their order.

A task that finds an error ends the job, which then has done its work: it completes, and the results of the tasks behind
are dropped. The job fails only where the monitor itself is at fault. It waits while the database of the results does
not answer. The result is durable before the stage is recorded; a stage that runs again after a crash writes the same
row.

What a task finds becomes the outcome of its stage: ``ok`` and ``warning`` pass it, ``not_applicable`` passes it without
a result and drops an earlier one, and ``error`` finishes the job. Checks run in threads of one worker, many at a time,
because they mostly wait for the network or for a program.

The stages are declared when this module is loaded, from the list of tasks as it is then. When the folder of tasks has
changed, ``spinney monitor run`` starts a new node, which has the new stages. The folder, the time limit of a task
and the pauses, which have to fit into it, stay as they were then; the other settings are read for each check."""

import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from spinney import Backoff, Fail, Finish, Job, NotApplicable, Warn
from spinney.apps.monitor import settings
from spinney.apps.monitor.application import HOST_LOCK, checks, tables_awaited
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import results, services
from spinney.apps.monitor.inventory.model import Result, Service, Status
from spinney.apps.monitor.inventory.results import ResultWriter
from spinney.apps.monitor.settings import TIMEOUT_MAX_S, Settings
from spinney.apps.monitor.tasks import task_list
from spinney.apps.monitor.tasks.findings import Finding, clean
from spinney.apps.monitor.tasks.modules import Context
from spinney.apps.monitor.tasks.task_list import Task
from spinney.files import trees

GRACE_S = 150.0
"""How long a stage may take beside its task, which ends by its own limit. A result waits up to 60 s for a database that
is locked, behind a group that has waited as long; the error then names the lock."""
_MESSAGE_MAX = 200
_SCRATCH = "spinney-monitor-check-"
"""The beginning of the names of scratch folders. It is of no other folder that people may make there, such as
``spinney-monitor-old``: those that are old are removed with all that is in them."""
_ABANDONED_S = TIMEOUT_MAX_S + GRACE_S
"""A scratch folder that is older is of a check that was killed: no task may run for so long."""


def declare(config: Settings) -> None:
    """Declare the stages of a check, one for each task of the list, in its order. A task that was retired
    keeps its stage, which then has nothing to do, so that jobs that stand at it go on. Without any task there
    is one stage, which fails with advice: a check that completed would look as if the service were in order.

    A stage is tried again up to four times, only for faults of the monitor: what is wrong with a service or a
    task is a finding, and no exception."""
    tasks = task_list.read(config).tasks
    for number, task in enumerate(tasks):
        behind = tuple(later.name for later in tasks[number + 1 :])
        checks.stage(
            name=task.name,
            isolation="thread",
            timeout=config.timeout_s + GRACE_S,
            grace=config.timeout_s + GRACE_S,  # a check that is cancelled ends after its task
            max_attempts=5,
            backoff=Backoff(base_s=2, cap_s=60),
            locks=[f"{HOST_LOCK}{{host}}"],
        )(_stage(task, behind, config))
    if not tasks:
        checks.stage(name="no_tasks")(_no_tasks)


def _no_tasks(job: Job, gid: int, host: str) -> None:
    raise Fail(
        f"there are no tasks in {settings.load().tasks}; run 'spinney monitor init', restart the node, and retry"
    )


def _stage(task: Task, behind: tuple[str, ...], declared: Settings) -> Callable[..., None]:
    """Return the function of the stage that runs a task. ``behind``: the names of the later tasks, whose
    results an error drops, since they are no longer known to hold. ``declared``: the settings by which the stage
    is declared."""

    @tables_awaited()
    def stage(job: Job, gid: int, host: str) -> None:
        # A longer time limit would exceed that of the stage, and the folder has no other tasks than the list. Pauses
        # were checked against this time limit.
        now = settings.load()
        network = now.network.model_copy(update={"pause_s": declared.network.pause_s})
        config = now.model_copy(
            update={"tasks": declared.tasks, "timeout_s": declared.timeout_s, "network": network}
        )
        service = services.get(database(), gid)
        if service is None or service.retired_us is not None:
            raise Finish("the service is retired")
        if task.retired_s is not None or not (config.tasks / task.file).exists():
            raise NotApplicable("the task is no longer in the folder")
        began_s, began_us = time.monotonic(), time.time_ns() // 1000
        finding = _run(task, config, service)
        if finding.status == Status.NOT_APPLICABLE:
            results.drop(database(), gid, task.name, began_us)  # nothing else would replace it
            # Only the last task notes it: an earlier one may be followed by one that has a result.
            if not behind:
                services.note_checked(database(), gid, began_us)
            raise NotApplicable(finding.info[:_MESSAGE_MAX])
        _writer(os.getpid()).write(
            Result(
                gid=gid,
                task=task.name,
                status=clean(finding.status),
                code=clean(finding.code)[:200],
                info=clean(finding.info),
                uuid=service.uuid,
                at_us=_at_us(finding, began_us),
                duration_s=time.monotonic() - began_s,
                job_id=job.id,
                drops=behind if finding.status == Status.ERROR else (),
            )
        )
        summary = _line(f"{task.name}: {finding.info or finding.code or finding.status}")
        if finding.status == Status.ERROR:
            raise Finish(summary)
        if finding.status != Status.OK:
            raise Warn(summary)

    stage.__doc__ = task.description or task.name
    return stage


def _at_us(finding: Finding, began_us: int) -> int:
    """Return the time of a result: what the task says, within the time in which it ran; its clock may be wrong."""
    now_us = time.time_ns() // 1000
    return now_us if finding.at_s is None else min(now_us, max(began_us, int(finding.at_s * 1_000_000)))


def _run(task: Task, config: Settings, service: Service) -> Finding:
    """Run a task for a service in a scratch folder that is removed afterwards. The folder for data that
    stays, ``DATA/TYPE/UUID/GID``, is only named; the task makes it where it needs it."""
    _abandoned.remove_when_due()
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH))
    data = config.data / (service.type or "none") / service.uuid / str(service.gid)
    context = Context(timeout_s=config.timeout_s, data=data, network=config.network)
    try:
        return task_list.run(task, config, service, context, scratch)
    finally:
        with suppress(OSError):  # what a task left there as another user stays
            trees.remove(scratch)


class _AbandonedFolders:
    """The scratch folders of checks that were killed, on this host. A process looks for them once in a while."""

    def __init__(self) -> None:
        self._due_s = 0.0
        """When the next look is due, by the monotonic clock, since the time of day may be set back."""

    def remove_when_due(self) -> None:
        """Remove them, unless that was done less than ``_ABANDONED_S`` seconds ago."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._due_s = now_s + _ABANDONED_S
        oldest_s = time.time() - _ABANDONED_S
        for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
            with suppress(OSError):  # one that another process has just removed
                status = folder.lstat()
                is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
                if is_own and status.st_mtime < oldest_s:
                    trees.remove(folder)


_abandoned = _AbandonedFolders()


@lru_cache(maxsize=1)
def _writer(process: int) -> ResultWriter:
    """Return the writer of results that all threads of a process share, so that they commit together.
    ``process``: its id, since a fork must not use connections of its parent."""
    grouping = settings.load().results
    return ResultWriter(database(), most=grouping.group, wait_s=grouping.wait_s)


def _line(text: str) -> str:
    """Return a text as one line that is short enough for the message of a job."""
    return " ".join(text.split())[:_MESSAGE_MAX]


declare(settings.load())
