"""Process trees: finding descendants, and ending them all.

A process is identified by its pid and its start time, so that a reused pid is never signalled: the signal goes through
a pidfd, which is opened first and compared after.

Descendants cannot escape a *child subreaper* (worker, supervisor, guard): a process that detaches itself with
``setsid`` or a double fork becomes a child of the nearest one above. So when a subreaper has no child left, it has no
descendant left."""

import contextlib
import ctypes
import errno
import logging
import os
import select
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.01
LEFTOVER_GRACE_S = 0.5
"""Seconds between TERM and KILL for processes that an attempt left running."""
WARN_S = 10.0
"""How often the log names processes that the kernel has not ended after KILL, in seconds."""
_COMMAND_CHARS = 4000
_OOM_SCORE = Path("/proc/self/oom_score_adj")
OOM_MORE = 200
"""By how many thousandths of the memory that there is a worker counts as larger than it is."""
_OOM_MOST = 1000
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)

_libc = ctypes.CDLL(None, use_errno=True)
log = logging.getLogger(__name__)


class Proc(NamedTuple):
    """A process, identified by its pid and start, since a pid alone is used again."""

    pid: int
    started_ticks: int
    """Clock ticks from boot to its start, which tell it from other processes with the same pid."""


_SPARE = 4
"""As many descriptors as looking for processes and ending them needs at a time."""
_spare: list[int] = []
"""Descriptors that nothing uses, until all others are used up."""
_protected: set[Proc] = set()
"""Processes that this one may not signal, each of which has been logged."""


def become_subreaper() -> None:
    """Make this process a child subreaper: orphaned descendants become its children. Raises OSError."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when the thread that started it ends.

    It is sent at once when ``parent`` (a pid) is gone already. Raises OSError.
    """
    _prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def keep_spare_descriptors() -> None:
    """Keep some descriptors for ``descendants`` and ``end_descendants``, before user code may use up all others."""
    _spare.extend(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_SPARE))


def end_first_without_memory() -> None:
    """Let the kernel end this process, and what it starts, before the supervisor when memory runs out: it ends the
    largest process, and where many small ones have used up the memory that would be the supervisor, with all that its
    node runs. Where this cannot be set it is left as it is."""
    with contextlib.suppress(OSError, ValueError):
        score = int(_OOM_SCORE.read_text())
        _OOM_SCORE.write_text(str(min(score + OOM_MORE, _OOM_MOST)))


def identify(pid: int) -> Proc | None:
    """Return the process that has this pid now; None when there is none, or a zombie."""
    status = _stat(pid)
    return Proc(pid, status.started_ticks) if status is not None and status.alive else None


def descendants(pid: int) -> list[Proc]:
    """Return all live processes below this pid, without zombies and the process itself.

    Processes may fork meanwhile: call it again until it is empty. Where no descriptor is left, the spare ones are
    closed. Raises OSError when there are none.
    """
    try:
        return _descendants(pid)
    except OSError as error:
        if error.errno not in _NO_DESCRIPTOR or not _spare:
            raise
    while _spare:
        with contextlib.suppress(OSError):  # closed by user code
            os.close(_spare.pop())
    return _descendants(pid)


def _descendants(pid: int) -> list[Proc]:
    processes: list[Proc] = []
    parents = [pid]
    listing = _Listing()
    while parents:
        for child in listing.children(parents.pop()):
            parents.append(child)
            process = identify(child)
            if process is not None:
                processes.append(process)
    return processes


def command_line(proc: Proc, *, most: int | None = None) -> str:
    """Return the arguments of a process, ``most`` of them at most; empty when it has ended or cannot be read. Those
    that do not fit as a whole are left out: nobody would recognise the beginning of a secret."""
    try:
        data = Path(f"/proc/{proc.pid}/cmdline").read_bytes()
    except OSError:
        return ""
    text = ""
    for argument in data.rstrip(b"\0").decode("utf-8", "backslashreplace").split("\0")[:most]:
        if len(text) + len(argument) > _COMMAND_CHARS:
            return f"{text}…"
        text += f"{argument} "
    return text.rstrip(" ")


def is_stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal (SIGSTOP, SIGTSTP), and does nothing until it gets SIGCONT."""
    status = _stat(pid)
    return status is not None and status.stopped


def children(pid: int) -> list[int]:
    """Return the pids of all direct children, including zombies."""
    return _Listing().children(pid)


def rss_bytes(pid: int | None = None) -> int:
    """Return the resident memory of a process (None: this one); 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid or 'self'}/statm").read_text()
    except OSError:
        return 0
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kill(proc: Proc, number: int) -> bool:
    """Send a signal to exactly this process; return False when it did not get the signal.

    Then it is gone, or it belongs to another user (a stage has started it with sudo), which is logged once, or no
    descriptor is left: whoever waits for its end has to try again."""
    try:
        fd = os.pidfd_open(proc.pid)
        try:
            if identify(proc.pid) != proc:
                return False
            signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)
    except ProcessLookupError:
        return False
    except PermissionError:
        _log_protected(proc)
        return False
    except OSError as error:
        if error.errno not in _NO_DESCRIPTOR:
            raise
        return False
    return True


