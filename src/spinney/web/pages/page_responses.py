"""Responses made of templates: pages in the frame of the server, parts of them, and redirects with a message.

A page is for one caller and is never cached. The message of a redirect travels in a cookie and is shown once, on the
next page.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import orjson
from fastapi import FastAPI, Request
from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from spinney.model.access import Role
from spinney.model.jobs import job_number
from spinney.model.states import SETTLED, State
from spinney.model.values import limits, texts
from spinney.web.pages import charts, text_formats
from spinney.web.pages.static_files import StaticFiles
from spinney.web.request_context import Principal, now_us

THEME_COOKIE = "spinney_theme"
"""The cookie of the chosen colours, which the page's script sets: ``light`` or ``dark``."""
FLASH_COOKIE = "spinney_flash"
"""The cookie of the message that the next page shows."""
FLASH_MAX = 800
"""The maximum length of a message that the next page shows."""
_FLASH_S = 60
"""How many seconds a message waits for the next page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NavItem:
    """A link of the navigation, with what a user needs to see it."""

    path: str
    label: str
    """Its text."""
    icon: str
    """The name of its icon."""
    key: str = ""
    """The key that follows it when pressed after ``g``; empty: none."""
    role: Role = Role.VIEWER
    """The lowest role that sees the link."""
    everywhere: bool = False
    """Whether only users who see all jobs see the link."""
    shown: Callable[[], bool] = lambda: True
    """Whether there is anything behind the link here; called for each page, so it must be fast."""


NAV_ITEMS = (
    NavItem(path="/", label="Overview", icon="overview", key="o"),
    NavItem(path="/batches", label="Batches", icon="batches", key="b"),
    NavItem(path="/jobs", label="Jobs", icon="jobs", key="j"),
    NavItem(path="/failures", label="Failures", icon="failures", key="f"),
    NavItem(path="/activity", label="Activity", icon="activity", key="t"),
    NavItem(path="/submit", label="Submit", icon="submit", key="s", role=Role.SUBMITTER),
    NavItem(path="/queues", label="Queues", icon="queues", key="q"),
    NavItem(path="/nodes", label="Nodes", icon="nodes", key="n"),
    NavItem(path="/holds", label="Holds & locks", icon="holds", key="h"),
    NavItem(path="/schedules", label="Schedules", icon="schedules", key="c"),
    NavItem(path="/inboxes", label="Inboxes", icon="inboxes", key="i", role=Role.OPERATOR, everywhere=True),
    NavItem(path="/bridges", label="Bridges", icon="nodes", everywhere=True),
    NavItem(path="/webhooks", label="Webhooks", icon="webhooks", key="w", role=Role.OPERATOR),
    NavItem(path="/retention", label="Retention", icon="retention", key="e"),
    NavItem(path="/audit", label="Audit", icon="audit", key="a", role=Role.OPERATOR, everywhere=True),
    NavItem(path="/users", label="Users", icon="users", key="u", role=Role.ADMIN),
    NavItem(path="/api", label="API", icon="api", key="p"),
)


class PageSource(Protocol):
    """What an application adds to the frame: its links, and the package with its templates and static files.

    ``name``: the word before its templates and files; ``package``: the package that has ``templates`` and
    ``static``; ``nav``: its links, behind those of the server."""

    name: str
    package: str
    nav: tuple[NavItem, ...]


def add_to(app: FastAPI, sources: tuple[PageSource, ...] = ()) -> None:
    """Give ``app`` the static files and templates of the pages, with those of applications."""
    app.state.static, app.state.templates = static_of(sources), templates_of(sources)


@cache
def static_of(sources: tuple[PageSource, ...]) -> StaticFiles:
    """Return the static files. They are read once a process."""
    return StaticFiles({source.name: source.package for source in sources})


@cache
def templates_of(sources: tuple[PageSource, ...]) -> Environment:
    """Return the templates with the filters, functions and constants that they may use. They are compiled once a
    process, which takes long.

    ``NAME/x.html`` is the template ``x.html`` of the application of this name. Values are always escaped.
    """
    environment = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("spinney.web.pages"),
                PrefixLoader({source.name: PackageLoader(source.package) for source in sources}),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "static": static_of(sources).address,
        "NAV_ITEMS": (*NAV_ITEMS, *(item for source in sources for item in source.nav)),
        "Role": Role,
        "State": State,
        "STATES": tuple(State),
        "SETTLED": SETTLED,
        "bar": charts.bar,
        "plural": texts.counted,
        "with_query": with_query,
        "limit_text": limits.as_text,
    }
    environment.filters |= {
        "number": text_formats.number,
        "short": text_formats.short,
        "rate": texts.rate,
        "lasting": text_formats.lasting,
        "interval": text_formats.interval,
        "moment": text_formats.moment,
        "iso": text_formats.iso,
        "size": text_formats.size,
        "percent": text_formats.percent,
        "json_text": text_formats.json_text,
        "cut": text_formats.cut,
        "capital": text_formats.capital,
        "verb_name": text_formats.verb_name,
        "exception": text_formats.exception,
        "segment": segment,
        "ago": text_formats.ago,
        "browser": text_formats.browser,
    }
    return environment


def page(
    request: Request,
    principal: Principal | None,
    template: str,
    *,
    topics: Sequence[str] = (),
    status: int = 200,
    **context: Any,
) -> Response:
    """Return a page in the frame. ``topics``: what its script watches (``spinney.web.events``). ``context``:
    the variables of the template; one that the template uses and that is missing is an error. The message of
    the last action is shown and its cookie removed."""
    flash = _flash_message(request)
    answer = _answer(request, principal, template, status, topics=topics, flash=flash, **context)
    if FLASH_COOKIE in request.cookies:
        answer.delete_cookie(FLASH_COOKIE, httponly=True, samesite="lax")
    return answer


def part(request: Request, principal: Principal | None, template: str, **context: Any) -> Response:
    """Return a part of a page, which the page's script merges into it. It has no frame, and leaves the
    message of the last action to the next page."""
    return _answer(request, principal, template, 200, **context)


def redirect(path: str, *, done: str | None = None, refused: str | None = None) -> Response:
    """Return a redirect (303) to a page of this server, which shows there what was done or why it was refused. The
    message is cut at ``FLASH_MAX`` characters.

    It is in a cookie that is not signed: whoever could forge the cookie would fool only the browser's own user, and it
    is shown as text.
    """
    answer = RedirectResponse(path, 303)
    message = refused or done
    if message is not None:
        kind = "refused" if refused else "done"
        text = message if len(message) <= FLASH_MAX else message[: FLASH_MAX - 1] + "…"
        value = urlsafe_b64encode(orjson.dumps([kind, text])).decode()
        answer.set_cookie(FLASH_COOKIE, value, max_age=_FLASH_S, httponly=True, samesite="lax")
    return answer


def segment(text: str) -> str:
    """Return a name as a segment of a path, percent-encoded."""
    return quote(text, safe="")


def number_of(text: str) -> int:
    """Return a number that an address has, such as that behind which a page begins; 0 for any other text, since the
    address may be typed by hand."""
    return job_number(text) or 0


def with_query(path: str, /, **query: Any) -> str:
    """Return a path with these query parameters. None, False and empty ones are left out; lists are repeated."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None or value == "" or value is False:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        pairs += [(name, "1" if item is True else str(item)) for item in values]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _answer(
    request: Request, principal: Principal | None, template: str, status: int, **context: Any
) -> Response:
    """Return a rendered template, which no cache keeps."""
    theme = request.cookies.get(THEME_COOKIE, "auto")
    now = now_us()
    # A link to a path that begins with two slashes leads to another host.
    path = f"/{request.url.path.lstrip('/')}"
    text = request.app.state.templates.get_template(template).render(
        principal=principal,
        theme=theme if theme in ("light", "dark") else "auto",
        now_us=now,
        current_path=path,
        current_url=f"{path}?{request.url.query}" if request.url.query else path,
        secure=request.app.state.settings.secure,
        **context,
    )
    # What pages show is somebody's: no cache keeps it, and one that goes by HX-Request alone would mix parts and pages.
    return HTMLResponse(text, status, headers={"Cache-Control": "no-store", "Vary": "HX-Request"})


def _flash_message(request: Request) -> tuple[str, str] | None:
    """Return the message of the last action: ``done`` or ``refused``, and a sentence. None: there is none, or
    the cookie was not made here."""
    value = request.cookies.get(FLASH_COOKIE)
    if value is None or len(value) > 6 * FLASH_MAX:
        return None
    try:
        kind, text = orjson.loads(urlsafe_b64decode(value))
    except (NotBase64, ValueError, TypeError):
        return None
    return (kind, str(text)) if kind in ("done", "refused") else None
