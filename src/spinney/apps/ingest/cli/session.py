"""The service that a command works on, and how its refusals are told."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney.apps.ingest import settings
from spinney.apps.ingest.paths import NotAdmitted
from spinney.apps.ingest.staff import Service
from spinney.cli.session import hand, where
from spinney.model.errors import Refused, UsageError


@contextmanager
def serving(store: str | None, by: str | None = None) -> Iterator[Service]:
    """The service in force here, in somebody's name; the store is closed at the end."""
    with refusing(), hand(store, by) as control:
        yield Service(control=control, settings=settings.load(), folders=where(store).folders)


@contextmanager
def refusing() -> Iterator[None]:
    """What is not admitted is refused."""
    try:
        yield
    except NotAdmitted as error:
        raise Refused(str(error)) from error


@contextmanager
def meant() -> Iterator[None]:
    """The same for what was written on the command line."""
    try:
        yield
    except NotAdmitted as error:
        raise UsageError(str(error)) from error
