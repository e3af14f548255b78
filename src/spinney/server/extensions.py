"""The routes and pages that installed packages add to a server, by their entry points.

One that breaks the rules of ``spinney.routes`` or ``spinney.pages`` is left out as a whole, and so is one that cannot
be imported; the log says why. So no package can bypass the server's access checks, or keep the server from starting."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import TypeVar

from fastapi import APIRouter, FastAPI

from spinney import pages, routes
from spinney.pages import Pages
from spinney.web.api.json_routes import PREFIX, ApiRoute

T = TypeVar("T")

log = logging.getLogger(__name__)


@cache
def installed(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of this group of the installed packages, by name. They are read once for each
    process, because that looks through all packages."""
    return sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def add_routes(app: FastAPI) -> None:
    """Add the routes of all installed packages to the API, behind those of the server, so that none can take
    the place of one."""
    for of_package in _loaded(routes.GROUP, _routes):
        app.router.routes.extend(of_package)


def page_sets() -> Sequence[Pages]:
    """Return the pages of all installed packages that keep the rules, in the order of their entry points'
    names."""
    return list(_loaded(pages.GROUP, _pages))


def _loaded(group: str, load: Callable[[EntryPoint], T]) -> Iterator[T]:
    """Yield what ``load`` makes of each entry point. One for which it raises is left out, and the log says
    why."""
    for entry in installed(group):
        try:
            yield load(entry)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a package may fail in any way
            log.warning(
                "the entry point %r of %s (%s) is left out: %s", entry.name, group, entry.value, error
            )


def _routes(entry: EntryPoint) -> list[ApiRoute]:
    """Return the routes of a package. Raises TypeError and ValueError for an entry point that breaks the
    rules, and whatever the package raises when it is imported."""
    router = entry.load()
    if not isinstance(router, APIRouter):
        raise TypeError(f"it is no fastapi.APIRouter, but a {type(router).__name__}")
    return [_checked(entry.name, route) for route in router.routes]


def _checked(name: str, route: object) -> ApiRoute:
    """Return a route of a package, if it is below the package's address and authenticates its caller. Raises TypeError,
    ValueError."""
    if not isinstance(route, ApiRoute):
        raise TypeError(f"{route!r} is not of a router that spinney.routes.routes made")
    below = f"{PREFIX}{routes.BELOW}/{name}/"
    if not route.path.startswith(below):
        raise ValueError(f"{route.path} does not lie below {below}")
    if not route.asks:
        raise ValueError(
            f"{route.path} does not authenticate its caller; give it a parameter 'context: Authenticated'"
        )
    return route


def _pages(entry: EntryPoint) -> Pages:
    """Return the pages of a package, if their name is that of the entry point and their templates are there. Raises
    TypeError, ValueError."""
    page_set = entry.load()
    if not isinstance(page_set, Pages):
        raise TypeError(f"it is no spinney.pages.Pages, but a {type(page_set).__name__}")
    if page_set.name != entry.name:
        raise ValueError(f"its pages are those of {page_set.name!r}; give both the same name")
    if not files(page_set.package).joinpath("templates").is_dir():
        raise ValueError(f"the package {page_set.package} has no folder 'templates'")
    return page_set
