"""Scripts, styles and icons: served from this server alone, under addresses that contain their digest, so
that browsers may keep them for ever.

A file that changes has another address, so no browser shows an old script with a new page. htmx comes out of
a package of the registry, of which only the file is used: ``django-htmx`` ships it pinned, and it is found by
the distribution's name without importing the package."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.model.errors import UsageError
from spinney.web.media_types import takes_gzip

PREFIX = "/static"
"""The path below which all static files are."""
_FOR_EVER = "public, max-age=31536000, immutable"
_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
"""The media types of the files that are served, by their suffixes; others are left out."""
_FROM_PACKAGES = {"htmx.js": ("django-htmx", "django_htmx/static/django_htmx/htmx-2.min.js")}
_LEAST_PACKED = 512
"""A file that is not longer is sent without compression."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """One file, as it is sent."""

    address: str
    """Its path on this server, with the digest of its content."""
    media_type: str
    content: bytes
    """The bytes of the file."""
    packed: bytes | None
    """The content in gzip; None: that is hardly shorter."""


class StaticFiles:
    """All static files, read once. ``packages``: the package of each application that brings some; its file
    ``x.css`` is named ``APPLICATION/x.css``. Raises UsageError where a package that brings a file of the
    server is not installed."""

    def __init__(self, packages: Mapping[str, str]) -> None:
        contents = {name: _from_package(name, *where) for name, where in _FROM_PACKAGES.items()}
        contents |= _in_folder("spinney.web.pages")
        for application, package in packages.items():
            contents |= {f"{application}/{name}": content for name, content in _in_folder(package).items()}
        self._by_name = {name: _made(name, content) for name, content in contents.items()}
        self._by_address = {static.address: static for static in self._by_name.values()}

    def address(self, name: str) -> str:
        """Return the path of the file of this name. Raises KeyError when there is none."""
        return self._by_name[name].address

    def at(self, address: str) -> Static | None:
        """Return the file at this address; None: there is none."""
        return self._by_address.get(address)


@router.api_route(PREFIX + "/{digest}/{name:path}", methods=["GET", "HEAD"])
async def static_file(request: Request, digest: str, name: str) -> Response:
    """Return a static file. Anybody may read it: it contains nothing of any user."""
    static = request.app.state.static.at(f"{PREFIX}/{digest}/{name}")
    if static is None:
        raise HTTPException(404)
    headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    content = static.content
    if static.packed is not None and takes_gzip(request):
        headers["Content-Encoding"], content = "gzip", static.packed
    return Response(content, headers=headers, media_type=static.media_type)


def _in_folder(package: str) -> dict[str, bytes]:
    """Return the static files of a package, by name; none if it has no such folder."""
    folder = files(package).joinpath("static")
    if not folder.is_dir():
        return {}
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if Path(entry.name).suffix in _KINDS}


def _from_package(name: str, package: str, path: str) -> bytes:
    """Return a file of an installed distribution. Raises UsageError when it is missing."""
    try:
        return Path(str(distribution(package).locate_file(path))).read_bytes()
    except (PackageNotFoundError, FileNotFoundError):
        raise UsageError(
            f"the package {package}, which brings {name}, is missing; install it with: pip install 'spinney[server]'"
        ) from None


def _made(name: str, content: bytes) -> Static:
    """Return a file as it is sent, with its address."""
    packed = gzip.compress(content, 9, mtime=0)
    return Static(
        address=f"{PREFIX}/{sha256(content).hexdigest()[:16]}/{name}",
        media_type=_KINDS[Path(name).suffix],
        content=content,
        packed=packed if len(content) > _LEAST_PACKED and len(packed) < len(content) else None,
    )
