"""Pages that packages bring: in the frame of the server, for who is known unless they are public; or left out."""

import logging
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import pytest
from fastapi import Request
from jinja2.runtime import Macro
from starlette.responses import Response

from spinney.jobs import Filter
from spinney.operations import Role
from spinney.pages import GROUP, Authenticated, Form, NavItem, Pages, run_and_redirect
from spinney.server import extensions
from spinney.web.pages import page_responses

from .conftest import world_at

BROWSER = {"accept": "text/html"}
SHELVES = """{% extends "base.html" %}
{% from "macros.html" import heading, csrf with context %}
{% block title %}Shelves{% endblock %}
{% block head %}<link rel="stylesheet" href="{{ static('library/shelf.css') }}">{% endblock %}
{% block main %}{{ heading("Shelves of " ~ owner) }}{% include "library/list.html" %}{% endblock %}
"""
LIST = """<ul id="list">{% for name in names %}<li>{{ name }}</li>{% endfor %}</ul>"""


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """The pages of a package that is not installed yet."""
    package = tmp_path / "package" / "library_of_pages"
    for folder in ("templates", "static"):
        (package / folder).mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "templates" / "shelves.html").write_text(SHELVES)
    (package / "templates" / "list.html").write_text(LIST)
    (package / "static" / "shelf.css").write_text("li { color: green }")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, package.name, raising=False)
    pages = Pages(
        "library",
        package.name,
        nav=[
            NavItem(path="", label="The library", icon="folder"),
            NavItem(path="/cellar", label="The cellar", icon="folder", role=Role.ADMIN),
            NavItem(path="/attic", label="The attic", icon="folder", shown=lambda: False),
        ],
    )

    @pages.get("")
    async def shelves(request: Request, context: Authenticated) -> Response:
        jobs = await context.run(lambda control: control.queries.jobs(Filter()))
        names = [f"<shelf of #{job.id}>" for job in jobs]
        return pages.show(request, context, "shelves.html", live="list.html", owner="all", names=names)

    @pages.get("/of/{key}", public=True)
    async def public(request: Request, key: str) -> Response:
        return pages.show(request, None, "shelves.html", owner=key, names=[])

    @pages.post("/shelves")
    async def add(context: Authenticated, form: Form) -> Response:
        name = form.text("name")
        return await run_and_redirect(context, pages.prefix, lambda control: None, f"Added {name}")

    return pages


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Installs a package whose entry point for pages is this."""

    def install(value: Any) -> None:
        monkeypatch.setattr("test_value.pages", value, raising=False)
        entry = EntryPoint("library", "test_value:pages", GROUP)
        monkeypatch.setattr(extensions, "installed", lambda group: [entry] if group == GROUP else [])

    monkeypatch.setitem(sys.modules, "test_value", type(sys)("test_value"))
    return install


def test_a_page_stands_in_the_frame_with_the_rights_of_its_reader(
    pages: Pages, install: Callable[[Any], None], tmp_path: Path
) -> None:
    install(pages)
    with world_at(tmp_path) as world:
        inside, outside = world.submit(collection="lab"), world.submit(collection="other")
        limited = world.client("limited").get("/apps/library", headers=BROWSER)
        admin = world.client("admin").get("/apps/library", headers=BROWSER)
        stranger = world.client(None).get("/apps/library", headers=BROWSER, follow_redirects=False)

        assert f"&lt;shelf of #{inside}&gt;" in limited.text
        assert f"#{outside}&gt;" not in limited.text
        assert f"#{outside}&gt;" in admin.text
        assert '<a href="/apps/library" aria-current="page">' in limited.text
        assert "The cellar" in admin.text
        assert "The cellar" not in limited.text
        assert stranger.headers["location"].startswith("/sign-in?next=%2Fapps%2Flibrary")


def test_its_static_files_and_its_live_part_are_served(
    pages: Pages, install: Callable[[Any], None], tmp_path: Path
) -> None:
    install(pages)
    with world_at(tmp_path) as world:
        client = world.client("viewer")
        page = client.get("/apps/library", headers=BROWSER).text
        address = next(part for part in page.split('"') if part.endswith("library/shelf.css"))
        style = client.get(address)
        live = client.get("/apps/library", headers={**BROWSER, "hx-request": "true"})

        assert (style.status_code, style.text) == (200, "li { color: green }")
        assert style.headers["content-type"].startswith("text/css")
        assert live.text.startswith('<ul id="list">')


def test_a_public_page_needs_no_sign_in(pages: Pages, install: Callable[[Any], None], tmp_path: Path) -> None:
    install(pages)
    with world_at(tmp_path) as world:
        page = world.client(None).get("/apps/library/of/k3y", headers=BROWSER)

        assert page.status_code == 200
        assert "Shelves of k3y" in page.text
        assert "The library" not in page.text  # nobody is known: no navigation


def test_a_form_leads_back_with_what_was_done(
    pages: Pages, install: Callable[[Any], None], tmp_path: Path
) -> None:
    install(pages)
    with world_at(tmp_path) as world:
        client = world.client("viewer")
        form = {"name": "north"}
        response = client.post("/apps/library/shelves", data=form, headers=BROWSER, follow_redirects=False)
        page = client.get(response.headers["location"], headers=BROWSER)

        assert response.headers["location"] == "/apps/library"
        assert "Added north" in page.text


def test_a_page_that_asks_nobody_is_refused_when_it_is_declared(pages: Pages) -> None:
    async def open_to_all(request: Request) -> Response:
        return pages.show(request, None, "shelves.html")

    with pytest.raises(ValueError, match="/apps/library/all does not authenticate its caller"):
        pages.get("/all")(open_to_all)
    assert all(getattr(route, "path", "") != "/apps/library/all" for route in pages.router.routes)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("a text", "it is no spinney.pages.Pages"),
        (Pages("cellar", "library_of_pages"), "its pages are those of 'cellar'"),
        (Pages("library", "email"), "has no folder 'templates'"),
    ],
)
def test_pages_that_cannot_be_shown_are_left_out(
    install: Callable[[Any], None], caplog: pytest.LogCaptureFixture, value: Any, says: str
) -> None:
    install(value)
    with caplog.at_level(logging.WARNING):
        assert extensions.page_sets() == []
    assert says in caplog.text


def test_given_the_guide_then_it_lists_all_that_templates_of_applications_may_use() -> None:
    environment = page_responses.templates_of(())
    guide = (Path(__file__).parents[2] / "docs" / "applications" / "running.md").read_text()
    rows = re.findall(r"^\| ((?:macros|filters|functions|constants)[^|]*) \| (.*) \|$", guide, re.MULTILINE)
    listed: dict[str, set[str]] = {"macros": {"icons.html"}}
    for kind, names in rows:
        listed.setdefault(kind.split()[0], set()).update(re.findall(r"`([^`]+)`", names))
    macros = {
        name: environment.get_template(name).make_module({}).__dict__
        for name in ("macros.html", "icons.html")
    }
    public = {
        name for module in macros.values() for name, value in module.items() if isinstance(value, Macro)
    }
    plain = jinja2.Environment(autoescape=True)

    assert listed["macros"] == public | {"icons.html"}
    assert listed["filters"] == environment.filters.keys() - plain.filters.keys()
    assert listed["functions"] | listed["constants"] == environment.globals.keys() - plain.globals.keys()
    assert set(environment.get_template("base.html").blocks) == {"title", "head", "main"}


def test_given_a_public_macro_then_a_comment_above_it_says_what_it_takes() -> None:
    for name in ("macros.html", "icons.html"):
        source = (files("spinney.web.pages") / "templates" / name).read_text()
        uncommented = re.findall(r"(?<!#}\n){% macro ([a-z]\w*)", source)

        assert not uncommented, f"{name}: {uncommented}"
