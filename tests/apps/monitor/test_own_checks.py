"""The checks that come with Spinney, against a real web server on this machine."""

import gzip
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from spinney.apps.monitor import settings
from spinney.apps.monitor.checks import capabilities, content, fetch, gdal, http, uri
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.settings import Network
from spinney.apps.monitor.tasks import modules
from spinney.apps.monitor.tasks.findings import Finding
from spinney.apps.monitor.tasks.modules import Check, Context
from spinney.errors import UsageError

WMS = (
    '<?xml version="1.0"?><WMS_Capabilities version="1.3.0" xmlns="http://www.opengis.net/wms"><Service/>'
    "<Capability><Layer><Title>all</Title><Layer><Name>soil</Name></Layer></Layer></Capability></WMS_Capabilities>"
)
WFS = (
    '<wfs:WFS_Capabilities version="2.0.0" xmlns:wfs="http://www.opengis.net/wfs/2.0">'
    "<wfs:FeatureTypeList><wfs:FeatureType><wfs:Name>roads</wfs:Name></wfs:FeatureType></wfs:FeatureTypeList>"
    "</wfs:WFS_Capabilities>"
)
FEATURE = (
    '<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs/2.0"><wfs:member/></wfs:FeatureCollection>'
)
EXCEPTION = (
    '<ServiceExceptionReport version="1.3.0"><ServiceException>no such layer</ServiceException>'
    "</ServiceExceptionReport>"
)


def png() -> bytes:
    """A picture of one point."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", head)
        + part(b"IDAT", zlib.compress(b"\0\0"))
        + part(b"IEND", b"")
    )


class Handler(BaseHTTPRequestHandler):
    """Answers by the first part of the path."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        request = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}.get(
            "request", ""
        )
        kind = parts.path.split("/")[1]
        if kind == "moved":
            self._send(302, b"", location=f"http://{self.headers['host']}/fine")
        elif kind == "circle":
            self._send(302, b"", location="/circle")
        elif kind == "inside":
            self._send(302, b"", location="http://127.0.0.2:1/secret")
        elif kind == "missing":
            self._send(404, b"gone")
        elif kind == "exception" or (kind == "nomap" and request == "GetMap"):
            self._send(200, EXCEPTION.encode())
        elif kind == "html":
            self._send(200, b"<html><p>unclosed")
        elif kind == "bomb":
            entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
            self._send(200, f'<!DOCTYPE x [<!ENTITY e0 "boom">{entities}]><x>&e11;</x>'.encode())
        elif kind == "swollen":  # less than a hundredfold, which Expat lets pass
            doctype = f'<!DOCTYPE x [<!ENTITY e "{"x" * 280}">]>'
            self._send(200, f"{doctype}<WMS_Capabilities>{'&e;' * 1000}</WMS_Capabilities>".encode())
        elif kind == "doctype":  # as in version 1.1.1 of WMS
            doctype = '<!DOCTYPE x SYSTEM "http://127.0.0.2:1/x.dtd" [<!ELEMENT x EMPTY>]>'
            self._send(200, WMS.replace("<WMS_", f"{doctype}<WMS_", 1).encode())
        elif kind == "encoding":
            self._send(200, b'<?xml version="1.0" encoding="x-none"?><a/>')
        elif kind == "compressed" or (kind == "mapcompressed" and request == "GetMap"):
            self._send(200, gzip.compress(WMS.encode()), **{"content-encoding": "gzip"})
        elif kind == "nopng" and request == "GetMap":
            self._send(200, b"no such layer", **{"content-type": "image/png"})
        elif kind == "stalls":
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx")
            self.connection.recv(1)  # until the client goes
        elif kind == "wfs":
            self._send(200, (FEATURE if request == "GetFeature" else WFS).encode())
        elif kind == "slow":
            if request == "GetMap":
                self.connection.recv(1)  # until the client goes
            time.sleep(1)
            self._send(200, WMS.encode())
        elif kind in ("wms", "nomap", "nopng", "mapcompressed"):
            self._send(200, png() if request == "GetMap" else WMS.encode())
        else:
            self._send(200, b"fine")

    def _send(self, status: int, body: bytes, **headers: Any) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Its address, as in a URI."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def find(check: Check, uri_: str, *, private: tuple[str, ...] = ("127.0.0.1",), **fields: Any) -> Finding:
    made: dict[str, Any] = {"type": "WMS", "version": "1.3.0", "description": "Soil", **fields}
    service = Service(gid=1, eid=1, uuid="u", uri=uri_, **made)
    context = Context(timeout_s=20, data=Path("unused"), network=Network(private=private))
    return check(service, context)


