"""A server as tests ask it: in this process, over ASGI, with a store of its own and askers of every role.

Who asks is said by the header ``X-Asker`` (``Askers``, an identity made for tests); without it nobody is known. The
store stands in a file and keeps real time; ``site`` moves its jobs as nodes would.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from contract.words import RealClock, Site, kind, stage
from new_store import new_store, new_store_on_server
from spinney.commands.control import Control
from spinney.features.bulk import page as bulk_runs
from spinney.folders import folders
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.settings.queues import QueueSpec
from spinney.model.types import LockSpec, TypeSpec
from spinney.schemas import AuthMethod
from spinney.server.application import Parts, make
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.web.request_context import Principal, now_us
from spinney.web.settings import ServerSettings
from spinney.web.store_pool import StorePool

LIMITED = Rights(
    role=Role.OPERATOR, within=AccessScope(collections=("lab",)), shares=("lab:*",), priorities=(40, 60)
)
"""An operator of the collection ``lab`` alone."""
RIGHTS: Mapping[str, Rights] = {
    **{str(role): Rights(role=role) for role in Role},
    "limited": LIMITED,
}
"""By the name of who asks, which is that of the role."""
HAS_ACCOUNT = ("ann", "bob")
DOUBLE = TypeSpec(
    name="double",
    stages=(stage("double"),),
    description="Twice as much.",
    schema={
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "how many"},
            "name": {"type": "string", "default": ""},
            "pin": {"type": "string", "format": "password", "writeOnly": True},
        },
        "required": ["n"],
        "additionalProperties": False,
    },
)
LOCKED = kind("locked", stage("work", locks=(LockSpec(template="receiver:{serno}"),)))
BATCH = kind("batch", "expand", stage("report", again=True), children="settled")
TYPES = (DOUBLE, LOCKED, BATCH, kind("three", "first", "second", "third"), kind("one", "work"))
QUEUES = (QueueSpec(name="default", type="double"), QueueSpec(name="slow", limit=1))


class Askers:
    """Identity made for tests: whoever the header ``X-Asker`` names, with the rights that the world has for him. Rights
    of ``HAS_ACCOUNT`` count as those of an account, others as configured."""

    def __init__(self, rights: Mapping[str, Rights]) -> None:
        self._rights = rights

    async def authenticate(self, request: Request) -> Principal | None:
        name = request.headers.get("x-asker")
        if name is None:
            return None
        return Principal(
            name=name,
            rights=self._rights[name],
            how=AuthMethod.TOKEN,
            by_configuration=name not in HAS_ACCOUNT,
        )

    async def reauthenticate(self, request: Request) -> Principal | None:
        return await self.authenticate(request)


@dataclass
class World:
    """One store with its folders, and a server before it."""

    app: FastAPI
    store: Store
    site: Site
    folders: Path
    rights: dict[str, Rights]
    """What who may; tests may add to it."""
    clients: dict[str | None, TestClient] = field(default_factory=dict)
    portal: BlockingPortal | None = None
    """Where the application runs: clients ask it there, and need no event loop of their own for each request."""

    def client(self, name: str | None = "operator") -> TestClient:
        """Who asks under this name; None: nobody who is known. A role's name has that role."""
        if name not in self.clients:
            headers = {} if name is None else {"X-Asker": name}
            self.clients[name] = TestClient(
                self.app,
                "http://localhost",
                raise_server_exceptions=False,
                headers=headers,
                follow_redirects=False,
            )
            self.clients[name].portal = self.portal
        return self.clients[name]

    def control(self, name: str = "operator") -> Control:
        """What the server has in hand for him."""
        return Control(
            store=self.store,
            clock=now_us,
            wake_nodes=lambda: None,
            by=name,
            rights=self.rights.get(name, ALL_RIGHTS),
        )

    def submit(self, type_: str = "one", params: Mapping[str, Any] | None = None, **options: Any) -> int:
        """One job, by nobody in particular."""
        return self.site.submit_one(type_, params or {}, **options)

    def folder(self, job_id: int) -> Path:
        return folders.make(self.folders, job_id)


def store_at(file: Path) -> str:
    """URL of a new store that knows the types of these tests."""
    return new_store(file, _declare)


def store_on_server() -> str:
    """URL of the same store on PostgreSQL: the one of this process, with nothing else in it."""
    url = new_store_on_server()
    with closing(open_store(url)) as store:
        _declare(store)
    return url


def _declare(store: Store) -> None:
    store.register(TYPES, QUEUES)


SETTINGS = ServerSettings(threads=2)
"""Each thread opens the store for itself, and few requests come at once here."""


@pytest.fixture
def settings() -> ServerSettings:
    """Tests may have others."""
    return SETTINGS


@contextmanager
def unserved(place: Path, settings: ServerSettings = SETTINGS, url: str | None = None) -> Iterator[World]:
    """A world of its own in this folder, whose server somebody has yet to start. ``url``: its store, if that is not to
    be a new file there."""
    url = url or store_at(place / "spinney.db")
    store = open_store(url)
    root = place / "folders"
    folders.write_token(root, store.facts()["folder_token"])
    rights = dict(RIGHTS)

    def identity(stores: StorePool, settings: ServerSettings) -> Askers:
        return Askers(rights)

    app = make(
        Parts(
            settings=settings,
            open_store=lambda: open_store(url),
            folders=root,
            run_dir=None,
            identity=identity,
        )
    )
    yield World(app=app, store=store, site=Site(store, RealClock()), folders=root, rights=rights)
    store.close()


@contextmanager
def world_at(place: Path, settings: ServerSettings = SETTINGS, url: str | None = None) -> Iterator[World]:
    """A world of its own in this folder; ``url`` as for ``unserved``."""
    with unserved(place, settings, url) as made, TestClient(made.app, "http://localhost") as running:
        made.portal = running.portal
        yield made


@pytest.fixture
def world(tmp_path: Path, settings: ServerSettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(bulk_runs, "PATIENCE_S", 60.0)  # a verb over some jobs ends in time on any machine
    with world_at(tmp_path, settings) as made:
        yield made


@pytest.fixture
def app(world: World) -> FastAPI:
    return world.app


@pytest.fixture
def client(world: World) -> Callable[[str | None], TestClient]:
    """``client("viewer")``, ``client(None)``."""
    return world.client
