"""The logger of a stage: it writes to stderr, which becomes the attempt's log."""

import logging
import sys
from typing import TextIO

_LOG_ROOT = "spinney.define.jobtype.stage"


def stage_logger(type_: str, stage: str) -> logging.Logger:
    """The logger of this stage. Its level is INFO; set another on ``spinney.define.jobtype.stage``."""
    top = logging.getLogger(_LOG_ROOT)
    if not top.handlers:
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        top.addHandler(handler)
        top.setLevel(logging.INFO)
        top.propagate = False
    return logging.getLogger(f"{_LOG_ROOT}.{type_}.{stage}")


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to what ``sys.stderr`` is at that moment: output is told apart by attempt there."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        """The base class sets it; there is nothing to keep."""