@pytest.mark.parametrize(
    ("uri_", "fields", "status", "code"),
    [
        ("https://example.org/wms?service=WMS&version=1.3.0", {}, "ok", ""),
        ("https://[2001:db8::1]:8080/", {}, "ok", ""),
        ("htp://example.org", {}, "error", "invalid_uri"),
        ("http://exa mple.org", {}, "error", "invalid_uri"),
        ("http://-bad-.org", {}, "error", "invalid_uri"),
        ("http://h:99999/", {}, "error", "invalid_uri"),
        ("https://example.org/?service=WFS", {}, "warning", "incongruent_type"),
        ("https://example.org/?version=1.1.1", {}, "warning", "incongruent_version"),
        ("https://example.org/", {"description": ""}, "warning", "undefined_description"),
    ],
)
def test_the_record(uri_: str, fields: dict[str, str], status: str, code: str) -> None:
    finding = find(uri.check, uri_, **fields)
    assert (finding.status, finding.code) == (status, code)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/fine", "ok", ""),
        ("/missing", "error", "http_status"),
        ("/moved", "warning", "success_after_redirect"),
        ("/circle", "error", "http_redirect"),
        ("/inside", "error", "not_fetched"),
    ],
)
def test_status_and_redirects(server: str, path: str, status: str, code: str) -> None:
    finding = find(http.check, f"{server}{path}")
    assert (finding.status, finding.code) == (status, code)


def test_the_pause_before_a_request_does_not_make_an_answer_slow(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 1000.0 + sum(slept), sleep=slept.append)
    monkeypatch.setattr(fetch, "time", clock)
    monkeypatch.setattr(fetch, "_next_s", {server.removeprefix("http://"): 1012.0})
    network = Network(private=("127.0.0.1",), pause_s=3.0, slow_s=10.0)
    service = Service(gid=1, eid=1, uuid="u", uri=f"{server}/fine", type="HTTP", version="", description="d")
    finding = http.check(service, Context(timeout_s=30, data=Path("unused"), network=network))
    assert (slept, finding.status) == ([12.0], "ok")


def test_a_settings_file_may_be_missing_only_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"SPINNEY_STORE": f"sqlite:///{tmp_path}/spinney.db"}
    assert settings.load(environment).timeout_s == 30
    with pytest.raises(
        UsageError, match=r"monitor\.toml cannot be read.* \(SPINNEY_MONITOR names this file\)"
    ):
        settings.load(environment | {settings.VARIABLE: settings.FILE})
    assert settings.load(environment).timeout_s == 30


def test_pauses_that_use_up_the_time_of_a_check_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text("timeout_s = 30\n[network]\nhost_limit = 4\npause_s = 3.75\n")
    environment = {settings.VARIABLE: str(file), "SPINNEY_STORE": f"sqlite:///{tmp_path}/spinney.db"}
    assert settings.load(environment).network.pause_s == 3.75
    file.write_text("timeout_s = 29\n[network]\nhost_limit = 4\npause_s = 3.75\n")
    with pytest.raises(UsageError, match=r"pause_s times host_limit .* raise timeout_s"):
        settings.load(environment)


def test_a_private_address_is_not_asked_unless_it_is_named(server: str) -> None:
    finding = find(http.check, f"{server}/fine", private=())
    assert finding.code == "not_fetched"
    assert "'private' in [network]" in finding.info


