"""A server that identifies who asks as real ones do, on a store of its own, with two routes that tell who it was."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from anyio.from_thread import BlockingPortal
from argon2 import PasswordHasher
from fastapi import FastAPI
from starlette.testclient import TestClient

from new_store import new_store
from spinney.commands.control import Control
from spinney.define.job.options import Options
from spinney.features.accounts.commands import AddUser
from spinney.model.access import Rights, Role
from spinney.model.errors import TooManyAttempts
from spinney.model.operators.audits import AuditEntry
from spinney.server.application import Parts, make
from spinney.service.login_limits import login_limits
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.web.identity import StoreAuthenticator
from spinney.web.request_context import Authenticated, now_us
from spinney.web.settings import ServerSettings
from spinney.web.timed_cache import KEPT_S

PASSWORD = "correct horse battery"
LOCAL = "10.1.2.3"


@dataclass
class House:
    """A server and its store."""

    app: FastAPI
    store: Store
    portal: BlockingPortal | None
    """Where the application runs: clients ask it there, and need no event loop of their own for each request."""

    def client(self, address: str = LOCAL, base: str = "http://localhost", **headers: str) -> TestClient:
        """A browser or a program at this address, with cookies of its own."""
        client = TestClient(
            self.app,
            base,
            raise_server_exceptions=False,
            headers=headers,
            follow_redirects=False,
            client=(address, 4000),
        )
        client.portal = self.portal
        return client

    @property
    def control(self) -> Control:
        return Control(store=self.store, clock=now_us, wake_nodes=lambda: None, by="root")

    def submit(self, collection: str) -> int:
        """A job of the type ``one``."""
        (job,) = self.control.submit("one", [{}], Options(collection=collection)).ids
        return job

    def user(self, name: str = "ann", role: Role = Role.OPERATOR, password: str | None = PASSWORD) -> str:
        self.control.do(AddUser(name=name, rights=Rights(role=role), password=password))
        return name

    def signed_in(self, name: str = "ann", address: str = LOCAL) -> TestClient:
        """A browser in which this user has signed in."""
        browser = self.client(address)
        answer = sign_in(browser, name, PASSWORD)
        assert answer.status_code == 303, answer.text
        return browser

    def guessed_at(self, name: str, address: str = LOCAL) -> None:
        """Somebody has guessed at this name from this address so often that the next has to wait for minutes."""
        at_us = now_us() - 600_000_000
        for _ in range(12):
            limits = login_limits(name, address, None, at_us)
            try:
                self.store.sign_in.attempt(limits, now_us=at_us)
            except TooManyAttempts as error:
                at_us += round(error.wait_s * 1e6)
                self.store.sign_in.attempt(limits, now_us=at_us)

    def audited(self, verb: str) -> Sequence[AuditEntry]:
        return [entry for entry, _ in self.store.audit.entries(verb=verb)]

    def audited_details(self, verb: str) -> Sequence[dict[str, Any]]:
        """Return the details of the audit entries of this verb."""
        return [orjson.loads(entry.what) for entry in self.audited(verb)]


def csrf(page: str) -> str:
    """What the form on this page has to bear."""
    match = re.search(r'name="csrf" value="([^"]+)"', page)
    assert match is not None, page
    return match[1]


def sign_in(browser: TestClient, name: str, password: str, next_: str = "/") -> Any:
    """The form, filled in and sent."""
    proof = csrf(browser.get("/sign-in").text)
    return browser.post("/sign-in", data={"name": name, "password": password, "csrf": proof, "next": next_})


@pytest.fixture
def settings() -> ServerSettings:
    """Tests have others."""
    return ServerSettings()


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed in a millisecond; that they are hashed well is tested elsewhere."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    hasher_and_hash = hasher, hasher.hash("\0")
    monkeypatch.setattr("spinney.service.passwords._hasher", lambda: hasher_and_hash)


@pytest.fixture
def kept_s() -> float:
    """How long the server keeps what it has read of a caller. Some tests have others."""
    return KEPT_S


@pytest.fixture
def house(settings: ServerSettings, kept_s: float, tmp_path: Path) -> Iterator[House]:
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    app = make(
        Parts(
            settings=settings,
            open_store=lambda: open_store(url),
            folders=tmp_path / "folders",
            run_dir=None,
            identity=partial(StoreAuthenticator, kept_s=kept_s),
        )
    )

    async def probe(context: Authenticated) -> dict[str, Any]:
        return {
            "name": context.principal.name,
            "how": context.principal.how,
            "role": context.principal.rights.role,
        }

    for path in ("/probe", "/api/v1/probe"):
        app.add_api_route(path, probe, methods=["GET", "POST"])
    with TestClient(app, "http://localhost") as running:
        yield House(app=app, store=store, portal=running.portal)
    store.close()


Who = Callable[[Any], tuple[str, str, str]]


def who(answer: Any) -> tuple[str, str, str]:
    """Name, how it is known, role."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return body["name"], body["how"], body["role"]
