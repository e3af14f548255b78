"""Harvesting a catalogue: the service records of a CSW 2.0.2 server, as rows of an import.

The monitor itself fetches the pages of records, by the rules of checks (``checks.fetch``): OWSLib, which would reach
any address, only reads them. A record is one service, and its ``fileIdentifier`` the service's UUID.

A record may be wrong in any way, since the catalogue is written by others: it becomes a ``WrongRow``, which keeps its
service from being retired, and the harvest goes on. A page that cannot be fetched or read ends the harvest with a
UsageError before anything is written, because an import that has seen only a part would retire the rest."""

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from spinney.apps.monitor import settings
from spinney.apps.monitor.checks.capabilities import text_of
from spinney.apps.monitor.checks.fetch import Unreachable, fetch, refuse_compressed
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import imports
from spinney.apps.monitor.inventory.imports import Imported, Row, WrongRow
from spinney.apps.monitor.tasks.modules import Context
from spinney.errors import UsageError

PAGE = 50
"""How many records one request asks for."""
RECORDS_MAX = 100_000
"""A catalogue that counts more records is refused: all rows of a harvest are in memory before they are
written."""
_CSW = "{http://www.opengis.net/cat/csw/2.0.2}"
_REQUEST = """<?xml version="1.0" encoding="UTF-8"?>
<csw:GetRecords xmlns:csw="http://www.opengis.net/cat/csw/2.0.2" xmlns:ogc="http://www.opengis.net/ogc" service="CSW"
  version="2.0.2" resultType="results" startPosition="{start}" maxRecords="{page}" outputFormat="application/xml"
  outputSchema="http://www.isotc211.org/2005/gmd"><csw:Query typeNames="csw:Record">
  <csw:ElementSetName>full</csw:ElementSetName><csw:Constraint version="1.1.0"><ogc:Filter><ogc:PropertyIsEqualTo>
  <ogc:PropertyName>dc:type</ogc:PropertyName><ogc:Literal>service</ogc:Literal>
  </ogc:PropertyIsEqualTo></ogc:Filter></csw:Constraint></csw:Query></csw:GetRecords>"""
"""A GetRecords request (OGC 07-006r1, 10.8) for ISO 19139 records whose type is ``service``. Positions begin
at 1."""
_URL = re.compile(r"https?://[^\s/?#@]+([/?][^\s#]*)?")
"""The form of a catalogue's URL. One with a user or password is refused, because the URL is stored with each
service."""
_TYPE = re.compile(r"(?<![A-Z])(WMTS|WMS|WFS|WCS|CSW|WPS|SOS)(?![A-Z])", re.IGNORECASE)
"""An OGC service's type as a word within a text, such as ``OGC:WMS``."""
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")


def harvest(url: str) -> Imported:
    """Import the services of a catalogue, retire those of it that it no longer has, and return how many were
    added, changed, retired and wrong. A catalogue without any service retires nothing. Raises UsageError
    where it cannot be read to its end; then nothing is changed."""
    return imports.run(database(), records(url), catalogue=_name(url))


def records(url: str) -> Iterator[Row | WrongRow]:
    """Yield the service records of a catalogue in its order, each identifier once. One page of records is in
    memory at a time.

    Raises UsageError when a page cannot be read, when the catalogue counts more than ``RECORDS_MAX`` records,
    and when a page is empty before the number that the catalogue counts: it was changed in between, or limits
    what it gives out."""
    start, matched, identifiers = 1, 1, set()
    while start <= matched:
        results = _results(url, start)
        count = results.get("numberOfRecordsMatched", "")
        if not count.isdecimal() or int(count) > RECORDS_MAX:
            raise UsageError(f"{url} counts {count!r} services; at most {RECORDS_MAX:,} can be harvested")
        matched = int(count)
        if start <= matched and not len(results):
            raise UsageError(f"{url} ended at record {start - 1:,} of {matched:,}; harvest it again later")
        for element in results:
            row, identifier = _row(element)
            if identifier not in identifiers:  # records move to another page when the catalogue is written to
                identifiers.add(identifier)
                yield row
        start += len(results)


def _name(url: str) -> str:
    """Return the name under which services of a catalogue are kept: its URL without the scheme."""
    if not _URL.fullmatch(url):
        raise UsageError(
            "a catalogue needs a URL with http:// or https://, a host, no password and no fragment"
        )
    return url.partition("://")[2]


