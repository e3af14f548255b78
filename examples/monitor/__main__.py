"""The steps of the demo: serve, import, check, break and repair, check again, mail."""

import csv
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from examples.demo_tools import (
    mail_server,
    make_folder,
    read_mails,
    run_command,
    run_demo,
    running,
    show_mail,
    wait_for,
)
from examples.monitor import map_server
from spinney.apps.monitor import settings
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import results

OUT = Path("demo-monitor-out").absolute()
_LOG = OUT / "node.log"
# The demo serves everything on loopback, which checks may reach only because it is named here.
_SETTINGS = """workers = 16
network = {{ private = ["127.0.0.1"], host_limit = 16 }}
socket = {{ listen = "" }}
mail = {{ host = "127.0.0.1", port = {port}, security = "none", sender = "Monitor <monitor@example.org>" }}
"""


class Kind(NamedTuple):
    """Services that are alike, and the codes that the first and the second check should find. An empty code:
    all is well."""

    name: str
    number: int
    """How many services of this kind there are."""
    map: str
    """The path of their mapfile on the server; an empty text: a port on which nothing listens."""
    codes: tuple[str, str]
    versions: tuple[str, ...] = ("WMS 1.3.0", "WFS 2.0.0", "WMS 1.1.1", "WFS 1.1.0")
    """Types and versions, taken in turn."""


KINDS = (
    Kind("features", 156, "ows/soil", ("", "")),
    Kind("a raster", 20, "ows/relief", ("", ""), ("WMS 1.3.0", "WMS 1.1.1")),
    Kind("broken in between", 2, "ows/harbour", ("", "wrong_document")),
    Kind("repaired in between", 2, "ows/ferries", ("wrong_document", "")),
    Kind("not the version of the record", 4, "ows/soil", ("wrong_version",) * 2, ("WMS 1.4.0",)),
    Kind("status 404", 4, "gone", ("http_status",) * 2),
    Kind("an exception with status 200", 4, "ows/closed", ("service_exception",) * 2),
    Kind("HTML in place of XML", 4, "ows/unknown", ("wrong_document",) * 2),
    Kind("capabilities without a map", 2, "ows/lost", ("no_map",) * 2, ("WMS 1.3.0",)),
    Kind("a refused connection", 2, "", ("unreachable",) * 2),
)


def _run() -> list[str]:
    """Run the steps, and return what is not as it should be."""
    make_folder(OUT, settings.FILE, settings.VARIABLE)
    (OUT / "maps").mkdir()
    with ExitStack() as stack:
        port = stack.enter_context(mail_server(OUT / "mails"))
        (OUT / settings.FILE).write_text(_SETTINGS.format(port=port))
        url = stack.enter_context(map_server.running(OUT / "maps"))
        map_server.write_map(OUT / "maps", "ferries", url, fault="broken")
        kinds = _write_services(url)
        run_command("init")
        run_command("monitor", "init")
        log = stack.enter_context(_LOG.open("wb"))
        stack.enter_context(running("monitor", "run", log=log))
        run_command("monitor", "import", f"{OUT / 'services.csv'}")
        run_command("monitor", "check", "--all", "--wait")
        faults = _show_states(kinds, 0)
        map_server.write_map(OUT / "maps", "ferries", url)
        map_server.write_map(OUT / "maps", "harbour", url, fault="broken")
        print("ferries.map is repaired, and harbour.map is broken.\n")
        run_command("monitor", "check", "--all", "--wait")
        faults += _show_states(kinds, 1)
        run_command("monitor", "history", "--limit", "6")
        run_command("schedule", "run", "monitor.mails")
        return faults + _show_mail()


def _write_services(url: str) -> dict[int, Kind]:
    """Write the file of all services, and return the kinds by the services' numbers."""
    kinds = dict(enumerate((kind for kind in KINDS for _ in range(kind.number)), 1))
    with (OUT / "services.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(("gid", "entity", "email", "type", "version", "uri", "description"))
        for gid, kind in kinds.items():
            owner = "Harbour" if "between" in kind.name else f"Town{gid % 7}"
            type_, version = kind.versions[gid % len(kind.versions)].split()
            uri = f"{url if kind.map else 'http://127.0.0.1:1'}/{kind.map}?service={type_}&nr={gid}"
            table.writerow((gid, owner, f"{owner}@example.org", type_, version, uri, f"{type_}: {kind.name}"))
    return kinds


def _show_states(kinds: dict[int, Kind], check: int) -> list[str]:
    """Print the states by kind, and return the differences from the expected ones. ``check``: which check has
    just been done, 0 for the first and 1 for the second."""
    line = "{:<32}{:>8}{:>8}{:>8}  {:.80}".format
    print("", line("services", "error", "warning", "ok", "for instance"), sep="\n")
    current = results.current(database(), kinds)
    faults = []
    for kind in KINDS:
        numbers = {"error": 0, "warning": 0, "ok": 0}
        for gid in (gid for gid in kinds if kinds[gid] is kind):
            worst = min(current[gid], key=lambda result: list(numbers).index(result.status))
            numbers[worst.status] += 1
            if worst.code != kind.codes[check]:
                faults.append(f"service {gid}, {kind.name}: {worst.status} {worst.code} {worst.info}")
        print(line(kind.name, *numbers.values(), worst.info))
    print(flush=True)
    return faults


def _show_mail() -> list[str]:
    """Wait for the mail to the owner of what changed, print it, and return what is wrong with it."""
    mail = wait_for(
        lambda: next((mail for mail in read_mails(OUT / "mails") if "Harbour" in mail["subject"]), None),
        "the mail comes",
        _LOG,
    )
    text = show_mail(mail)
    return [] if "ok -> error" in text and "error -> ok" in text else ["the mail lacks changes"]


if __name__ == "__main__":
    sys.exit(run_demo(_run))
