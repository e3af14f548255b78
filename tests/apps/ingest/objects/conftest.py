"""A service in a folder of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.ingest.new_inventory import new_inventory
from apps.ingest.objects.scene import Service
from apps.ingest.web import Web


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def service(tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("SPINNEY_INGEST", str(tmp_path / "ingest.toml"))
    made = Service(folder=tmp_path, web=web)
    made.write(
        home="home",
        storage={"main": {"url": "archive"}},
        minters={"main": {"naan": "99999", "shoulder": "fk4"}},
        working={"limit": 1.0, "warning": 1.0},  # the disk of a machine that tests is as full as it is
    )
    (tmp_path / "home").mkdir()
    new_inventory(tmp_path / "home" / "inventory.db")
    made.prepare()
    made.profile()
    return made
