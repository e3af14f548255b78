"""Trees of processes: who is below whom, and how to end them all.

A process is told by its pid and its birth, so that a number that the kernel gave away again is
never signalled: the signal goes through a pidfd, opened first and compared after.

Descendants cannot get away from a *child subreaper* (worker, supervisor, guard): whatever detaches
itself with ``setsid`` or a double fork comes back to the nearest one above. So "no child is left"
of a subreaper means that nothing below it is left.
"""

import ctypes
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

_libc = ctypes.CDLL(None, use_errno=True)


class Proc(NamedTuple):
    """A process of which this is known for certain."""

    pid: int
    started_ticks: int
    """Clock ticks from boot to its start: the kernel's word for which bearer of the pid it is."""


def become_subreaper() -> None:
    """From now on orphans from below come to this process. Raises OSError."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal once the thread that started it is gone.

    Sends it at once when ``parent`` (a pid) is gone already. Raises OSError.
    """
    _prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def identify(pid: int) -> Proc | None:
    """The process that bears this pid now; None when there is none, or a zombie."""
    found = _stat(pid)
    return Proc(pid, found.started_ticks) if found is not None and found.alive else None


def descendants(pid: int) -> list[Proc]:
    """All living processes below this pid, zombies and the process itself left out.

    A look at things that move: call it again until it is empty.
    """
    found: list[Proc] = []
    parents = [pid]
    listing = _Listing()
    while parents:
        for child in listing.children(parents.pop()):
            parents.append(child)
            known = identify(child)
            if known is not None:
                found.append(known)
    return found


def children(pid: int) -> list[int]:
    """Pids of all direct children, zombies too."""
    return _Listing().children(pid)


def rss_bytes(pid: int | None = None) -> int:
    """Resident memory of a process (None: this one); 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid or 'self'}/statm").read_text()
    except OSError:
        return 0
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kill(proc: Proc, number: int) -> bool:
    """Send a signal to exactly this process; False when it is gone."""
    try:
        fd = os.pidfd_open(proc.pid)
    except ProcessLookupError:
        return False
    try:
        if identify(proc.pid) != proc:
            return False
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def kill_all(procs: Iterable[Proc], number: int) -> None:
    """Send a signal to each of them that is still there."""
    for proc in procs:
        kill(proc, number)


def kill_tree(pid: int, grace_s: float, *, spare: Collection[int] = ()) -> None:
    """End everything below ``pid``: TERM, ``grace_s`` seconds, KILL, until nothing is left.

    Blocks. Reaps the children of this process that ended meanwhile. ``pid`` itself is spared, and
    the pids in ``spare``.
    """
    kill_all((p for p in descendants(pid) if p.pid not in spare), signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while left := [p for p in descendants(pid) if p.pid not in spare]:
        overdue = time.monotonic() >= deadline
        if overdue:
            kill_all(left, signal.SIGKILL)
        _await_any(left, _LOOK_S if overdue else max(0.0, deadline - time.monotonic()))
        reap()
    reap()


def reap() -> bool:
    """Collect the children of this process that have ended; whether any child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def strays(known: Collection[int]) -> list[Proc]:
    """What was left to this process by children that died: its living children that are not
    ``known``, and all below them. Collects those of them that have ended."""
    found: list[Proc] = []
    for pid in children(os.getpid()):
        if pid in known or _reaped(pid):
            continue
        stray = identify(pid)
        if stray is not None:
            found.append(stray)
        found.extend(descendants(pid))
    return found


def reap_strays(known: Collection[int]) -> bool:
    """One step of ending strays: KILL each, collect the dead; whether any is left.

    Every child of this process that is not in ``known`` is taken for one: a process that uses this
    must start nothing else, or must enter it there.
    """
    left = strays(known)
    kill_all(left, signal.SIGKILL)
    return bool(left)


class _Listing:
    """Children by parent. From the kernel's own lists where it keeps them, else from one scan."""

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
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - thousands of names, no use for a Path each
        if name.isdigit() and (stat := _stat(int(name))) is not None:
            found.setdefault(stat.parent, []).append(int(name))
    return found


class _Stat(NamedTuple):
    alive: bool
    parent: int
    started_ticks: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in brackets may hold anything, blanks and brackets too: what counts is behind the last.
    state, parent, *more = text[text.rindex(")") + 2 :].split()
    # A first thread that has ended shows as a zombie while other threads of its process go on.
    alive = state not in "ZX" or int(more[15]) > 1
    return _Stat(alive, int(parent), int(more[17]))


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _await_any(procs: Collection[Proc], timeout_s: float) -> None:
    """Wait until one of them has ended, at most that long."""
    poll = select.poll()
    fds = []
    try:
        for proc in procs:
            try:
                fd = os.pidfd_open(proc.pid)
            except ProcessLookupError:
                return
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
