"""An ingest service that holds something: settings, archive, inventory, and a store that knows its job types."""

import atexit
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

from new_store import new_store
from spinney.apps.ingest import app, settings
from spinney.apps.ingest.access.tickets import AccessOrder
from spinney.apps.ingest.inventory import Entry, File, Inventory, open_inventory
from spinney.apps.ingest.settings import Settings
from spinney.apps.ingest.storage import Incoming, Storage, open_storage
from spinney.apps.ingest.storage.layout import Layout
from spinney.cli.session import now_us
from spinney.control import Control
from spinney.model.jobs import NodeInfo
from spinney.model.serving import ALL, Serves
from spinney.node import folders
from spinney.stores.contract import Store
from spinney.stores.sql import open_store

ARK = "ark:/99999/fk4abc"
WHEN = datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC)
SECRET = "0123456789abcdef" * 2
MAIL = '[mail]\nhost = "localhost"\nsender = "archive@example.org"\nadmins = ["staff@example.org"]\n'


@dataclass(frozen=True)
class Service:
    """Its folder, and what is in it."""

    folder: Path

    @property
    def settings(self) -> Settings:
        return settings.load(self.environment)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SPINNEY_INGEST": str(self.folder / "ingest.toml"), "SPINNEY_STORE": f"sqlite:///{self.folder}/spinney.db",
        }  # fmt: skip

    @property
    def storage(self) -> Storage:
        return open_storage(self.folder / "archive")

    @contextmanager
    def inventory(self) -> Iterator[Inventory]:
        with open_inventory(self.settings.inventory) as inventory:
            yield inventory

    @contextmanager
    def control(self) -> Iterator[Control]:
        store = open_store(self.environment["SPINNEY_STORE"])
        try:
            yield Control(store=store, clock=now_us, nudge=lambda: None, by="ann")
        finally:
            store.close()

    @contextmanager
    def store(self) -> Iterator[Store]:
        with self.control() as control:
            yield control.store

    def holds(
        self, files: Mapping[str, bytes], ark: str = ARK, version: int = 1, modified: Mapping[str, str] | None = None
    ) -> None:
        """Store and record a version of an object."""
        sources = self.folder / "sources"
        sources.mkdir(exist_ok=True)
        incoming = []
        for path, raw in files.items():
            source = sources / hashlib.sha256(path.encode() + raw).hexdigest()
            source.write_bytes(raw)
            incoming.append(Incoming(path=path, source=source, size_bytes=len(raw)))
        self.storage.put(
            ark, incoming, key=f"jid-{version}", message="A deposit", user="ann", created=WHEN, merge=False, fence=1
        )
        said = modified or {}
        entries = [File(path=path, size_bytes=len(raw), modified=said.get(path)) for path, raw in files.items()]
        with self.inventory() as inventory:
            inventory.record(
                Entry(
                    ark=ark, collection="maps", owner="library", submitter="ann", batch_id="bid-1",
                    job_id=f"jid-{version}", version=version, created=WHEN, storage="main", files=entries,
                )
            )  # fmt: skip

    @contextmanager
    def node(self, store: Store, *, serves: Serves = ALL, slots: int = 1) -> Iterator[int]:
        """A node that takes nothing by itself; its number."""
        info = NodeInfo(
            id=0, name="n1", boot_id="b", host="h", pid=4, slots=slots, state="active", beat=1, started_us=0,
            seen_us=now_us(), version="1", types=tuple(app.types), serves=serves, lease_s=15.0,
        )  # fmt: skip
        node_id = store.join(info, now_us=now_us())
        yield node_id
        store.update_node(node_id, state="left", now_us=now_us())

    def content(self, path: str, ark: str = ARK) -> Path:
        """Where the content of a file lies."""
        file = next(file for file in self.storage.files(ark) if file.path == path)
        return self.folder / "archive" / Layout().path(ark) / file.content_path

    def order(self, **more: Any) -> dict[str, Any]:
        given: dict[str, Any] = {
            "ark": ARK, "version": 1, "created": WHEN, "storage": "main", "files": 1, "size_bytes": 1, "format": "zip",
            "secret": SECRET,
        }  # fmt: skip
        return AccessOrder(**given | more).model_dump(mode="json")


def service(folder: Path, *lines: str, more: str = "") -> Service:
    """``lines`` go into the settings' head, ``more`` behind them."""
    shutil.copytree(_template(), folder)
    head = "\n".join(lines)
    (folder / "ingest.toml").write_text(
        f'home = "home"\n{head}\n[storage.main]\nurl = "{folder}/archive"\n'
        f'[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n{more}'
    )
    return Service(folder)


@cache
def _template() -> Path:
    """Everything empty, to copy: to make it takes longer than most tests."""
    temporary = tempfile.TemporaryDirectory(prefix="spinney-ingest-")
    atexit.register(temporary.cleanup)
    folder = Path(temporary.name) / "empty"
    open_storage(folder / "archive")
    with open_inventory(f"sqlite:///{folder}/home/inventory.db") as inventory:
        inventory.init()
    store = open_store(new_store(folder / "spinney.db"))
    store.register([t.spec for t in app.types.values()], app.queues)
    folders.write_token(folder / "spinney.folders", store.facts()["folder_token"])
    store.close()
    return folder
