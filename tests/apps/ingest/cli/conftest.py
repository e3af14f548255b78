"""Services with and without a node at work."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..web import Web
from .house import House, copied, furnish


@pytest.fixture(scope="session")
def web() -> Iterator[Web]:
    with Web() as web:
        yield web


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, web: Web) -> House:
    """A service as ``init`` makes it, to be copied."""
    return furnish(tmp_path_factory.mktemp("made"), web)


@pytest.fixture
def house(tmp_path: Path, made: House) -> House:
    """A service of which no node runs."""
    return copied(made, tmp_path)


@pytest.fixture(scope="module")
def untouched(made: House) -> Iterator[House]:
    """One for all tests of a module that must not hand anything in; looked at in the end."""
    yield made
    assert made.lines("batches") == []


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory, web: Web) -> Iterator[House]:
    """A service with a node, for all tests of a module."""
    house = furnish(tmp_path_factory.mktemp("working"), web)
    node = house.shell.start("node", "spinney.apps.ingest:app", "--name", "n1", "--slots", "1")
    yield house
    node.terminate()
    _, err = node.communicate(timeout=30)
    assert node.returncode == 0, err
