"""A whole service as tests run it: settings, store, node, and what it has come to."""

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
from longer import LONG
from spinney.apps.ingest import looking, settings
from spinney.apps.ingest.digests import digest
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.manifests import About, PayloadKind, Row, write
from spinney.apps.ingest.storage import open_storage
from spinney.model import places
from spinney.model.jobs import Attempt, Filter, Job
from spinney.model.operators import Violation
from spinney.model.outcomes import PASSED
from spinney.model.states import SETTLED, State
from spinney.stores.sql import open_store

from ..web import Web

TESTS = Path(__file__).parents[3]
MORTAL = "apps.ingest.whole.mortal:app"
SLOTS = "2" if LONG else "1"
"""Each costs a worker, which has much to import."""
PATIENCE_S = 60.0
MAILS = Filter(type="reports.mail")
KEPT = {"wanted.jsonl", "fetched.jsonl", "stored.jsonl", "system", "system/mrt-dc.xml", "system/mrt-erc.txt"}
"""What stays in the folder of a completed object: lists, and the descriptions that it was given."""


@dataclass(kw_only=True)
class Service:
    """See the module's docstring."""

    place: Path
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
        (self.place / "ingest.toml").write_text(
            f'home = "home"\n[storage.main]\nurl = "{self.archive}"\n[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n'
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
        self.store = open_store(f"sqlite:///{self.place / 'spinney.db'}")

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

    def submit(self, manifest: Path) -> int:
        """The job of its batch."""
        by = ("--profile", "maps", "--submitter", "ann@example.org")
        told = self.shell.ok("ingest", "submit", str(manifest), *by, "--json")
        return int(json.loads(told)["job"])

    def requeue(self, batch: int) -> None:
        """What failed of it, as staff do."""
        self.shell.ok("ingest", "requeue", str(batch))

    def settle(self, batch: int, *, mails: int) -> Job:
        """Have a node, and another whenever it dies, until the batch has settled and so many mails have gone out."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_settled(batch, mails):
            if self.node is None or self.node.poll() is not None:
                assert self.node is None or self.node.returncode == -signal.SIGKILL, self.log
                self.node = self._started()
            assert time.monotonic() < deadline, (self.store.tree(batch), self.store.jobs(MAILS), self.log)
            time.sleep(0.01)
        return self.store.job(batch)

    def _is_settled(self, batch: int, mails: int) -> bool:
        sent = self.store.jobs(MAILS)
        return (
            self.store.job(batch).state in SETTLED
            and len(sent) >= mails
            and all(mail.state in SETTLED for mail in sent)
        )

    def _started(self) -> "subprocess.Popen[bytes]":
        self.starts += 1
        environment = self.shell.environment(PYTHONPATH=str(TESTS), INGEST_DEATHS=str(self.deaths))
        with (self.place / "node.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "spinney", "node", MORTAL, "--name", "oak", "--slots", SLOTS],
                cwd=self.place, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    # --- then ---------------------------------------------------------------------------------

    @property
    def archive(self) -> Path:
        return self.place / "archive"

    @property
    def deaths(self) -> Path:
        return self.place / "deaths"

    @property
    def folders(self) -> Path:
        return self.place / "spinney.folders"

    @property
    def settings(self) -> settings.Settings:
        return settings.load({settings.VARIABLE: str(self.place / "ingest.toml")})

    @property
    def shell(self) -> Shell:
        return Shell(self.place)

    @property
    def log(self) -> str:
        return (self.place / "node.log").read_text()

    def objects(self, batch: int) -> dict[str, Job]:
        """By local id."""
        return {job.params["order"]["about"]["local_ids"][0]: job for job in self.store.children(batch)}

    def report(self, batch: int, number: int) -> dict[str, Any]:
        path = self.folders / places.job_folder(batch) / "reports" / f"{number:04d}" / "report.json"
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found

    def reports(self, batch: int) -> list[str]:
        return sorted(p.name for p in (self.folders / places.job_folder(batch) / "reports").iterdir())

    def subjects(self) -> list[str]:
        """Of the mails that came, one for each Message-ID; the same message may have come more than once."""
        by_id = {got.mail["Message-ID"]: got.content for got in self.mails.received}
        assert {got.content for got in self.mails.received} == set(by_id.values()), "one Message-ID, two contents"
        return list({got.mail["Message-ID"]: got.mail["Subject"] for got in self.mails.received}.values())

    def archived(self) -> dict[str, dict[str, bytes]]:
        """By local id, through the inventory: what the depositor sent, as the archive has it now."""
        storage, found = open_storage(self.archive), {}
        with open_inventory(self.settings.inventory) as inventory:
            for entry in inventory.find(collection="maps"):
                files = {}
                for file in inventory.files(entry.ark, entry.head.version):
                    with storage.opened(entry.ark, file.path, entry.head.version) as content:
                        files[file.path] = content.read()
                (local_id,) = entry.local_ids
                assert entry.head.version == 1, f"{local_id} was stored {entry.head.version} times"
                assert {path for path in files if path.startswith("system/")} == {
                    "system/mrt-dc.xml", "system/mrt-erc.txt",
                }  # fmt: skip
                found[local_id] = {
                    path.removeprefix("producer/"): content
                    for path, content in files.items()
                    if path.startswith("producer/")
                }
        return found

    def faults(self, batch: int) -> list[str]:
        """What the look afterwards finds, and what stands in working folders that should not."""
        looked = looking.look(self.store, batch, self.settings, self.folders)
        left = [
            f"job {job.id}: {path}"
            for job in self.objects(batch).values()
            if job.state is State.COMPLETED
            for path in _below(self.folders / places.job_folder(job.id)) - KEPT
        ]
        return [*looked.faults, *left]

    def complaints(self) -> list[Violation]:
        """What the store's own doctor finds."""
        return list(self.store.doctor.examine(None, deep=True, now_us=time.time_ns() // 1000))

    def recorded(self, batch: int) -> Counter[tuple[str, str]]:
        """How often each stage of the batch and its objects stands recorded as passed, over all jobs."""
        attempts: list[tuple[Job, Attempt]] = [
            (job, attempt) for job in self.store.tree(batch) for attempt in self.store.attempts(job.id)
        ]
        return Counter(
            (job.type.removeprefix("ingest."), attempt.stage) for job, attempt in attempts if attempt.outcome in PASSED
        )

    def close(self) -> None:
        with closing(self.store):
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
    return {str(Path(at, name).relative_to(folder)) for at, dirs, files in os.walk(folder) for name in dirs + files}
