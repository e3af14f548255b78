"""Routes that packages bring: below their own address, for who is known, with that person's rights; or left out."""

import logging
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI

from spinney.model.jobs import Filter
from spinney.routes import GROUP, Authenticated, routes
from spinney.server import extensions

from .conftest import world_at

ADDRESS = "/api/v1/apps/library/shelves"


def library() -> APIRouter:
    router = routes("library")

    @router.get("/shelves", summary="List the shelves")
    async def shelves(context: Authenticated) -> dict[str, list[int]]:
        """Those in sight."""
        return {
            "items": await context.run(lambda control: [job.id for job in control.queries.jobs(Filter())])
        }

    return router


def open_to_all() -> APIRouter:
    router = routes("library")

    @router.get("/shelves")
    async def shelves() -> dict[str, str]:
        return {}

    return router


def plain() -> APIRouter:
    router = APIRouter(prefix="/api/v1/apps/library")

    @router.get("/shelves")
    async def shelves(context: Authenticated) -> dict[str, str]:
        return {}

    return router


def elsewhere() -> APIRouter:
    router = routes("jobs")

    @router.get("/shelves")
    async def shelves(context: Authenticated) -> dict[str, str]:
        return {}

    return router


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Installs a package whose entry point is this; None: one that cannot be imported."""
    module = ModuleType("library_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def install(router: Any) -> None:
        if router is not None:
            module.router = router  # type: ignore[attr-defined]
        entry = EntryPoint("library", f"{module.__name__}:router", GROUP)
        monkeypatch.setattr(extensions, "installed", lambda group: [entry] if group == GROUP else [])

    return install


def test_a_route_of_a_package_answers_within_the_rights_of_who_asks(
    installed: Callable[[Any], None], tmp_path: Any
) -> None:
    installed(library())
    with world_at(tmp_path) as world:
        inside, outside = world.submit(collection="lab"), world.submit(collection="other")

        answers = {name: world.client(name).get(ADDRESS) for name in ("limited", "viewer", None)}

        assert answers["limited"].json() == {"items": [inside]}
        assert answers["viewer"].json() == {"items": [inside, outside]}
        assert answers[None].status_code == 401
        assert ADDRESS in world.client("viewer").get("/api/v1/openapi.json").json()["paths"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (open_to_all, "does not authenticate its caller"),
        (plain, "is not of a router"),
        (elsewhere, "does not lie below"),
        (lambda: "a text", "no fastapi.APIRouter"),
        (lambda: None, "has no attribute 'router'"),
    ],
)
def test_a_package_that_keeps_to_less_is_left_out(
    installed: Callable[[Any], None], caplog: pytest.LogCaptureFixture, make: Callable[[], Any], says: str
) -> None:
    installed(make())
    app = FastAPI()
    before = len(app.routes)

    with caplog.at_level(logging.WARNING):
        extensions.add_routes(app)

    assert len(app.routes) == before
    assert says in caplog.text
