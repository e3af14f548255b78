"""A store on SQLite, and processes that are forked while it is open."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from new_store import new_store
from spinney.model.errors import StoreUnusable
from spinney.store.sql import open_store


def test_a_child_uses_no_file_that_was_open_when_it_was_forked(tmp_path: Path) -> None:
    url = new_store(tmp_path / "spinney.db")
    with closing(open_store(url)) as store:
        store.types()
        child = os.fork()
        if child == 0:
            try:
                for inherited_or_new in (store, open_store(url)):
                    with pytest.raises(
                        StoreUnusable, match=r"was open when this process was forked.*app\.close\(\)"
                    ):
                        inherited_or_new.types()
                os._exit(0)
            finally:
                os._exit(1)

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert store.types() == {}


def test_a_child_uses_a_file_that_was_closed_before(tmp_path: Path) -> None:
    url = new_store(tmp_path / "spinney.db")
    with closing(open_store(url)) as store:
        store.types()
        store.close()
        child = os.fork()
        if child == 0:
            try:
                os._exit(store.types() != {})
            finally:
                os._exit(1)

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
