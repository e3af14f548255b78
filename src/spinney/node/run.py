"""Start a node in this process, for ``spinney node``.

``become_guard`` replaces the command line by an interpreter that has loaded nothing but the guard, and so needs half
the memory for as long as the node runs."""

import logging
import os
import signal
import sys
from typing import NoReturn

from spinney.host.standard_streams import ensure_open
from spinney.host.unread_log import UnblockedHandler
from spinney.model.errors import SpinneyError
from spinney.node.lifecycle.guard import AWAITED, guard
from spinney.node.settings import STARTER_VARIABLE, NodeSettings

_FORMAT = "%(asctime)s %(levelname)s %(name)s[%(process)d]: %(message)s"


def become_guard(settings: NodeSettings) -> NoReturn:
    """Replace this process by the guard of a node; it does not return. Its pid, streams and environment stay,
    and it exits with the codes of ``run_node``. Signals that ask the node to end wait until the guard fetches
    them.

    The settings go through a memory file, and not through arguments, which every user of the host can read: a
    store's URL may contain a password."""
    note = os.memfd_create("spinney-settings")
    os.pwrite(note, settings.to_json().encode(), 0)
    os.set_inheritable(note, True)
    os.environ.pop(STARTER_VARIABLE, None)  # of this node, not of one that a stage starts
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    words = [sys.executable, "-m", __name__, str(note), "node", settings.app, settings.name]
    os.execv(sys.executable, words)  # noqa: S606 - a list of arguments, and no shell


def run_node(settings: NodeSettings) -> int:
    """Run the guard of a node until it ends; return the exit code.

    0 after a clean drain, 2 for invalid usage (the application cannot be loaded), 1 when the current state forbids it
    or the node did not end by itself. One sentence on stderr says why."""
    ensure_open()
    set_up_log(settings.log_level)
    try:
        return guard(settings)
    except SpinneyError as error:
        print(f"spinney: {error}", file=sys.stderr)  # noqa: T201 - the sentence for the terminal
        return error.exit_code


def set_up_log(level: str) -> None:
    """Log one line for each event on stderr, from this level on (``debug``, ``info``, ``warning`` or
    ``error``). A reader that hangs loses lines, and stops nobody. httpx says less, since it would log whole URLs, and
    the query of a webhook's may be a secret."""
    logging.basicConfig(level=level.upper(), format=_FORMAT, handlers=[UnblockedHandler(sys.stderr)])
    logging.getLogger("httpx").setLevel(logging.WARNING)


def take_note(note: int) -> str:
    """Return the text in the memory file with this descriptor, and close it."""
    with os.fdopen(note, encoding="utf-8") as file:
        file.seek(0)
        return file.read()


if __name__ == "__main__":
    sys.exit(run_node(NodeSettings.from_json(take_note(int(sys.argv[1])))))
