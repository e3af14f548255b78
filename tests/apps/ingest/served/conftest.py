"""An ingest service behind a server in this process, and people with rights of every kind who ask it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.conftest import Askers
from spinney.model.access import AccessScope, Rights, Role
from spinney.server.application import Parts, make
from spinney.store.sql import open_store
from spinney.web.settings import ServerSettings

from ..access.filled_service import Service, service

MAPS = AccessScope(collections=("maps",))
RIGHTS = {
    "ann": Rights(role=Role.SUBMITTER, within=MAPS),
    "mia": Rights(role=Role.OPERATOR, within=MAPS),
    "vic": Rights(role=Role.VIEWER, within=MAPS),
    "eve": Rights(role=Role.SUBMITTER, within=AccessScope(collections=("photos",))),
    "operator": Rights(role=Role.OPERATOR),
    "admin": Rights(role=Role.ADMIN),
}
"""The objects and batches of these tests belong to the collection ``maps``; eve is limited to another."""


@dataclass(frozen=True)
class Served:
    """The service, and a client for each person."""

    service: Service
    clients: dict[str, TestClient]

    def __getitem__(self, name: str) -> TestClient:
        return self.clients[name]


def build(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> tuple[Service, FastAPI]:
    """A service in this folder, in the environment, and a server before it. ``more``: of the settings."""
    made = service(folder / "service", "test_mode = true", more=more)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("incoming", "held", "profiles"):
        (made.folder / "home" / name).mkdir(exist_ok=True)
    for profile in ("maps", "photos"):
        (made.folder / "home" / "profiles" / f"{profile}.toml").write_text(f'collection = "{profile}"\n')
    return made, make(
        Parts(
            settings=ServerSettings(),
            open_store=lambda: open_store(made.environment["SPINNEY_STORE"]),
            folders=made.folder / "spinney.folders",
            run_dir=None,
            identity=lambda stores, settings: Askers(RIGHTS),
        )
    )


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    made, app = build(tmp_path, monkeypatch)
    clients = {
        name: TestClient(app, "http://localhost", raise_server_exceptions=False, headers={"X-Asker": name})
        for name in RIGHTS
    }
    with TestClient(app, "http://localhost") as running:
        for client in clients.values():
            client.portal = running.portal  # one event loop for all of them, not one for each request
        yield Served(made, clients)
