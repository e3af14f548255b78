"""Pages that installed packages add to a server, in the server's frame: entry points of the group ``spinney.pages``.

    [project.entry-points."spinney.pages"]
    library = "library.pages:pages"

The value is a ``Pages("library", "library")``. Its addresses lie below ``/apps/library``, its Jinja templates in the
folder ``templates`` of the package ``library``, and its scripts, styles and pictures in the folder ``static``::

    from spinney.pages import Authenticated, Form, NavItem, Pages, run_and_redirect

    pages = Pages("library", "library", nav=[NavItem(path="", label="Library", icon="folder")])

    @pages.get("")
    async def shelves(request: Request, context: Authenticated) -> Response:
        names = await context.run(lambda control: sorted(control.queries.names("collection")))
        return pages.show(request, context, "shelves.html", names=names)

    @pages.post("/shelves")
    async def add_shelf(context: Authenticated, form: Form) -> Response:
        name = form.text("name")
        return await run_and_redirect(context, pages.prefix, lambda control: add(name), f"Added the shelf {name}")

A template extends the frame and fills its blocks ``title`` and ``main``. Everything that a template writes is escaped,
and scripts run from files only, since the server forbids inline ones::

    {% extends "base.html" %}
    {% from "macros.html" import heading, empty, field, csrf, time, count, job_link, pager with context %}
    {% block title %}Library{% endblock %}
    {% block main %}{{ heading("Shelves") }}…{% endblock %}

Each page authenticates its caller by a parameter ``context: Authenticated`` and does its work by ``context.run``, in
the name and with the rights of that caller. ``@pages.get(path, public=True)`` declares a page without sign-in, for
addresses that cannot be guessed; such a page gets no ``context`` and reads only what the application lets it read.
Forms are POSTs that carry ``{{ csrf(principal) }}``; the server refuses those that come from other sites."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from spinney.model.values import names
from spinney.web.api.json_routes import depends_on
from spinney.web.media_types import wants_part
from spinney.web.pages.forms import Form, FormFields, run_and_redirect, sentence
from spinney.web.pages.page_responses import NavItem, page, part, redirect, with_query
from spinney.web.request_context import Authenticated, RequestContext, require_context

__all__ = [
    "Authenticated",
    "Form",
    "FormFields",
    "NavItem",
    "Pages",
    "RequestContext",
    "redirect",
    "run_and_redirect",
    "sentence",
    "with_query",
]

GROUP = "spinney.pages"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[Response]])


class Pages:
    """The pages of one application.

    ``name``: the application's, as in its entry point. ``package``: the importable package that holds ``templates`` and
    ``static``. ``nav``: links in the server's navigation, with paths below ``prefix``."""

    def __init__(self, name: str, package: str, *, nav: Sequence[NavItem] = ()) -> None:
        self.name, self.package = names.name("application", name), package
        self.prefix = f"/apps/{name}"
        self.nav = tuple(replace(item, path=self.prefix + item.path) for item in nav)
        self.router = APIRouter(prefix=self.prefix, include_in_schema=False)

    def __repr__(self) -> str:
        return f"Pages({self.name!r}, {self.package!r})"

    def get(self, path: str, *, public: bool = False) -> Callable[[Endpoint], Endpoint]:
        """Declare a page at ``prefix + path``. ``public``: everybody who has the address may read it. Raises ValueError
        for a page that is not public and has no parameter ``context: Authenticated``."""
        return self._declare("GET", path, public)

    def post(self, path: str) -> Callable[[Endpoint], Endpoint]:
        """Declare what a form at ``prefix + path`` does. Raises ValueError as ``get`` does."""
        return self._declare("POST", path, public=False)

    def show(
        self,
        request: Request,
        context: RequestContext | None,
        template: str,
        *,
        live: str | None = None,
        topics: Sequence[str] = (),
        status: int = 200,
        **variables: object,
    ) -> Response:
        """Return a page made of one of the application's templates and these variables. ``context``: None on a public
        page. ``live``: the template of the part that the page's script fetches again, at the same address, when one of
        the ``topics`` has changed (``docs/server.md``)."""
        principal = None if context is None else context.principal
        if live is not None and wants_part(request):
            return part(request, principal, f"{self.name}/{live}", **variables)
        return page(
            request,
            principal,
            f"{self.name}/{template}",
            topics=topics,
            status=status,
            pages=self,
            **variables,
        )

    def _declare(self, method: str, path: str, public: bool) -> Callable[[Endpoint], Endpoint]:
        def declare(endpoint: Endpoint) -> Endpoint:
            self.router.add_api_route(path, endpoint, methods=[method], response_model=None)
            route = self.router.routes[-1]
            if not (public or (isinstance(route, APIRoute) and depends_on(route.dependant, require_context))):
                self.router.routes.pop()
                raise ValueError(
                    f"{self.prefix}{path} does not authenticate its caller; give it a parameter "
                    f"'context: Authenticated', or declare it public"
                )
            return endpoint

        return declare
