"""A whole service of files and folders, and the bench on which the stages of one object or batch run."""

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from apps.ingest.web import Web
from spinney.apps.ingest import app, application
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.deposits.orders import Payload
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.apps.ingest.manifests import About, PayloadKind, Row, write
from spinney.apps.ingest.storage import Storage, open_storage
from spinney.apps.ingest.verbs.setup import prepare
from spinney.files.digests import Digest
from spinney.testing import StageHarness, StageResult

STAGES = application.STAGES
assert app is application.app, "asked for, it gets its stages"
BID = "bid-00000000-0000-4000-8000-000000000001"


@dataclass(kw_only=True)
class Service:
    """Settings, profiles, an inventory and an archive below one folder; ``web`` serves payloads."""

    folder: Path
    web: Web
    document: dict[str, Any] = field(default_factory=dict)

    def write(self, **changes: Any) -> None:
        """The settings anew, with these tables changed."""
        self.document |= changes
        text = toml(self.document)
        path = self.folder / "ingest.toml"
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text)
        while path.stat().st_mtime_ns == before:  # a clock as coarse as the file system's
            path.write_text(text)

    def profile(self, name: str = "maps", **table: Any) -> None:
        table = {"collection": "maps", "hosts": [self.web.host]} | table
        path = self.folder / "home/profiles" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(toml(table))

    def prepare(self) -> None:
        """Make what the settings name, as ``ingest init`` does."""
        assert list(prepare(self.settings))

    @property
    def settings(self) -> settings.Settings:
        return settings.load({settings.VARIABLE: str(self.folder / "ingest.toml")})

    @property
    def storage(self) -> Storage:
        return open_storage(self.settings.storage["main"].url)

    @property
    def inventory(self) -> Inventory:
        opened_inventory = open_inventory(self.settings.inventory)
        opened_inventory.init()
        return opened_inventory

    def loaded(self, name: str = "maps") -> profiles.Profile:
        return profiles.load(self.settings, name)

    def stored(self, ark: str, version: int | None = None, *, below: str = "producer") -> dict[str, bytes]:
        """The depositor's files of an object, by name; or those in another folder of it."""
        files: dict[str, bytes] = {}
        for file in self.storage.files(ark, version):
            if file.path.startswith(f"{below}/"):
                with self.storage.opened(ark, file) as stream:
                    files[file.path.removeprefix(f"{below}/")] = stream.read()
        return files

    # --- an object ------------------------------------------------------------------------

    def manifest(self, files: Mapping[str, bytes], *, path: str = "/m.checkm", **row: Any) -> str:
        """Serve files, and an object manifest of them; returns its URL."""
        rows = [
            Row(url=self.web.put(f"/files/{name}", content), name=name, **row)
            for name, content in files.items()
        ]
        out = io.BytesIO()
        write(rows, PayloadKind.OBJECT_MANIFEST, out)
        return self.web.put(path, out.getvalue())

    def object(self, number: int = 1, **order: Any) -> "Deposit":
        """An object whose stages can be run."""
        order = {"jid": orders.jid(BID, number), "bid": BID, "profile": "maps", "submitter": "ann", **order}
        folder = self.folder / f"jobs-{number}"
        folder.mkdir(exist_ok=True)
        return Deposit(
            order=order, harness=StageHarness(parent_data={"priority": 5}, folder=folder), root=folder
        )

    def of_files(
        self, files: Mapping[str, bytes], number: int = 1, *, modified: str | None = None, **order: Any
    ) -> "Deposit":
        """One whose payload is an object manifest that the server has."""
        url = self.manifest(files, path=f"/{number}.checkm", modified=modified)
        return self.object(number, payload=payload(PayloadKind.OBJECT_MANIFEST, url, "m.checkm"), **order)

    def of_file(
        self, content: bytes = b"map", number: int = 1, name: str = "a.txt", **order: Any
    ) -> "Deposit":
        url = self.web.put(f"/{number}/{name}", content)
        return self.object(number, payload=payload(PayloadKind.FILE, url, name), **order)

    def of_container(self, content: bytes, number: int = 1, name: str = "a.zip", **order: Any) -> "Deposit":
        url = self.web.put(f"/{number}/{name}", content)
        return self.object(number, payload=payload(PayloadKind.CONTAINER, url, name), **order)


@dataclass(kw_only=True)
class Deposit:
    """An object on its way."""

    order: dict[str, Any]
    harness: StageHarness
    root: Path

    def run(self, stage: str) -> StageResult:
        return self.harness.run(application.objects, stage, order=self.order)

    def to(self, last: str, first: str = STAGES[0]) -> StageResult:
        """Run the stages up to this one, all of which must pass before it."""
        for stage in STAGES[STAGES.index(first) : STAGES.index(last)]:
            ran = self.run(stage)
            assert ran.outcome in ("ok", "warning"), (stage, ran.outcome, ran.message)
        return self.run(last)

    def deposit(self, last: str = "notify") -> dict[str, Any]:
        """All the way; what ``processing`` said."""
        ran = self.to(last)
        assert ran.outcome in ("ok", "warning"), (last, ran.outcome, ran.message)
        result: dict[str, Any] = self.harness.results["processing"]
        return result

    def beside(self, *locks: str, cancelled: bool = False) -> "Deposit":
        """The same as it stands, where others have these locks, or where somebody wishes it cancelled."""
        harness = StageHarness(
            data=self.harness.data,
            parent_data=self.harness.parent_data,
            results=self.harness.results,
            taken=locks,
            cancelled=cancelled,
            folder=self.root,
        )
        return Deposit(order=self.order, harness=harness, root=self.root)

    @property
    def folder(self) -> Path:
        return self.harness.job_folder


def toml(document: Mapping[str, Any]) -> str:
    """As text; what is below the top stands in one line."""
    return "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in document.items())


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_inline(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def payload(
    kind: PayloadKind, url: str | None, name: str, content: bytes | None = None, **more: Any
) -> dict[str, Any]:
    """With a ``content``: its digest is given."""
    digest = (
        None if content is None else Digest(algorithm="sha256", value=hashlib.sha256(content).hexdigest())
    )
    return Payload(kind=kind, url=url, name=name, digest=digest, **more).model_dump(exclude_defaults=True)


def about(**fields: Any) -> dict[str, Any]:
    return asdict(About(**fields))


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: Iterable[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()
