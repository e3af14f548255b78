"""Start a node in this process: what ``spinney node`` calls."""

import logging
import sys

from spinney.model.errors import SpinneyError
from spinney.node.lifecycle.guard import guard
from spinney.node.settings import NodeSettings
from spinney.standard_streams import ensure_open

_FORMAT = "%(asctime)s %(levelname)s %(name)s[%(process)d]: %(message)s"


def run_node(settings: NodeSettings) -> int:
    """Be the guard of a node until it ends; returns the exit code.

    0 after a clean drain, 2 when what was asked for cannot be meant (the application cannot be
    loaded), 1 when the state of things forbids it or the node did not end by its own will. Why, is
    told in one sentence on stderr.
    """
    ensure_open()
    set_up_log(settings.log_level)
    try:
        return guard(settings)
    except SpinneyError as error:
        print(f"spinney: {error}", file=sys.stderr)  # noqa: T201 - the sentence for the terminal
        return error.exit_code


def set_up_log(level: str) -> None:
    """One line an event, on stderr."""
    logging.basicConfig(level=level.upper(), format=_FORMAT, stream=sys.stderr)
