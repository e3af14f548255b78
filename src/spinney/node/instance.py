"""An instance: one start of a node on this host, and how to tell that it is gone.

An instance is identified by ``name.pid.started_us``. Its guard holds an exclusive lock on
``node-<instance>.lock`` in the run-time directory for as long as it lives; supervisor and workers
inherit the descriptor, so the lock is free only when every one of them is gone. Processes that users' programs start do
not inherit the descriptor, but they inherit the environment: by ``SPINNEY_INSTANCE`` those are found that survived even
a kill of guard, supervisor and workers at once."""

import contextlib
import fcntl
import os
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from spinney.model.errors import NodeRefused, UsageError
from spinney.model.values.paths import socket_name

INSTANCE_VARIABLE = "SPINNEY_INSTANCE"
"""The environment variable that all processes below a guard have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One start of a node: its name, its guard's pid, and its time."""

    name: str
    pid: int
    started_us: int
    """When it was started, in microseconds since 1970 UTC."""

    def __str__(self) -> str:
        return f"{self.name}.{self.pid}.{self.started_us}"

    def lock_path(self, run_dir: Path) -> Path:
        """Return the path of the lock that every process of the instance holds."""
        return run_dir / f"node-{self}.lock"


def prepare_run_dir(path: Path) -> None:
    """Make the run-time directory with access for its owner alone; refuse one that others could write to, or that this
    process cannot. Raises UsageError."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.stat()
    except OSError as error:
        raise UsageError(
            f"the run-time directory {path} cannot be made: {error.strerror}; make its parent writable, or name "
            f"another with --run-dir (run_dir in spinney.toml)"
        ) from error
    if status.st_uid != os.geteuid():
        raise UsageError(
            f"the run-time directory {path} belongs to the user {status.st_uid}; run as that user, give the directory "
            f"to this one (chown -R), or name another with --run-dir"
        )
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise UsageError(f"the run-time directory {path} is writable by others; make it 0700")
    if not os.access(path, os.W_OK):
        raise UsageError(
            f"the run-time directory {path} cannot be written to; see that its file system is not mounted read-only, "
            f"and that it is 0700"
        )


def hold(run_dir: Path, instance: Instance) -> int:
    """Take the instance's lock; return the descriptor for children to inherit. Raises NodeRefused when another process
    holds it."""
    fd = os.open(instance.lock_path(run_dir), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise NodeRefused(f"a node {instance} is already there; start this one again") from None
    return fd


def is_gone(run_dir: Path, instance: Instance) -> bool:
    """Return whether guard, supervisor and workers of an instance of this boot are proven to be gone."""
    try:
        fd = os.open(instance.lock_path(run_dir), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False  # a missing file proves nothing
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def guarded(run_dir: Path, instance: Instance) -> bool:
    """Return whether the process with the instance's pid has the instance's lock open, and so is its guard, as seen
    from this process. In another container the same pid is another process."""
    try:
        lock = instance.lock_path(run_dir).stat()
        for fd in Path(f"/proc/{instance.pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # it may be closed by now
                if os.path.samestat(fd.stat(), lock):
                    return True
    except OSError:
        return False
    return False


def pages_dir(run_dir: Path, instance: Instance) -> Path:
    """Return the directory of the pages of an instance's workers."""
    return run_dir / f"pages-{instance}"


def clear(run_dir: Path, instance: Instance) -> None:
    """Remove the files of an instance from the run-time directory, after it is gone and owns no leases any more."""
    folder = pages_dir(run_dir, instance)
    with contextlib.suppress(FileNotFoundError):  # two processes may clean up after the same node
        for page in folder.iterdir():
            page.unlink(missing_ok=True)
        folder.rmdir()
    (run_dir / socket_name(instance.name, instance.pid)).unlink(missing_ok=True)
    instance.lock_path(run_dir).unlink(missing_ok=True)


def kill_by_instance(instance: Instance, *, limit_s: float = 10.0) -> int:
    """KILL every process that has the mark of ``instance``; return how many there were.

    It is only for an instance that may not act any more. It loops until none is left, because processes may fork
    meanwhile, and gives up after ``limit_s`` (a process stuck in the kernel dies when it wakes)."""
    killed: set[int] = set()
    give_up = time.monotonic() + limit_s
    while pids := _marked(f"{INSTANCE_VARIABLE}={instance}".encode()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= pids
        if time.monotonic() > give_up:
            break
        time.sleep(0.005)  # a killed process needs a moment to be gone
    return len(killed)


def _marked(mark: bytes) -> set[int]:
    pids = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # A zombie's environment is empty, so the dead do not count.
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                pids.add(int(entry.name))
    return pids
