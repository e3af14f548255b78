"""Harvests of a catalogue: answers that pycsw 2.6.2 gave to the monitor's own requests, from an HTTP server here.

They were recorded with pages of two records from an SQLite repository of six services and a dataset, before (``first``)
and after (``second``) one service was removed and one was moved; ``exception`` is its answer to an unknown output
schema. pycsw itself is no dependency of the tests: with numpy, pyproj, Shapely and its own OWSLib it takes 130 MB."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from spinney.apps.monitor import catalogue, upkeep
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import entities, services
from spinney.errors import UsageError
from spinney.testing import StageHarness

from .monitor import Monitor, service

pytestmark = pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
ANSWERS = Path(__file__).parent / "catalogue"
UUID = "0a5c1b1e-0000-4000-8000-00000000000"
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


@dataclass
class Catalogue:
    """What it answers, and what it was asked."""

    port: int = 0
    state: str = "first"
    body: bytes | None = None
    """An answer in place of the recorded ones."""
    requests: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/csw"

    def answer(self, request: bytes) -> bytes:
        attributes = {str(name): str(value) for name, value in etree.fromstring(request).items()}
        self.requests.append(attributes)
        if self.body is not None:
            return self.body
        return (ANSWERS / f"{self.state}-{attributes['startPosition']}.xml").read_bytes()


@pytest.fixture
def server(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    """A catalogue that the monitor may reach."""
    state = Catalogue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = state.answer(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    state.port = listening.server_port
    with (monitor.place / "monitor.toml").open("a") as file:
        file.write('[network]\nprivate = ["127.0.0.1"]\n')
    yield state
    listening.shutdown()
    listening.server_close()


def present() -> dict[str, tuple[str, str, str, str]]:
    return {s.uuid: (s.type, s.version, s.uri, s.entity) for s in services.all_present(database())}


def test_recorded_service_records_become_services_and_entities_page_by_page(
    server: Catalogue, monitor: Monitor
) -> None:
    result = monitor.shell.call("monitor", "harvest", server.url)

    assert result.stdout == "5 added, 0 changed, 0 as before, 0 retired, 1 wrong\n"
    assert result.stderr == f"record '{UUID}5': uri is missing\n"
    assert [r["startPosition"] for r in server.requests] == ["1", "3", "5"]
    assert {r["maxRecords"] for r in server.requests} == {str(catalogue.PAGE)}
    harvested = present()
    assert list(harvested.values()) == [
        (
            "WMS",
            "1.3.0",
            "https://mar.example.org/wms?map=1&service=WMS&request=GetCapabilities",
            "Instituto do Mar",
        ),
        ("WFS", "2.0.0", "https://mar.example.org/wfs", "Instituto do Mar"),
        ("WMTS", "1.0.0", "https://mar.example.org/wmts", "Instituto do Mar"),
        ("HTTP", "", "https://ash.example.org/streets", "Town of Ash"),
        ("WFS", "2.0.0", "https://ash.example.org/parcels", "Town of Ash"),
    ]
    assert [number in harvested for number in (f"{UUID}1", f"{UUID}2", f"{UUID}5")] == [True, True, False]
    owners = {e.description: (e.contact, e.email, e.language) for e in entities.query(database())}
    assert owners == {
        "Instituto do Mar": ("Ana Lopes", "ana@mar.example.org", "por"),
        "Town of Ash": ("Bo Ash", "bo@ash.example.org", "eng"),
    }
    assert services.all_present(database())[0].description == "Cartas náuticas"


def test_what_left_the_catalogue_is_retired_but_nothing_that_a_file_or_another_catalogue_has(
    server: Catalogue, monitor: Monitor
) -> None:
    of_file = service(1, uuid=f"{UUID}4", uri="https://ash.example.org/own", email="own@example.org")
    monitor.import_([of_file, service(2)])
    catalogue.harvest(server.url)
    other = catalogue.harvest(f"{server.url}?another")
    server.state = "second"
    again = catalogue.harvest(server.url)

    assert (other.added, other.same) == (0, 5)
    assert (again.added, again.changed, again.same, again.retired) == (0, 1, 3, 1)
    assert f"{UUID}2" not in present()
    assert present()[f"{UUID}6"][2] == "https://ash.example.org/parcels2"
    assert present()[f"{UUID}4"] == ("WMS", "1.3.0", "https://ash.example.org/own", "Sea Institute")
    server.state = "first"
    back = catalogue.harvest(server.url)
    assert (back.added, back.changed, back.same) == (0, 2, 3)
    assert monitor.import_([of_file]).endswith("0 added, 0 changed, 1 as before, 1 retired, 0 wrong\n")
    assert len(present()) == 5


def test_a_record_that_has_become_wrong_does_not_retire_its_service(
    server: Catalogue, monitor: Monitor
) -> None:
    catalogue.harvest(server.url)
    broken = (ANSWERS / "second-5.xml").read_bytes().replace(b"https://ash.example.org/parcels2", b"nowhere")
    first = broken.replace(b'numberOfRecordsMatched="5"', b'numberOfRecordsMatched="1"')
    server.body = first
    done = catalogue.harvest(server.url)

    assert (done.retired, len(done.wrong)) == (0, 1)
    assert done.wrong[0].startswith(f"record '{UUID}6': the URI 'nowhere' must begin with")


def test_records_of_every_kind_are_told_apart_and_none_ends_the_harvest(
    server: Catalogue, monitor: Monitor
) -> None:
    answer = (ANSWERS / "first-1.xml").read_bytes().replace(b'Matched="6"', b'Matched="2"')
    no_identifier = answer.replace(f"{UUID}1".encode(), b" ")
    server.body = no_identifier.replace(b"srv:SV_ServiceIdentification", b"srv:Nothing")
    done = catalogue.harvest(server.url)

    assert done.added == 0
    assert done.wrong == [
        "record '': it has no fileIdentifier",
        f"record '{UUID}2': it describes no service",
    ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ((ANSWERS / "exception.xml").read_bytes(), "Invalid outputSchema parameter value"),
        (b"<html><p>unclosed", "invalid XML"),
        (b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', "which is refused"),
        (f'<!DOCTYPE x [<!ENTITY e0 "b">{ENTITIES}]><x>&e11;</x>'.encode(), "invalid XML|which is refused"),
        (
            (ANSWERS / "first-1.xml")
            .read_bytes()
            .replace(b"<csw:SearchResults", b"<csw:Nothing")
            .replace(b"</csw:SearchResults", b"</csw:Nothing"),
            "no records of CSW 2.0.2",
        ),
    ],
)
def test_what_is_no_catalogue_changes_nothing(server: Catalogue, body: bytes, problem: str) -> None:
    catalogue.harvest(server.url)
    server.body = body
    with pytest.raises(UsageError, match=problem):
        catalogue.harvest(server.url)
    assert len(present()) == 5


def test_a_catalogue_that_ends_early_changes_nothing(server: Catalogue, monitor: Monitor) -> None:
    empty = (
        b'<csw:GetRecordsResponse xmlns:csw="http://www.opengis.net/cat/csw/2.0.2">'
        b'<csw:SearchResults numberOfRecordsMatched="9"/></csw:GetRecordsResponse>'
    )
    server.body = empty
    with pytest.raises(UsageError, match="ended at record 0 of 9; harvest it again later"):
        catalogue.harvest(server.url)
    server.body = empty.replace(b' numberOfRecordsMatched="9"', b"")
    with pytest.raises(UsageError, match="counts '' services"):
        catalogue.harvest(server.url)
    server.body = empty.replace(b'"9"', b'"0"')
    assert catalogue.harvest(server.url).retired == 0


def test_private_addresses_and_passwords_are_refused(server: Catalogue, monitor: Monitor) -> None:
    (monitor.place / "monitor.toml").write_text("timeout_s = 5\n")
    with pytest.raises(UsageError, match="name the host as 'private'"):
        catalogue.harvest(server.url)
    for wrong in (
        "https://me:secret@example.org/csw",
        "file:///etc/passwd",
        "http:///csw",
        "https://h /csw",
        "http://[a@b",
    ):
        with pytest.raises(UsageError, match="no password and no fragment"):
            catalogue.harvest(wrong)
    assert server.requests == []


def test_a_harvest_is_a_job_that_schedules_can_start(server: Catalogue, monitor: Monitor) -> None:
    options = ("--internal", "--cron", "0 5 * * *", "--param", f"url={server.url}")
    monitor.shell.ok("schedule", "add", "catalogue", "monitor.harvest", *options)
    ran = StageHarness().run(upkeep.harvest, url=server.url)

    assert ran.value == {"added": 5, "changed": 0, "same": 0, "retired": 0, "wrong": 1}
