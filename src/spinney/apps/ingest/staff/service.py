"""What every verb has in hand: somebody's hand on the engine, the settings, and where jobs have their folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spinney.apps.ingest.application import batches as BATCHES
from spinney.apps.ingest.application import objects as OBJECTS
from spinney.apps.ingest.config.settings import Settings
from spinney.operations import Control, Queries, Store

BATCH, OBJECT = BATCHES.name, OBJECTS.name
"""The job types."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """An ingest service, and the person who works on it.

    Jobs are found through ``look``, which knows what the person may see; what else is kept of a job that was found so
    is read from ``store``. What the service keeps itself (profiles, the inventory) is limited by ``collections``.
    """

    control: Control
    settings: Settings
    folders: Path
    """The folder root of the store, as this host sees it."""

    @property
    def store(self) -> Store:
        return self.control.store

    @cached_property
    def look(self) -> Queries:
        """What the person may see of the jobs."""
        return self.control.queries

    @property
    def collections(self) -> Sequence[str] | None:
        """The collections that the person is limited to; None: to none."""
        return self.control.rights.within.collections

    def sees(self, collection: str) -> bool:
        """Whether a collection lies within the limits of the person."""
        return self.collections is None or collection in self.collections


def introduce(store: Store) -> None:
    """Make the application known to a store that no node of it has joined yet. What nodes have registered is theirs to
    replace."""
    if BATCH in store.types():
        return
    from spinney.apps.ingest import app  # only here are its stages needed, and all that they need

    queues, locks = store.queues(), {known.name for known in store.locks.capacities()}
    store.register(
        [kind.spec for kind in app.types.values()],
        [queue for queue in app.queues if queue.name not in queues],
        [lock for lock in app.locks if lock.name not in locks],
    )
