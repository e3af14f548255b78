"""Start a node in this process, for ``spinney node``."""

import logging
import sys

from spinney.host.standard_streams import ensure_open
from spinney.model.errors import SpinneyError
from spinney.node.lifecycle.guard import guard
from spinney.node.settings import NodeSettings

_FORMAT = "%(asctime)s %(levelname)s %(name)s[%(process)d]: %(message)s"


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
    """Log one line for each event on stderr."""
    logging.basicConfig(level=level.upper(), format=_FORMAT, stream=sys.stderr)
