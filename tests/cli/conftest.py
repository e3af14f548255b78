"""Folders with and without a store, and with a node at work."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spinney.terminal.connection import open_local_store
from waiting import until

from .shell import Shell, furnish


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    """A folder without a store."""
    return Shell(tmp_path)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder with a store that knows the types of ``jobs.py``; nothing runs."""
    return furnish(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The same for all tests of a module that must not store anything; looked at in the end."""
    shell = furnish(tmp_path_factory.mktemp("untouched"))
    yield shell
    assert shell.ok("list", "--json") == ""


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A store, and a node that has joined it, for all tests of a module."""
    with _at_work(tmp_path_factory.mktemp("working")) as shell:
        yield shell


@contextmanager
def _at_work(folder: Path) -> Iterator[Shell]:
    shell = furnish(folder)
    # A long lease: on a machine so busy that heartbeats are late by 15 s, its guard would end the node.
    node = shell.start("node", "jobs:app", "--name", "n1", "--slots", "2", "--lease", "10m")
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        until(store.nodes)
    yield shell
    node.terminate()
    _, err = node.communicate(timeout=30)
    assert node.returncode == 0, err
