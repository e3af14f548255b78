"""The content of OGC services: one map of a WMS, or one feature of a WFS, really fetched.

A service may have valid capabilities and no data behind them. So the capabilities are fetched once more, and the first
layer or type that they name is requested: a map of 64 by 64 pixels, or a single feature."""

import time
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from xml.etree import ElementTree

from spinney.apps.monitor.checks.capabilities import (
    EXCEPTIONS,
    INVALID_XML,
    TEXT_MAX,
    capabilities_uri,
    document,
    local_name,
    parsed,
    text_of,
)
from spinney.apps.monitor.checks.fetch import Fetched, Unreachable, fetch, refuse_compressed
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks.findings import NOT_APPLICABLE, Finding, error, warning
from spinney.apps.monitor.tasks.modules import Context

NAME = "content"
DESCRIPTION = "A map of the first layer, or a feature of the first type, can be fetched"

_IMAGES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8"}
"""How files of these media types begin. The content decides, because servers send exceptions as images."""
_STANDARD = {"service", "version", "request", "acceptversions"}
"""Parameters that are replaced where the service's URI has them."""


def check(service: Service, context: Context) -> Finding:
    """Fetch one map or one feature. Whatever cannot be fetched is an error; capabilities that name nothing,
    and a type without any feature, are warnings. It is not applicable to services that are neither WMS nor
    WFS."""
    if service.type not in ("WMS", "WFS"):
        return NOT_APPLICABLE
    began_s = time.monotonic()
    try:
        root = document(fetch(capabilities_uri(service), context))
        # Two slow answers would else use up the time of the task, which would look like a fault of the task.
        left = replace(context, timeout_s=max(0.1, context.timeout_s - (time.monotonic() - began_s)))
        name = _first_name(root, "Layer" if service.type == "WMS" else "FeatureType")
        if name is None:
            return warning("no_layers", "The capabilities name nothing that could be fetched")
        version = root.get("version") or service.version
        if service.type == "WMS":
            return _map(fetch(_uri(service, _map_parameters(root, name, version)), left), name)
        return _feature(fetch(_uri(service, _feature_parameters(name, version)), left), name)
    except Unreachable as unreachable:
        return unreachable.finding


def _first_name(root: ElementTree.Element, kind: str) -> str | None:
    """Return the name of the first named element of this kind, in the order of the document. None: no element
    has a name. Layers that only group others have none, and cannot be requested."""
    names = ((element.findtext("{*}Name") or "").strip() for element in root.iterfind(f".//{{*}}{kind}"))
    return next(filter(None, names), None)


def _map_parameters(root: ElementTree.Element, name: str, version: str) -> dict[str, str]:
    # Longitude and latitude in this order, in all versions (OGC 06-042, 6.7.3.2, for CRS:84).
    system = {"crs": "CRS:84"} if version.startswith("1.3") else {"srs": "EPSG:4326"}
    return {
        "version": version,
        "request": "GetMap",
        "layers": name,
        "styles": "",
        "bbox": _extent(root),
        "width": "64",
        "height": "64",
        "format": "image/png",
        **system,
    }


def _extent(root: ElementTree.Element) -> str:
    """Return the first extent that the capabilities give in degrees, else the whole world."""
    corners = ("westBoundLongitude", "southBoundLatitude", "eastBoundLongitude", "northBoundLatitude")
    for box in root.iterfind(".//{*}EX_GeographicBoundingBox"):  # in version 1.3
        values = [(box.findtext(f"{{*}}{corner}") or "").strip() for corner in corners]
        if all(values):
            return ",".join(values)
    for box in root.iterfind(".//{*}LatLonBoundingBox"):
        return ",".join(box.get(corner, "0") for corner in ("minx", "miny", "maxx", "maxy"))
    return "-180,-90,180,90"


def _feature_parameters(name: str, version: str) -> dict[str, str]:
    """Return the parameters of a request for one feature. Version 2 of WFS has renamed two of them."""
    types, count = ("typenames", "count") if version.startswith("2") else ("typename", "maxfeatures")
    return {"version": version, "request": "GetFeature", types: name, count: "1"}


def _uri(service: Service, parameters: dict[str, str]) -> str:
    parts = urlsplit(service.uri)
    own = [(n, v) for n, v in parse_qsl(parts.query, keep_blank_values=True) if n.lower() not in _STANDARD]
    query = urlencode([*own, ("service", service.type), *parameters.items()])
    return urlunsplit(parts._replace(query=query, fragment=""))


def _map(fetched: Fetched, name: str) -> Finding:
    """Judge the answer to a request for a map by its first bytes: many servers send the status 200 with an
    exception report. Raises Unreachable for a compressed one."""
    if fetched.status >= 400:
        return error("http_status", f"The map of {name} fails with HTTP status code {fetched.status}")
    refuse_compressed(fetched)
    for media_type, beginning in _IMAGES.items():
        if fetched.body.startswith(beginning):
            return Finding(info=f"a map of {name}, {media_type}, {len(fetched.body):,} bytes")
    if fetched.media_type.startswith("image/"):
        kinds = ", ".join(_IMAGES)
        text = f"The map of {name} is sent as {fetched.media_type}, but begins as none of {kinds}: {_text(fetched)}"
    else:
        text = f"The map of {name} is no picture, but {_beginning(fetched)}"
    return error("no_map", text)


def _feature(fetched: Fetched, name: str) -> Finding:
    """Judge the answer to a request for a feature. The elements in which features stand have different names
    in GML 2, GML 3 and WFS 2."""
    root = document(fetched)
    if local_name(root) in EXCEPTIONS:
        return error("no_feature", f"The features of {name} cannot be fetched: {_beginning(fetched)}")
    if not any(
        local_name(element) in ("member", "featureMember", "featureMembers") for element in root.iter()
    ):
        return warning("no_feature", f"{name} has no feature")
    return Finding(info=f"a feature of {name}")


def _beginning(fetched: Fetched) -> str:
    """Return the media type of a response that was not expected, and what it says."""
    return f"{fetched.media_type or 'something'}: {_text(fetched)}"


def _text(fetched: Fetched) -> str:
    """Return what a response says: the text of an XML document, else its first characters."""
    try:
        return text_of(parsed(fetched.body))
    except INVALID_XML:
        return " ".join(fetched.body[:TEXT_MAX].decode("utf-8", "replace").split())
