"""MapServer on 127.0.0.1 for the demo: FastCGI processes with data made by GDAL, behind a small HTTP server."""

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from spinney.errors import UsageError

PACKAGES = Path(sys.prefix) / "mapserver"
"""Where ``make`` unpacks Debian's packages of MapServer and GDAL."""
MAPS = ("soil", "relief", "closed", "lost", "harbour", "ferries")
"""The mapfiles, each with one layer of its name: ``relief`` a raster, the others features."""
FAULTS = {"closed": ('"*"', '""'), "lost": ("squares.", "circles."), "broken": ("LAYER", "LAYR")}
"""Replacements in a mapfile: its services are not enabled, its data is missing, or MapServer cannot read it."""
_BEGIN, _END, _PARAMETERS, _STDIN, _STDOUT = 1, 3, 4, 5, 6
"""Types of FastCGI records (FastCGI specification 1.0, 8)."""
_VECTOR = (
    'POLYGON CONNECTIONTYPE OGR CONNECTION "squares.gpkg" DATA "squares" CLASS STYLE COLOR 90 140 60 END END'
)
_MAP = """MAP NAME "{name}"
  EXTENT -9 38 -7 40
  PROJECTION "init=epsg:4326" END
  WEB METADATA "ows_enable_request" "*" "ows_title" "{name}" "ows_srs" "EPSG:4326 CRS:84"
    "ows_onlineresource" "{url}/ows/{name}" END END
  LAYER NAME "{name}" TYPE {layer}
    PROJECTION "init=epsg:4326" END
    METADATA "gml_featureid" "id" "gml_include_items" "all" END
  END
END
"""
_GDAL = (
    "ogr2ogr -f GPKG -a_srs EPSG:4326 -oo GEOM_POSSIBLE_NAMES=WKT squares.gpkg squares.csv",
    "gdal_rasterize -q -burn 200 -ot Byte -te -9 38 -7 40 -ts 64 64 squares.gpkg squares.tif",
)


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run MapServer with its files in a folder, and yield its URL: the services of a mapfile are at
    ``/ows/NAME``, and nothing else exists. Two processes serve requests in turn from one listening socket,
    which they inherit as their stdin.

    Raises UsageError where MapServer was not unpacked, or GDAL cannot make the data."""
    if not (PACKAGES / "usr/bin/mapserv").exists():
        raise UsageError("there is no MapServer here; 'make demo-monitor' gets it from Debian's packages")
    (folder / "squares.csv").write_text('id,WKT\n1,"POLYGON((-9 38,-8 38,-8 39,-9 39,-9 38))"\n')
    for command in _GDAL:
        if _start(folder, *command.split()).wait():
            raise UsageError(f"'{command}' failed in {folder}")
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
        web = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), _handler(listener.getsockname())))
        url = f"http://127.0.0.1:{web.server_port}"
        for name in MAPS:
            write_map(folder, name, url, fault=name)
        maps = "\n".join(f'"{name}" "{folder}/{name}.map"' for name in MAPS)
        (folder / "mapserver.conf").write_text(f"CONFIG\nMAPS\n{maps}\nEND\nEND\n")
        for _ in range(2):
            process = _start(folder, "mapserv", stdin=listener.fileno())
            stack.callback(process.wait)
            stack.callback(process.kill)
        threading.Thread(target=web.serve_forever, args=(0.05,)).start()
        stack.callback(web.shutdown)
        yield url


def write_map(folder: Path, name: str, url: str, *, fault: str = "") -> None:
    """Write a mapfile as it should be, or with one of ``FAULTS``. MapServer reads it anew for each request,
    so that a fault can be made and repaired while it runs. A ``fault`` that is no key of ``FAULTS`` changes
    nothing."""
    layer = 'RASTER DATA "squares.tif"' if name == "relief" else _VECTOR
    text = _MAP.format(name=name, url=url, layer=layer)
    (folder / f"{name}.map").write_text(text.replace(*FAULTS.get(fault, ("", ""))))


def environment() -> dict[str, str]:
    """Return the variables with which the unpacked programs find their libraries and data."""
    libraries = sorted({str(file.parent) for file in PACKAGES.glob("usr/lib/**/*.so.*")})
    variables = {
        "PATH": f"{PACKAGES}/usr/bin:{os.environ.get('PATH', '')}",
        "LD_LIBRARY_PATH": ":".join(libraries),
        "MAPSERVER_CONFIG_FILE": "mapserver.conf",
    }
    for name, path in (("PROJ_LIB", PACKAGES / "usr/share/proj"), ("GDAL_DATA", PACKAGES / "usr/share/gdal")):
        variables |= {name: str(path)} if path.exists() else {}
    return variables


def _start(folder: Path, program: str, *options: str, stdin: int | None = None) -> "subprocess.Popen[bytes]":
    """Start an unpacked program where it finds its libraries and tables."""
    command = [f"{PACKAGES}/usr/bin/{program}", *options]
    return subprocess.Popen(command, cwd=folder, stdin=stdin, env=os.environ | environment())


def _handler(mapserver: tuple[str, int]) -> type[BaseHTTPRequestHandler]:
    """Return the class of a small HTTP server that hands GET requests on to MapServer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path.startswith("/ows/"):
                # A response by CGI (RFC 3875, 6) begins with fields and lacks the line with the status.
                response = _ask(mapserver, f"map={path.removeprefix('/ows/')}&{query}")
                self.wfile.write(b"HTTP/1.0 200 OK\r\n" + response)
            else:
                self.send_error(404)

        def log_message(self, *args: Any) -> None:
            """Log nothing, so that the demo's output stays readable."""

    return Handler


def _ask(mapserver: tuple[str, int], query: str) -> bytes:
    """Return the response of a FastCGI process to GET: fields, an empty line and the body. One connection has
    one request; the records are those of the FastCGI specification 1.0, 3.3 and 5."""
    pairs = b""
    for name, value in ((b"REQUEST_METHOD", b"GET"), (b"QUERY_STRING", query.encode())):
        pairs += struct.pack(">II", len(name) | 1 << 31, len(value) | 1 << 31) + name + value
    begin = struct.pack(">HB5x", 1, 0)  # as a responder, and the connection is closed afterwards
    response = b""
    with socket.create_connection(mapserver) as connection, connection.makefile("rb") as stream:
        for kind, data in ((_BEGIN, begin), (_PARAMETERS, pairs), (_PARAMETERS, b""), (_STDIN, b"")):
            connection.sendall(struct.pack(">BBHHBx", 1, kind, 1, len(data), 0) + data)
        while header := stream.read(8):
            _, kind, _, length, padding = struct.unpack(">BBHHBx", header)
            data = stream.read(length + padding)[:length]
            response += data if kind == _STDOUT else b""
            if kind == _END:
                break
    return response
