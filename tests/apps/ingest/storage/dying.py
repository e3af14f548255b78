"""Puts by a process of their own, that is killed at a given step of them."""

import os
import resource
import signal
from collections.abc import Callable

from apps.ingest.storage.judge import put
from spinney.apps.ingest.storage import Incoming, Storage


def put_and_die(
    open_: Callable[..., Storage], step: str, *files: Incoming, key: str, merge: bool = False
) -> None:
    """Put in another process, which gets SIGKILL when it has done ``step``."""

    def at(done: str) -> None:
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    status = _apart(lambda: put(open_(on_step=at), *files, key=key, merge=merge))
    assert os.WIFSIGNALED(status), f"'{step}' was never reached"
    assert os.WTERMSIG(status) == signal.SIGKILL


def put_without_room(open_: Callable[..., Storage], room_bytes: int, *files: Incoming) -> None:
    """Put in another process, to which the system gives no file larger than ``room_bytes``."""

    def crowded() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, room_bytes))
        try:
            put(open_(), *files)
        except OSError:
            os._exit(42)

    assert os.waitstatus_to_exitcode(_apart(crowded)) == 42


def _apart(act: Callable[[], object]) -> int:
    # A fork, not a new interpreter: each costs a hundredth of the time.
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]
