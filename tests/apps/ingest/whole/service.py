"""A whole service as tests run it: settings, node, and what it has come to.

Everything that its staff would do or see is done and seen by the command line. Only what nobody would look up is taken
from elsewhere: what is left over in folders, and whether every promise was kept (``promise_checks``).
"""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mail_server import Behaviour

from cli.shell import Shell
from examples.ingest import promise_checks
from long_tests import LONG
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.manifests import About, PayloadKind, Row, read, write
from spinney.files.digests import digest
from spinney.model.outcomes import PASSED
from spinney.model.states import SETTLED
from spinney.store.sql import open_store

from ..places import Bed, as_settings
from ..web import Web

TESTS = Path(__file__).parents[3]
MORTAL = "apps.ingest.whole.mortal:app"
SLOTS = "2" if LONG else "1"
"""Each costs a worker, which has much to import."""
PATIENCE_S = 100.0
LOOK_S = 0.5
"""How often staff look while they wait."""
KEPT = {"wanted.jsonl", "fetched.jsonl", "stored.jsonl", "system", "system/mrt-dc.xml", "system/mrt-erc.txt"}
"""What stays in the folder of a completed object: lists, and the descriptions that it was given."""


@dataclass(kw_only=True)
class Service:
    """See the module's docstring."""

    place: Path
    store: str
    inventory: str
    bed: Bed
    """Where its objects are stored."""
    web: Web
    mails: Behaviour
    smtp: int
    starts: int = 0
    """How many nodes there have been."""
    node: "subprocess.Popen[bytes] | None" = None
    contents: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """By local id: what the archive should hold of it, by name."""

    # --- given --------------------------------------------------------------------------------

    def set_up(self) -> None:
        (self.place / "spinney.toml").write_text(
            f'[spinney]\nstore = "{self.store}"\nfolders = "spinney.folders"\n'
        )
        (self.place / "ingest.toml").write_text(
            f'home = "home"\ninventory = "{self.inventory}"\n{as_settings(self.bed)}'
            '[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n'
            f'[mail]\nhost = "127.0.0.1"\nport = {self.smtp}\nsecurity = "none"\nsender = "archive@example.org"\n'
            "[working]\nlimit = 0.99\nwarning = 0.99\n"
        )
        profiles = self.place / "home" / "profiles"
        profiles.mkdir(parents=True)
        (profiles / "maps.toml").write_text(
            f'collection = "maps"\nhosts = ["{self.web.host}"]\n[report]\nbatch = ["ann@example.org"]\n'
        )
        self.deaths.mkdir()
        self.shell.ok("init")
        self.shell.ok("ingest", "init")

    def manifest_of_three(self) -> Path:
        """A batch manifest whose rows are object manifests of two files each."""
        rows = []
        for name in ("letters", "maps", "scans"):
            files = {"a.txt": f"{name} a\n".encode() * 300, "deep/b.txt": name.encode()}
            self.contents[name] = files
            inner = io.BytesIO()
            write(
                [
                    Row(url=self.web.put(f"/{name}/{n}", b), name=n, digest=_sha256(b), size_bytes=len(b))
                    for n, b in files.items()
                ],
                PayloadKind.OBJECT_MANIFEST,
                inner,
            )
            manifest = inner.getvalue()
            url = self.web.put(f"/{name}.checkm", manifest)
            about = About(title=name.title(), local_ids=(name,))
            rows.append(Row(url=url, name=f"{name}.checkm", digest=_sha256(manifest), about=about))
        path = self.place / "batch.checkm"
        with path.open("wb") as out:
            write(rows, PayloadKind.BATCH_MANIFEST, out)
        return path

    def damage(self, name: str) -> None:
        """From now on one byte of a file of that object is wrong as it is served."""
        right = self.contents[name]["a.txt"]
        self.web.put(f"/{name}/a.txt", b"?" + right[1:])

    def mend(self, name: str) -> None:
        self.web.put(f"/{name}/a.txt", self.contents[name]["a.txt"])

    def dies_at(self, *points: str) -> None:
        """The node is to be killed at these points, once each (see ``mortal``)."""
        for point in points:
            (self.deaths / point).touch()

    # --- when ---------------------------------------------------------------------------------

    def submit(self, manifest: Path) -> str:
        """The batch."""
        accepted = self.document(
            "submit", str(manifest), "--profile", "maps", "--submitter", "ann@example.org"
        )
        return str(accepted["bid"])

    def requeue(self, batch: str) -> None:
        """What failed of it, as staff do."""
        assert self.shell.ok("ingest", "requeue", batch) == f"{batch}: 1 requeued\n"

    def settle(self, batch: str, *, mails: int) -> str:
        """Have a node, and another whenever it dies, until the batch has settled and so many mails have gone out. The
        state of the batch."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_settled(batch, mails):
            if self.node is None or self.node.poll() is not None:
                assert self.node is None or self.node.returncode == -signal.SIGKILL, self.log
                self.node = self._started()
            assert time.monotonic() < deadline, (self.status(batch), self._mails(), self.log)
            time.sleep(LOOK_S)
        return str(self.status(batch)["state"])

    def _is_settled(self, batch: str, mails: int) -> bool:
        if self.status(batch)["state"] not in ("completed", "failed"):
            return False
        sent = self._mails()
        return len(sent) >= mails and all(mail["state"] in SETTLED for mail in sent)

    def _mails(self) -> list[Any]:
        return self.shell.listed("list", "--type", "reports.mail")

    def _started(self) -> "subprocess.Popen[bytes]":
        self.starts += 1
        path = os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", "")))
        environment = self.shell.environment(PYTHONPATH=path, INGEST_DEATHS=str(self.deaths))
        with (self.place / "node.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "spinney", "node", MORTAL, "--name", "oak", "--slots", SLOTS],
                cwd=self.place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    # --- then ---------------------------------------------------------------------------------

    @property
    def deaths(self) -> Path:
        return self.place / "deaths"

    @property
    def settings(self) -> settings.Settings:
        return settings.load({settings.VARIABLE: str(self.place / "ingest.toml")})

    @property
    def shell(self) -> Shell:
        return Shell(self.place)

    @property
    def log(self) -> str:
        return (self.place / "node.log").read_text()

    def document(self, *words: str) -> Any:
        return json.loads(self.shell.ok("ingest", *words, "--json"))

    def status(self, batch: str) -> dict[str, Any]:
        entry: dict[str, Any] = self.document("status", batch)
        return entry

    def objects(self, batch: str) -> dict[str, Any]:
        """By local id."""
        return {entry["local_ids"][0]: entry for entry in self.shell.listed("ingest", "objects", batch)}

    def reports(self, batch: str) -> list[dict[str, Any]]:
        """All that there are, in order; each was told."""
        status = self.status(batch)
        files = (Path(file["path"]) for file in self.shell.listed("files", str(status["job"])))
        numbers = sorted({int(file.parent.name) for file in files if file.match("reports/*/*")})
        assert len(numbers) == status["reports"]
        return [self.document("report", batch, "--number", str(number)) for number in numbers]

    def subjects(self) -> list[str]:
        """Of the mails that came, one for each Message-ID; the same message may have come more than once."""
        by_id = {mail.mail["Message-ID"]: mail.content for mail in self.mails.received}
        assert {mail.content for mail in self.mails.received} == set(by_id.values()), (
            "one Message-ID, two contents"
        )
        return list({mail.mail["Message-ID"]: mail.mail["Subject"] for mail in self.mails.received}.values())

    def archived(self) -> dict[str, dict[str, bytes]]:
        """By local id: what the depositor sent, as readers get it now."""
        files = {}
        for stored in self.shell.listed("ingest", "find", "--collection", "maps"):
            (local_id,) = stored["local_ids"]
            assert stored["head"]["version"] == 1, f"{local_id} was stored {stored['head']['version']} times"
            manifest = self.place / f"{stored['ark'].rpartition('/')[2]}.checkm"
            self.shell.ok("ingest", "manifest", stored["ark"], "--output", str(manifest))
            names = {row.name for row in read(manifest, PayloadKind.OBJECT_MANIFEST)}
            sent = {name for name in names if name.startswith("producer/")}
            assert names - sent == {"system/mrt-dc.xml", "system/mrt-erc.txt"}
            files[local_id] = {
                name.removeprefix("producer/"): self.shell.ok(
                    "ingest", "fetch", stored["ark"], "--file", name
                ).encode()
                for name in sent
            }
        return files

    def faults(self, batch: str) -> list[str]:
        """What the look afterwards finds, and what stands in working folders that should not."""
        with closing(open_store(self.store)) as store:
            looked = promise_checks.check(
                store, self.status(batch)["job"], self.settings, self.place / "spinney.folders"
            )
        left = [
            f"{name}: {path}"
            for name, entry in self.objects(batch).items()
            if entry["state"] == "completed"
            for path in _below(Path(entry["folder"])) - KEPT
            if Path(path).parts[0]
            != ".spinney"  # output and frames of attempts that failed stay with the job
        ]
        return [*looked.faults, *left]

    def recorded(self, batch: str) -> Counter[tuple[str, str]]:
        """How often each stage of the batch and its objects stands recorded as passed, over all jobs."""
        numbers = [self.status(batch)["job"], *(entry["job"] for entry in self.objects(batch).values())]
        jobs = [json.loads(self.shell.ok("show", str(number), "--json")) for number in numbers]
        return Counter(
            (job["job"]["type"].removeprefix("ingest."), attempt["stage"])
            for job in jobs
            for attempt in job["attempts"]
            if attempt["outcome"] in PASSED
        )

    def close(self) -> None:
        if self.node is None or self.node.poll() is not None:
            return
        self.node.terminate()
        try:
            assert self.node.wait(30) == 0, self.log
        finally:
            self.node.kill()
            self.node.wait(30)


def _sha256(content: bytes) -> Any:
    return digest("sha256", hashlib.sha256(content).hexdigest())


def _below(folder: Path) -> set[str]:
    return {
        str(Path(at, name).relative_to(folder))
        for at, dirs, files in os.walk(folder)
        for name in dirs + files
    }
