"""A whole service on 127.0.0.1: what serves payloads, what takes mail, databases, an archive, and a folder for the
rest."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "reports"))

from mail_server import Behaviour, mail_server

from servers import postgres_schema

from ..places import Bed, Bucket, Disk, Kinds, endpoint_of, new_bucket
from ..web import Web
from .service import Service


@pytest.fixture
def service(request: pytest.FixtureRequest, tmp_path: Path, kinds: Kinds) -> Iterator[Service]:
    """Set up, nothing handed in, no node."""
    mails = Behaviour()
    with Web() as web, mail_server(mails) as port, ExitStack() as opened:
        store, inventory = f"sqlite:///{tmp_path}/spinney.db", f"sqlite:///{tmp_path}/home/inventory.db"
        bed: Bed = Disk(tmp_path / "archive")
        if kinds.database == "postgresql":
            store, inventory = (opened.enter_context(postgres_schema()) for _ in range(2))
        if endpoint := endpoint_of(request, kinds):
            bed = Bucket(endpoint, new_bucket(endpoint), tmp_path / "copies")
        made = Service(
            place=tmp_path, store=store, inventory=inventory, bed=bed, web=web, mails=mails, smtp=port
        )
        made.set_up()
        try:
            yield made
        finally:
            made.close()
