"""A service with a store, and no node."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from new_store import new_store
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.verbs.service import Service
from spinney.apps.ingest.verbs.setup import prepare
from spinney.commands.control import Control
from spinney.store.sql import open_store


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "ingest.toml").write_text(
        f"home = 'home'\n[storage.main]\nurl = '{tmp_path}/archive'\n[minters.main]\nnaan = '99999'\nshoulder = 'fk4'\n"
    )
    loaded = settings.load({settings.VARIABLE: str(tmp_path / "ingest.toml")})
    assert list(prepare(loaded))
    (loaded.profiles / "maps.toml").write_text("collection = 'maps'\nhold = 'a look first'\n")
    store = open_store(new_store(tmp_path / "spinney.db"))
    control = Control(
        store=store,
        clock=lambda: time.time_ns() // 1000,
        wake_nodes=lambda: None,
        by="ann",
        folder_root=tmp_path / "spinney.folders",
    )
    yield Service(control=control, settings=loaded)
    store.close()