@pytest.mark.parametrize(("uri_", "code"), [("http://127.0.0.1:1/", "unreachable"), ("ftp://127.0.0.1/", "")])
def test_what_does_not_answer(uri_: str, code: str) -> None:
    finding = find(http.check, uri_)
    assert finding.code == code


def test_a_scheme_that_is_not_fetched_is_an_error_of_the_service() -> None:
    finding = find(capabilities.check, "ftp://127.0.0.1/wms")
    assert (finding.code, finding.info[:32]) == ("not_fetched", "127.0.0.1 is not fetched: Reques")


def test_a_body_that_stalls_is_an_answer_out_of_time(server: str) -> None:
    service = Service(gid=1, eid=1, uuid="u", uri=f"{server}/stalls", type="WMS", version="", description="d")
    context = Context(timeout_s=1, data=Path("unused"), network=Network(private=("127.0.0.1",)))
    assert http.check(service, context).code == "timeout"


@pytest.mark.parametrize(
    ("path", "fields", "status", "code"),
    [
        ("/wms", {}, "ok", ""),
        ("/wfs", {"type": "WFS", "version": "2.0.0"}, "ok", ""),
        ("/wms", {"type": "WFS"}, "error", "wrong_document"),
        ("/wms", {"version": "1.1.1"}, "warning", "wrong_version"),
        ("/exception", {}, "error", "service_exception"),
        ("/html", {}, "error", "invalidxml"),
        ("/bomb", {}, "error", "invalidxml"),
        ("/swollen", {}, "error", "invalidxml"),
        ("/doctype", {}, "ok", ""),
        ("/encoding", {}, "error", "invalidxml"),
        ("/compressed", {}, "error", "compressed"),
        ("/missing", {}, "error", "http_status"),
        ("/fine", {"type": "HTTP"}, "not_applicable", ""),
    ],
)
def test_capabilities(server: str, path: str, fields: dict[str, str], status: str, code: str) -> None:
    finding = find(capabilities.check, f"{server}{path}?x=1", **fields)
    assert (finding.status, finding.code) == (status, code)


@pytest.mark.parametrize(
    ("path", "fields", "status", "says"),
    [
        ("/wms", {}, "ok", "a map of soil, image/png"),
        ("/nomap", {}, "error", "no such layer"),
        ("/wfs", {"type": "WFS", "version": "2.0.0"}, "ok", "a feature of roads"),
        ("/exception", {}, "warning", "nothing that could be fetched"),
        ("/mapcompressed", {}, "error", "is compressed"),
        (
            "/nopng",
            {},
            "error",
            "is sent as image/png, but begins as none of image/png, image/jpeg, image/gif: no",
        ),
    ],
)
def test_content(server: str, path: str, fields: dict[str, str], status: str, says: str) -> None:
    finding = find(content.check, f"{server}{path}", **fields)
    assert finding.status == status
    assert says in finding.info


def test_a_service_that_is_slow_twice_is_an_answer_out_of_time_and_no_fault_of_the_task(server: str) -> None:
    service = Service(gid=1, eid=1, uuid="u", uri=f"{server}/slow", type="WMS", version="", description="d")
    context = Context(timeout_s=3, data=Path("unused"), network=Network(private=("127.0.0.1",)))

    finding = modules.run(content.check, service, context)

    assert finding.code == "timeout"
    assert "did not answer in time" in finding.info


def test_gdal_that_hangs_is_ended_within_the_time_of_the_task(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "gdalinfo"
    program.write_text("#!/bin/sh\nexec /bin/sleep 20\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    service = Service(gid=1, eid=1, uuid="u", uri=f"{server}/wms", type="WMS", version="", description="d")
    context = Context(timeout_s=2, data=tmp_path, network=Network(private=("127.0.0.1",)))

    finding = modules.run(gdal.check, service, context)

    assert finding.code == "gdal_error"
    assert "did not end within" in finding.info
