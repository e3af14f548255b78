"""An ingest service that holds something: settings, archive, inventory, and a store that knows its job types."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from new_store import new_store, new_store_on_server
from process_end import at_process_end
from spinney.apps.ingest import app
from spinney.apps.ingest.access.tickets import AccessOrder
from spinney.apps.ingest.config import open_resources, settings
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.inventory import Entry, File, open_inventory
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.apps.ingest.storage import Incoming, Storage, open_storage
from spinney.apps.ingest.storage.layout import Layout
from spinney.commands.control import Control
from spinney.folders import folders
from spinney.model.jobs import NodeInfo
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.terminal.connection import now_us

from ..new_inventory import new_inventory, new_inventory_on_server
from ..places import NEAR, Bed, Bucket, Disk, Kinds, as_settings, new_bucket

ARK = "ark:/99999/fk4abc"
WHEN = datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC)
SECRET = "0123456789abcdef" * 2
MAIL = '[mail]\nhost = "localhost"\nsender = "archive@example.org"\nadmins = ["staff@example.org"]\n'


@dataclass(frozen=True)
class Service:
    """Its folder, and what is in it or belongs to it."""

    folder: Path
    store_url: str
    bed: Bed

    @property
    def settings(self) -> Settings:
        return settings.load(self.environment)

    @property
    def environment(self) -> dict[str, str]:
        return {"SPINNEY_INGEST": str(self.folder / "ingest.toml"), "SPINNEY_STORE": self.store_url}

    @property
    def storage(self) -> Storage:
        return open_resources.storage(self.settings, "main")

    @contextmanager
    def inventory(self) -> Iterator[Inventory]:
        with open_inventory(self.settings.inventory) as inventory:
            yield inventory

    @contextmanager
    def control(self) -> Iterator[Control]:
        store = open_store(self.store_url)
        try:
            yield Control(store=store, clock=now_us, wake_nodes=lambda: None, by="ann")
        finally:
            store.close()

    @contextmanager
    def store(self) -> Iterator[Store]:
        with self.control() as control:
            yield control.store

    def holds(
        self,
        files: Mapping[str, bytes],
        ark: str = ARK,
        version: int = 1,
        modified: Mapping[str, str] | None = None,
        recorded: Mapping[str, bytes] | None = None,
    ) -> None:
        """Store and record a version of an object; ``recorded``: as one of these files instead."""
        sources = self.folder / "sources"
        sources.mkdir(exist_ok=True)
        incoming = []
        for path, raw in files.items():
            source = sources / hashlib.sha256(path.encode() + raw).hexdigest()
            source.write_bytes(raw)
            incoming.append(Incoming(path=path, source=source, size_bytes=len(raw)))
        self.storage.put(
            ark,
            incoming,
            key=f"jid-{version}",
            message="A deposit",
            user="ann",
            created=WHEN,
            merge=False,
            fence=1,
        )
        changes = modified or {}
        entries = [
            File(
                path=path,
                size_bytes=len(raw),
                modified=changes.get(path),
                digests={"sha512": hashlib.sha512(raw).hexdigest()},
            )
            for path, raw in (recorded or files).items()
        ]
        with self.inventory() as inventory:
            inventory.record(
                Entry(
                    ark=ark,
                    collection="maps",
                    owner="library",
                    submitter="ann",
                    batch_id="bid-1",
                    job_id=f"jid-{version}",
                    version=version,
                    created=WHEN,
                    storage="main",
                    files=entries,
                )
            )

    @contextmanager
    def node(self, store: Store, *, serves: QueueSelection = ALL, slots: int = 1) -> Iterator[int]:
        """A node that takes nothing by itself; its number."""
        info = NodeInfo(
            id=0,
            name="n1",
            boot_id="b",
            host="h",
            pid=4,
            slots=slots,
            state="active",
            beat=1,
            started_us=0,
            seen_us=now_us(),
            version="1",
            types=tuple(app.types),
            serves=serves,
            lease_s=15.0,
        )
        node_id = store.join(info, now_us=now_us())
        yield node_id
        store.update_node(node_id, state="left", now_us=now_us())

    def content(self, path: str, ark: str = ARK) -> str:
        """Where the content of a file lies, below the storage root."""
        file = next(file for file in self.storage.files(ark) if file.path == path)
        return f"{Layout().path(ark)}/{file.content_path}"

    def overwrite(self, path: str, raw: bytes | None, ark: str = ARK) -> None:
        """The content of a file, behind the storage's back; None: it is gone."""
        self.bed.overwrite(self.content(path, ark), raw)

    def order(self, **more: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "ark": ARK,
            "version": 1,
            "created": WHEN,
            "storage": "main",
            "files": 1,
            "size_bytes": 1,
            "format": "zip",
            "secret": SECRET,
        }
        return AccessOrder(**fields | more).model_dump(mode="json")


def service(
    folder: Path, *lines: str, more: str = "", kinds: Kinds = NEAR, endpoint: str | None = None
) -> Service:
    """``lines`` go into the settings' head, ``more`` behind them. ``endpoint``: of S3, where the archive is there."""
    on_server, in_s3 = kinds.database == "postgresql", kinds.storage == "s3"
    elsewhere = ["spinney.db", "spinney.folders", "inventory.db"] * on_server + ["archive"] * in_s3
    shutil.copytree(_template(), folder, ignore=shutil.ignore_patterns(*elsewhere))
    store_url, inventory = f"sqlite:///{folder}/spinney.db", f"sqlite:///{folder}/home/inventory.db"
    bed: Bed = Disk(folder / "archive")
    if on_server:
        store_url, inventory = new_store_on_server(), new_inventory_on_server()
        _introduce(store_url, folder)
    if in_s3:
        assert endpoint is not None
        bed = _bucket_of_this_process(endpoint)
        bed.empty()
    head = "\n".join(lines)
    (folder / "ingest.toml").write_text(
        f'home = "home"\ninventory = "{inventory}"\n{head}\n{as_settings(bed)}'
        f'[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n{more}'
    )
    (folder / "spinney.toml").write_text(f'[spinney]\nstore = "{store_url}"\nfolders = "spinney.folders"\n')
    return Service(folder, store_url, bed)


@cache
def _template() -> Path:
    """Everything empty, to copy: to make it takes longer than most tests."""
    temporary = tempfile.TemporaryDirectory(prefix="spinney-ingest-")
    at_process_end(temporary.cleanup)
    folder = Path(temporary.name) / "empty"
    open_storage(folder / "archive")
    (folder / "home").mkdir()
    new_inventory(folder / "home" / "inventory.db")
    _introduce(new_store(folder / "spinney.db"), folder)
    return folder


def _introduce(store_url: str, folder: Path) -> None:
    """To a store the job types, and to it the folders beside."""
    store = open_store(store_url)
    store.register([t.spec for t in app.types.values()], app.queues)
    folders.write_token(folder / "spinney.folders", store.facts()["folder_token"])
    store.close()


@cache
def _bucket_of_this_process(endpoint: str) -> Bucket:
    bucket = Bucket(endpoint, new_bucket(endpoint), Path(tempfile.gettempdir()))
    bucket.open()
    return bucket
