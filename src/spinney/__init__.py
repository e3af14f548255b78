"""Durable batch processing for people who run long pipelines on machines of their own.

``Spinney`` makes an application, ``Job`` is the handle that a stage gets, and the others say what
became of a stage: ``raise Defer(60)``. What is not here is in ``spinney.testing``, ``spinney.control``
and ``spinney.model``.
"""

from spinney.app import Spinney, load_app
from spinney.job import Job
from spinney.model.errors import SpinneyError
from spinney.model.signals import Defer, Fail, Finish, Hold, NotApplicable, Warn
from spinney.model.types import Backoff, LockSpec

__all__ = [
    "Backoff",
    "Defer",
    "Fail",
    "Finish",
    "Hold",
    "Job",
    "LockSpec",
    "NotApplicable",
    "Spinney",
    "SpinneyError",
    "Warn",
    "load_app",
]
