"""The page that documents the API, made of its OpenAPI document: groups, routes, problems, and how to call
them.

It is made of the document alone, so that it cannot say anything else than clients are generated from. It
needs no script and, unlike the usual viewers of such documents, loads nothing from other hosts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.server import openapi
from spinney.web.api.json_routes import PREFIX
from spinney.web.pages.forms import base_url
from spinney.web.pages.page_responses import page
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)

_METHODS = ("get", "post", "put", "patch", "delete")
_REFUSED_FROM = 400
ALWAYS = ("400", "401", "403", "422", "429", "503")
"""Every route may be refused with these statuses; the page lists them once."""
_PLAIN = "Successful Response"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a route, as the page about the API shows it."""

    name: str
    where: str
    """Where it is sent: ``path``, ``query`` or ``header``."""
    about: str
    """What the document says of it."""
    needed: bool
    """Whether it is required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route of the API, as the page shows it."""

    method: str
    path: str
    summary: str
    about: str
    parameters: Sequence[Parameter]
    answers: Mapping[str, str]
    """Descriptions of the answers, by status."""
    problems: Mapping[str, str]
    """Descriptions of the refusals that not every route has, by status."""


@router.get("/api")
async def api(request: Request, context: Authenticated, group: str = "") -> Response:
    """Show the API's document to people: a line for each route, and all details of one group's routes."""
    routes_by_group = await _groups(request)
    return page(
        request,
        context.principal,
        "api.html",
        groups={group: routes_by_group[group]} if group in routes_by_group else routes_by_group,
        chosen=group if group in routes_by_group else "",
        counts={name: len(routes) for name, routes in routes_by_group.items()},
        prefix=PREFIX,
        base=base_url(request),
        always=ALWAYS,
        document=f"{PREFIX}/openapi.json",
    )


async def _groups(request: Request) -> Mapping[str, Sequence[Route]]:
    """Return the routes by group, from a document that is made at the first request, in a thread."""
    state = request.app.state
    if not hasattr(state, "api_groups"):  # the document never changes, and making it takes a second
        state.api_groups = groups(await asyncio.to_thread(openapi.document, request.app, PREFIX))
    routes_by_group: Mapping[str, Sequence[Route]] = state.api_groups
    return routes_by_group


def groups(document: Mapping[str, Any]) -> Mapping[str, Sequence[Route]]:
    """Return the routes of an OpenAPI document by their first tag, in its order; those without a tag are
    ``other``."""
    routes_by_group: dict[str, list[Route]] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                routes_by_group.setdefault(next(iter(item[method].get("tags", ())), "other"), []).append(
                    _route(method, path, item[method])
                )
    return routes_by_group


def _route(method: str, path: str, operation: Mapping[str, Any]) -> Route:
    """Return one operation of the document as the page shows it. Answers and refusals are told apart by their
    status."""
    answers = {
        code: answer.get("description", "") for code, answer in sorted(operation.get("responses", {}).items())
    }
    return Route(
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        about=operation.get("description", ""),
        parameters=[
            Parameter(
                name=p["name"], where=p["in"], about=p.get("description", ""), needed=p.get("required", False)
            )
            for p in operation.get("parameters", ())
        ],
        answers={
            code: "" if text == _PLAIN else text for code, text in answers.items() if not _refused(code)
        },
        problems={code: text for code, text in answers.items() if _refused(code) and code not in ALWAYS},
    )


def _refused(code: str) -> bool:
    """Return whether this HTTP status is that of a refusal."""
    return code.isdigit() and int(code) >= _REFUSED_FROM
