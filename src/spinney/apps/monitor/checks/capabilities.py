"""Capabilities of OGC services: a valid document of the right service and version, with something in it.

A server may answer an error with the status 200; a document whose root is an exception report is an error here (OGC
Web Services Common 06-121r9, 8.4, and the ``ServiceExceptionReport`` of WMS).

The checks ``content`` and ``gdal`` use the functions of this module that make URIs and read documents, and the harvest
of a catalogue uses ``text_of``."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from xml.etree import ElementTree
from xml.parsers import expat

from spinney.apps.monitor.checks.fetch import Fetched, Unreachable, fetch, refuse_compressed
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks.findings import NOT_APPLICABLE, Finding, error, warning
from spinney.apps.monitor.tasks.modules import Context

NAME = "capabilities"
DESCRIPTION = "The capabilities are valid, of the right version, and name layers"

ROOTS = {
    "WMS": ("WMS_Capabilities", "WMT_MS_Capabilities"),
    "WFS": ("WFS_Capabilities",),
    "WMTS": ("Capabilities",),
    "WCS": ("Capabilities", "WCS_Capabilities"),
    "CSW": ("Capabilities",),
}
"""The local names that the root of the capabilities may have, by type of service and over all versions."""
LAYERS = {
    "WMS": ("Layer",),
    "WFS": ("FeatureType",),
    "WMTS": ("Layer",),
    "WCS": ("CoverageSummary", "CoverageOfferingBrief"),  # the latter in version 1.0
    "CSW": ("Operation",),
}
"""The elements of which a useful service has at least one."""
EXCEPTIONS = ("ServiceExceptionReport", "ExceptionReport")
"""The roots of exception reports: those of WMS, and of all other services."""
INVALID_XML = (ElementTree.ParseError, LookupError, ValueError)
"""What ElementTree raises for text that is no XML, and for an encoding that does not exist or that Expat lacks."""
TEXT_MAX = 300
"""The most characters of a service's own text that are quoted in a finding."""
_PROLOG_PART = 65_536
"""How many bytes of a document are searched for declarations at once."""


def check(service: Service, context: Context) -> Finding:
    """Fetch the capabilities and judge them, the gravest fault first: no answer, a document that is no XML,
    an exception report, another document (errors); another version than the record's, nothing in it
    (warnings). It is not applicable to types that have no capabilities."""
    if service.type not in ROOTS:
        return NOT_APPLICABLE
    try:
        fetched = fetch(capabilities_uri(service), context)
        root = document(fetched)
    except Unreachable as unreachable:
        return unreachable.finding
    name = local_name(root)
    if name in EXCEPTIONS:
        return error(
            "service_exception", f"The service answers with an exception: {text_of(root) or 'without a text'}"
        )
    if name not in ROOTS[service.type]:
        return error(
            "wrong_document", f"The service answers with a document {name!r}, no {service.type} capabilities"
        )
    version = root.get("version", "")
    if service.version and version != service.version:
        return warning(
            "wrong_version",
            f"The capabilities have version {version or 'none'}, and the record says {service.version}",
        )
    if not any(local_name(element) in LAYERS[service.type] for element in root.iter()):
        return warning("no_layers", f"The capabilities name no {LAYERS[service.type][0]}")
    return Finding(
        info=f"valid {service.type} Capabilities XML document version {version or service.version}"
    )


def capabilities_uri(service: Service) -> str:
    """Return the service's URI with the parameters of ``GetCapabilities``. Parameters that the URI already
    has are kept, and win over those that would be added, whatever the case of their names. The version is
    requested by ``acceptversions`` from WMTS and CSW, and by ``version`` from the others; it is left out
    where the record has none."""
    parts = urlsplit(service.uri)
    own = parse_qsl(parts.query, keep_blank_values=True)
    present = {name.lower() for name, _ in own}
    parameters = [("service", service.type), ("request", "GetCapabilities")]
    if service.version:
        parameters.append(
            ("acceptversions" if service.type in ("WMTS", "CSW") else "version", service.version)
        )
    added = [(name, value) for name, value in parameters if name not in present]
    return urlunsplit(parts._replace(query=urlencode([*own, *added]), fragment=""))


def document(fetched: Fetched) -> ElementTree.Element:
    """Return the root of an XML response. Raises Unreachable, with the finding, for a status from 400 on, for
    a body that is compressed or was not read to its end, and for invalid XML."""
    if fetched.status >= 400:
        raise Unreachable(error("http_status", f"Invalid HTTP status code {fetched.status}"))
    refuse_compressed(fetched)
    if not fetched.is_whole:
        raise Unreachable(error("too_large", f"The document is larger than {len(fetched.body):,} bytes"))
    try:
        return parsed(fetched.body)
    except INVALID_XML as problem:
        raise Unreachable(error("invalidxml", f"Invalid XML: {problem}")) from None


def parsed(body: bytes) -> ElementTree.Element:
    """Return the root of an XML document. Raises one of INVALID_XML, also for a document that declares an entity: Expat
    lets entities expand to a hundred times the size of the document, which is gigabytes."""
    prolog, ended = expat.ParserCreate(), False

    def entity(*_: object) -> None:
        raise ValueError("it declares an entity, which is refused")

    def root(*_: object) -> None:
        nonlocal ended
        ended = True

    prolog.EntityDeclHandler, prolog.StartElementHandler = entity, root
    for start in range(0, len(body), _PROLOG_PART):
        if ended:  # a document can declare entities only before its root
            break
        try:
            prolog.Parse(body[start : start + _PROLOG_PART], False)
        except expat.ExpatError:
            break  # the parser of the whole document says what is wrong
    return ElementTree.fromstring(body)  # noqa: S314 - no entity is expanded, and none is loaded from elsewhere


def local_name(element: ElementTree.Element) -> str:
    """Return the name of an element without its namespace; an empty text for a comment or processing
    instruction."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def text_of(root: ElementTree.Element) -> str:
    """Return the text of a document, on one line and cut for a finding; empty where it has none."""
    return " ".join("".join(root.itertext()).split())[:TEXT_MAX]
