"""The supervisor's process: ``python -m spinney.node.supervisor_main FD``, which the guard starts.

``FD`` is a memory file with its settings. It is a child subreaper like the guard, and watches the guard in turn: a
thread waits for the end of a pipe whose other end only the guard has open. When the guard is gone, or the node is
declared dead, everything below is killed and the process ends, whatever the event loop is doing."""

import asyncio
import gc
import json
import logging
import os
import resource
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from spinney.host.unread_log import write_line
from spinney.model.errors import SpinneyError, UsageError
from spinney.node.instance import Instance
from spinney.node.lifecycle.deadline import Deadline
from spinney.node.measurements import NodeMeasurements
from spinney.node.run import set_up_log, take_note
from spinney.node.settings import NodeSettings
from spinney.node.supervisor import Supervisor
from spinney.node.workers import proctree
from spinney.node.workers.child import Child
from spinney.store.sql import SqlStore, open_store
from spinney.tracing import traceparents

log = logging.getLogger(__name__)

EXIT_LOST = 1
"""The exit code of a supervisor that has lost its guard or its leases, or has failed by a fault of its
own."""

_YOUNG = 10_000
"""How many new objects Python allocates before it looks for cycles among them: several lists of jobs, nearly all of
which are freed by then. With its default of 700 it would scan each list several times for nothing."""

_FILES = 100_000
"""How many files a supervisor may have open, as far as the hard limit allows."""
_FILES_LEAST = 64
"""How many files a supervisor needs with a single worker: its stores, pipes and locks, and some to spare."""
_FILES_OF_WORKER = 7
"""How many files of the supervisor a further worker takes."""

_DISK_THREADS = 1_000
"""More threads than can wait for a disk before the node takes no more jobs. Only as many are started as are needed."""

_ending = threading.Event()
"""Set while everything is being killed: attempts that die from then on are not to blame for it."""


def main() -> int:
    """Run the supervisor; return the exit code."""
    handover = json.loads(take_note(int(sys.argv[1])))
    settings = NodeSettings.from_json(handover["settings"])
    os.environ.pop(traceparents.VARIABLE, None)  # of whoever started the node, not of what its jobs submit
    set_up_log(settings.log_level)
    proctree.become_subreaper()
    for fd in (handover["lock_fd"], handover["deadline_fd"], handover["guard_fd"]):
        os.set_inheritable(fd, False)
    _spare_what_stays()
    threading.Thread(
        target=_watch_guard, args=(handover["guard_fd"],), name="guard watch", daemon=True
    ).start()
    name, pid, started_us = handover["instance"]
    own = Instance(name=name, pid=pid, started_us=started_us)
    try:
        # Not asyncio.run, which waits for all threads: one may wait for a share that does not answer.
        return event_loop().run_until_complete(_run(settings, own, handover))
    except Exception as error:  # noqa: BLE001 - groups, too; the last output is always a sentence
        return _say(_first(error))


def event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of a supervisor. It may start many threads, because those that wait for a disk that does
    not answer must not keep others waiting, as those that take back the jobs of a dead node."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(_DISK_THREADS, "disk"))
    return loop


def _spare_what_stays() -> None:
    """Exclude modules, classes and functions from garbage collection: scanning them would stop all threads for 20 ms
    each time, and they are never freed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])


async def _run(settings: NodeSettings, own: Instance, handover: dict[str, int]) -> int:
    """Run the supervisor with its real stores. With ``metrics`` each store also measures its transactions.
    Heartbeats get a store with a shorter time limit of its own, since several must fit before the guard's
    deadline."""
    measurements = None if settings.metrics is None else NodeMeasurements()

    def opened() -> SqlStore:
        store = open_store(settings.store, settings.patience_s)
        if measurements is not None:
            store.session.measure_writes(measurements.transaction)
        return store

    open_files = _open_more_files(settings.slots)
    supervisor = Supervisor(
        settings,
        own,
        lock_fd=handover["lock_fd"],
        deadline=Deadline(handover["deadline_fd"]),
        open_store=opened,
        open_for_beats=lambda: open_store(settings.store, settings.beat_patience_s),
        on_dead=end_everything,
        ending=_ending.is_set,
        measurements=measurements,
        make_child=partial(Child, open_files=open_files),
    )
    return await supervisor.run()


def _open_more_files(slots: int) -> int:
    """Raise this process's soft limit of open files, which for many services is 1,024 and enough for 140 workers.
    Return the one before, which is for workers: what they run may depend on it, as ``select`` does.

    Raises UsageError where the hard limit is too low for any worker: each part of a node would fail by another error.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if resource.RLIM_INFINITY != soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < _FILES_LEAST:
        raise UsageError(
            f"a node may have {most} files open here, and it needs at least {_FILES_LEAST}; raise the hard limit "
            f"(ulimit -Hn, or LimitNOFILE= of systemd) and start it again"
        )
    needed = _FILES_LEAST + _FILES_OF_WORKER * (slots - 1)
    if most < needed:
        log.warning(
            "this node may have %d files open, and %d slots may need %d; raise the hard limit (ulimit -Hn, or "
            "LimitNOFILE= of systemd), or give it fewer slots",
            most,
            slots,
            needed,
        )
    return soft


def end_everything(why: str) -> None:
    """KILL all descendants, until none is left, and end this process. It may be called in any thread, and does not
    return."""
    _ending.set()
    log.error("ending everything at once: %s", why)
    proctree.kill_descendants()
    os._exit(EXIT_LOST)


def _watch_guard(fd: int) -> None:
    """Wait for the end of the guard, then end everything. It is a thread, so that it works whatever the event
    loop does."""
    os.read(fd, 1)  # nothing is ever written: it returns when the guard is gone
    end_everything("the guard has ended")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _say(error: BaseException) -> int:
    """Write one sentence to stderr and return the exit code. The traceback of an unexpected error is logged."""
    code = EXIT_LOST
    if isinstance(error, SpinneyError):
        sentence, code = str(error), error.exit_code
    elif isinstance(error, OSError) and error.strerror:
        log.debug("the node has ended", exc_info=error)
        at = "" if error.filename is None else f" at {error.filename}"
        sentence = f"the node cannot go on: {error.strerror}{at}; fix that and start it again"
    else:
        log.error("the node has ended because of a fault in spinney", exc_info=error)
        sentence = (
            f"the node cannot go on because of a fault in spinney ({type(error).__name__}: {error}); "
            f"start it again, and report what the log says above"
        )
    write_line(sys.stderr, f"spinney: {sentence}")
    return code


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    os._exit(code)  # for the same reason: Python waits for threads, too
