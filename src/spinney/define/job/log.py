"""The logger of a stage: it writes to stderr, which becomes the attempt's log."""

import logging
import sys
from typing import TextIO

_LOG_ROOT = "spinney.define.jobtype.stage"


def stage_logger(type_: str, stage: str) -> logging.Logger:
    """Return the logger of this stage. Its level is INFO; set another one on
    ``spinney.define.jobtype.stage``, of which the loggers of all stages are children. The first call sets up
    the handler."""
    top = logging.getLogger(_LOG_ROOT)
    if not top.handlers:
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        top.addHandler(handler)
        top.setLevel(logging.INFO)
        top.propagate = False
    return logging.getLogger(f"{_LOG_ROOT}.{type_}.{stage}")


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the current ``sys.stderr``, where output is assigned to attempts."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        """Ignore the stream that the base class sets."""
