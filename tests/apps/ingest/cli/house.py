"""An ingest service in a folder of its own, as its staff have it: settings, profiles, a web server with payloads."""

import hashlib
import io
import json
import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.shell import Shell
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.files.digests import digest
from spinney.model.jobs import Filter
from spinney.model.states import LEASED, State
from spinney.store.sql import open_store

from ..web import Web

PATIENCE_S = 40.0
LOOK_S = 1.0
"""So long at most until somebody looks as staff do, although there is work to be done still."""
AT_WORK = {State.PENDING, *LEASED}

SETTINGS = """
home = "home"
test_mode = true
[storage.main]
url = "{folder}/archive"
[minters.main]
naan = "99999"
shoulder = "fk4"
[areas]
fast = "{folder}/fast"
[working]
limit = 1.0
warning = 1.0
[downloads]
tries = 1
"""
PROFILES = {
    "maps": 'collection = "maps"\nhosts = ["{host}"]\n[report]\nbatch = ["depositor@example.org"]\n',
    "swift": 'collection = "swift"\nhosts = ["{host}"]\narea = "fast"\npriority = 7\n',
    "slow": 'collection = "slow"\nhosts = ["{host}"]\nhold = "somebody looks first"\n',
}


@dataclass(frozen=True)
class House:
    folder: Path
    shell: Shell
    web: Web

    # --- what is handed in ----------------------------------------------------------------

    def file(self, name: str, content: bytes = b"some bytes\n") -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def manifest(
        self, name: str, files: dict[str, bytes], kind: PayloadKind = PayloadKind.SINGLE_FILE_BATCH_MANIFEST
    ) -> str:
        """A manifest of files that the web server has, each with its digest."""
        rows = [
            Row(
                url=self.web.put(f"/{name}/{file}", content),
                name=file,
                size_bytes=len(content),
                digest=digest("sha256", hashlib.sha256(content).hexdigest()),
            )
            for file, content in files.items()
        ]
        written = io.BytesIO()
        write(rows, kind, written)
        return self.file(name, written.getvalue())

    # --- what staff do --------------------------------------------------------------------

    def ingest(self, *words: str) -> str:
        return self.shell.ok("ingest", *words)

    def document(self, *words: str) -> Any:
        return json.loads(self.ingest(*words, "--json"))

    def lines(self, *words: str) -> list[Any]:
        return self.shell.listed("ingest", *words)

    def refused(self, code: int, *words: str) -> str:
        return self.shell.refused(code, "ingest", *words)

    def submit(self, *words: str, profile: str = "maps") -> str:
        """The batch."""
        (accepted,) = self.lines("submit", *words, "--profile", profile)
        return str(accepted["bid"])

    def status(self, bid: str) -> dict[str, Any]:
        entry: dict[str, Any] = self.document("status", bid)
        return entry

    def until(self, bid: str, *states: str, reports: int = 0) -> dict[str, Any]:
        """Wait until the batch is shown so, having reported so often."""
        deadline = time.monotonic() + PATIENCE_S
        with closing(open_store(f"sqlite:///{self.folder / 'spinney.db'}")) as store:
            while True:
                # To ask the store takes a hundredth of what the command does.
                look_s = time.monotonic() + LOOK_S
                while set(store.counts(Filter())) & AT_WORK and time.monotonic() < look_s:
                    time.sleep(0.02)
                status = self.status(bid)
                if status["state"] in states and status["reports"] >= reports:
                    return status
                assert time.monotonic() < deadline, "it did not come true in time"
                time.sleep(0.05)

    def incoming(self) -> Sequence[str]:
        return sorted(place.name for place in (self.folder / "home" / "incoming").iterdir())


def furnish(folder: Path, web: Web) -> House:
    """A store and all that ``ingest init`` makes."""
    (folder / "ingest.toml").write_text(SETTINGS.format(folder=folder))
    shell = Shell(folder)
    house = House(folder, shell, web)
    shell.ok("init")
    house.ingest("init")
    for name, text in PROFILES.items():
        (folder / "home" / "profiles" / f"{name}.toml").write_text(text.format(host=web.host))
    return house


def copied(house: House, folder: Path) -> House:
    """The same elsewhere, which is quicker than to make its tables anew."""
    shutil.copytree(house.folder, folder, dirs_exist_ok=True)
    (folder / "ingest.toml").write_text(SETTINGS.format(folder=folder))
    return House(folder, Shell(folder), house.web)