def _results(url: str, start: int) -> Any:
    """Return the ``SearchResults`` of one page, an element of lxml."""
    try:
        from owslib.etree import etree
    except ImportError:
        raise UsageError("harvesting needs OWSLib; install it with: pip install 'spinney[monitor]'") from None
    config = settings.load()
    context = Context(timeout_s=config.timeout_s, data=config.data, network=config.network)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        fetched = fetch(url, context, xml=_REQUEST.format(start=start, page=PAGE).encode())
        refuse_compressed(fetched)
        root = etree.fromstring(fetched.body, parser)
    except Unreachable as unreachable:
        problem = unreachable.finding.info
    except etree.XMLSyntaxError as error:
        problem = f"status {fetched.status} with {len(fetched.body):,} bytes of invalid XML: {error}"
    else:
        results = root.find(f"{_CSW}SearchResults")
        if root.getroottree().docinfo.internalDTD is not None:
            problem = "it declares a document type, which is refused"
        elif results is None:
            problem = f"status {fetched.status} with no records of CSW 2.0.2, but {text_of(root)!r}"
        else:
            return results
    raise UsageError(f"the catalogue cannot be read: {problem}")


def _row(element: Any) -> tuple[Row | WrongRow, str]:
    """Return a record as a row of an import, or what is wrong with it, and its identifier (empty where it has
    none)."""
    from owslib.iso import MD_Metadata

    identifier = (element.findtext("{*}fileIdentifier/{*}CharacterString") or "").strip()
    place = f"record {identifier!r}"
    try:
        return imports.parse(place, _fields(MD_Metadata(element), identifier)), identifier
    except ValueError as problem:
        reason = str(problem)
    except Exception as problem:  # noqa: BLE001 - what others write may fail in any way
        reason = f"it cannot be read: {type(problem).__name__}: {problem}"
    return WrongRow(sentence=f"{place}: {reason}", uuid=_uuid(identifier)), identifier


def _fields(record: Any, identifier: str) -> Mapping[str, str]:
    """Return the columns of an import from a record. The type is searched in the fields that name one, then
    in the URL; a service without a known type is ``HTTP``. The version is taken from the protocol only where
    that names the type, because other numbers stand there, too. Texts are cut to what the tables take. Raises
    ValueError for a record that is no service."""
    from owslib.iso import CI_ResponsibleParty

    if not identifier:
        raise ValueError("it has no fileIdentifier")
    service = next((part for part in record.identification if part.identtype == "service"), None)
    if service is None:
        raise ValueError("it describes no service")
    url, protocol = _resource(record, service)
    kind, version = getattr(service, "type", "") or "", getattr(service, "version", "") or ""
    parts = urlsplit(url)
    if url and parts.scheme not in ("http", "https", "ftp"):  # a folder or a database is no service
        raise ValueError(f"the URI {url[:80]!r} must begin with http://, https:// or ftp://")
    typed = _TYPE.search(f"{kind} {protocol} {version} {parts.query} {parts.path}")
    versioned = _VERSION.search(f"{version} {protocol if _TYPE.search(protocol) else ''}")
    parties = [party for party in (*service.contact, *record.contact) if party.organization]
    owner = parties[0] if parties else CI_ResponsibleParty()
    language = record.languagecode or record.language or ""
    fields = {
        "uuid": _uuid(identifier),
        "type": typed[0] if typed else "HTTP",
        "version": versioned[0] if versioned else "",
        "uri": url,
        "description": service.title,
        "entity": owner.organization,
        "contact": owner.name,
        "email": owner.email,
        "language": language if imports.LANGUAGE.fullmatch(language) else "",
    }
    return {name: (text or "")[: imports.TEXT_MAX] for name, text in fields.items()}


def _resource(record: Any, service: Any) -> tuple[str, str]:
    """Return where the service is, and its protocol: that of its capabilities, else one with a protocol of OGC, else
    any."""
    operations = getattr(service, "operations", ())
    capabilities = [p for o in operations if o["name"] == "GetCapabilities" for p in o["connectpoint"]]
    online = record.distribution.online if record.distribution else []
    typed = [resource for resource in online if _TYPE.search(resource.protocol or "")]
    resources = (*capabilities, *typed, *online)
    return next(((r.url, r.protocol or "") for r in resources if r.url), ("", ""))


def _uuid(identifier: str) -> str:
    """Return an identifier as a UUID. One that is not a UUID gets the UUID that is derived from it (RFC 9562, version
    5), so that each harvest gives it the same."""
    try:
        return str(uuid.UUID(identifier))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, identifier))
