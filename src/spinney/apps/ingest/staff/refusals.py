"""Turns NotAdmitted into errors of the engine, so that command line and server show it in the same way."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney.apps.ingest.files.paths import NotAdmitted
from spinney.errors import Refused, UsageError


@contextmanager
def refused() -> Iterator[None]:
    """Raise Refused instead of NotAdmitted."""
    try:
        yield
    except NotAdmitted as error:
        raise Refused(str(error)) from error


@contextmanager
def refused_as_usage() -> Iterator[None]:
    """Raise UsageError instead of NotAdmitted, for invalid input of the person."""
    try:
        yield
    except NotAdmitted as error:
        raise UsageError(str(error)) from error
