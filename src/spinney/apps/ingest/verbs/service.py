"""The context of every verb: the person's control of the engine, the settings, and the folders of jobs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spinney.apps.ingest.application import batches as BATCHES
from spinney.apps.ingest.application import objects as OBJECTS
from spinney.apps.ingest.config.settings import Settings
from spinney.errors import Refused, SpinneyError
from spinney.files.paths import NotAdmitted
from spinney.operations import Control, Queries, Store

BATCH, OBJECT = BATCHES.name, OBJECTS.name
"""The job types."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """An ingest service, and the person who uses it.

    Jobs are looked up through ``look``, which applies the person's limits; other data of such a job is read from
    ``store``. The service's own data (profiles, the inventory) is limited by ``collections``.
    """

    control: Control
    settings: Settings

    @property
    def folders(self) -> Path:
        """The folder root of the store, as this host sees it."""
        assert self.control.folder_root is not None, "a command and a server have one"
        return self.control.folder_root

    @property
    def store(self) -> Store:
        """The store, without the person's limits."""
        return self.control.store

    @cached_property
    def look(self) -> Queries:
        """The queries for jobs that the person may see."""
        return self.control.queries

    @property
    def collections(self) -> Sequence[str] | None:
        """The collections that the person is limited to; None: no limits."""
        return self.control.rights.within.collections

    def sees(self, collection: str) -> bool:
        """Return whether a collection is within the limits of the person."""
        return self.collections is None or collection in self.collections


def introduce(store: Store) -> None:
    """Register the application in a store that no node of it has joined yet, so that the first batch can be
    submitted before the first node is started."""
    if BATCH not in store.types():
        from spinney.apps.ingest import app  # only here, for it loads every stage

        app.introduce(store)


@contextmanager
def refused(as_: type[SpinneyError] = Refused) -> Iterator[None]:
    """Turn NotAdmitted into an error of the engine, so that command line and server show it in the same way. ``as_``:
    UsageError for invalid input of the person."""
    try:
        yield
    except NotAdmitted as error:
        raise as_(str(error)) from error
