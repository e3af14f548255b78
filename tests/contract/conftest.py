"""The stores under test. A new store joins by one more entry in ``OPENERS``."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spinney.stores.contract import Store

from .words import USUAL, Clock, Site


def _sqlite(folder: Path) -> Store:
    from spinney.stores.sql import open_store

    return open_store(f"sqlite:///{folder}/spinney.db")


OPENERS: dict[str, Callable[[Path], Store]] = {"sqlite": _sqlite}


@pytest.fixture(params=sorted(OPENERS))
def open_another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens one more store object on the test's database, as another process would have."""
    opened: list[Store] = []

    def opener() -> Store:
        opened.append(OPENERS[request.param](tmp_path))
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


@pytest.fixture
def store(open_another: Callable[[], Store]) -> Store:
    made = open_another()
    made.create()
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site(store: Store, clock: Clock) -> Site:
    """A store that knows the usual job types, with a clock and nodes."""
    made = Site(store, clock)
    made.knows(*USUAL)
    return made