def kill_all(procs: Iterable[Proc], number: int) -> None:
    """Send a signal to each of them that still exists."""
    for proc in procs:
        kill(proc, number)


def end_descendants(grace_s: float = LEFTOVER_GRACE_S, *, spare: Collection[int] = ()) -> None:
    """End all descendants of this process but the pids in ``spare``: TERM, ``grace_s`` seconds, KILL, until none is
    left. It blocks, and reaps the children that ended meanwhile."""
    own = os.getpid()
    kill_all((p for p in descendants(own) if p.pid not in spare), signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while remaining := [p for p in descendants(own) if p.pid not in spare]:
        overdue = time.monotonic() >= deadline
        if overdue:
            kill_all(remaining, signal.SIGKILL)
        _await_any(remaining, _LOOK_S if overdue else max(0.0, deadline - time.monotonic()))
        reap()
    reap()


def kill_descendants() -> None:
    """KILL all descendants of this process, a subreaper, and wait until none is left, however long the kernel takes.

    Processes may still fork: only "no child is left" means that no descendant is left."""
    warn_at = time.monotonic() + WARN_S
    while reap():
        remaining = descendants(os.getpid())
        kill_all(remaining, signal.SIGKILL)
        _await_any(remaining, _LOOK_S)
        if time.monotonic() > warn_at:
            log_unended(remaining)
            warn_at += WARN_S


def log_unended(procs: Iterable[Proc]) -> None:
    """Log which processes still exist long after KILL."""
    pids = ", ".join(str(proc.pid) for proc in procs)
    log.warning(
        "still waiting for processes that the kernel has not ended: %s; their disk may not answer", pids
    )


def reap() -> bool:
    """Reap the children of this process that have ended; return whether any child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def strays(live_pids: Collection[int]) -> list[Proc]:
    """Return the processes that dead children left to this process: its live children that are not in ``live_pids``,
    and their descendants. Those that have ended are reaped."""
    processes: list[Proc] = []
    for pid in children(os.getpid()):
        if pid in live_pids or _reaped(pid):
            continue
        stray = identify(pid)
        if stray is not None:
            processes.append(stray)
        processes.extend(descendants(pid))
    return processes


def reap_strays(live_pids: Collection[int]) -> bool:
    """KILL all strays once, and reap dead ones; return whether any was left.

    Every child of this process that is not in ``live_pids`` counts as a stray: a process that calls this must start no
    others, or must add them there."""
    remaining = strays(live_pids)
    kill_all(remaining, signal.SIGKILL)
    return bool(remaining)


def _log_protected(proc: Proc) -> None:
    if proc in _protected:
        return
    _protected.add(proc)
    log.error(
        "process %d belongs to another user and cannot be ended from here; its attempt and this node wait until it "
        "has ended: sudo kill -KILL %d",
        proc.pid,
        proc.pid,
    )


class _Listing:
    """Children by parent, from the kernel's lists where it has them, else from one scan."""

    def __init__(self) -> None:
        self._scan: dict[int, list[int]] | None = None

    def children(self, pid: int) -> list[int]:
        if self._scan is None:
            try:
                return list(_listed(pid))
            except FileNotFoundError:
                if not Path(f"/proc/{pid}").exists():
                    return []
                self._scan = _scan()
        return self._scan.get(pid, [])


def _listed(pid: int) -> Iterator[int]:
    tasks = Path(f"/proc/{pid}/task")
    for task in tasks.iterdir():
        try:
            text = (task / "children").read_text()
        except (ProcessLookupError, FileNotFoundError):
            if task.exists():
                raise  # a kernel without these lists
            continue
        yield from map(int, text.split())


def _scan() -> dict[int, list[int]]:
    children_of: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - thousands of names, no use for a Path each
        if name.isdigit() and (stat := _stat(int(name))) is not None:
            children_of.setdefault(stat.parent, []).append(int(name))
    return children_of


class _Stat(NamedTuple):
    alive: bool
    stopped: bool
    parent: int
    started_ticks: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in brackets may contain anything, also blanks and brackets: the fields follow the last bracket.
    state, parent, *more = text[text.rindex(")") + 2 :].split()
    # A first thread that has ended shows as a zombie while other threads of its process continue.
    alive = state not in "ZX" or int(more[15]) > 1
    return _Stat(alive, state == "T", int(parent), int(more[17]))


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _await_any(procs: Collection[Proc], timeout_s: float) -> None:
    """Wait until one of them has ended, at most ``timeout_s`` seconds."""
    poll = select.poll()
    fds = []
    try:
        for proc in procs:
            try:
                fd = os.pidfd_open(proc.pid)
            except ProcessLookupError:
                return
            except OSError as error:
                if error.errno not in _NO_DESCRIPTOR:
                    raise
                break  # those before it are watched
            fds.append(fd)
            poll.register(fd, select.POLLIN)
        poll.poll(timeout_s * 1000)
    finally:
        for fd in fds:
            os.close(fd)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
