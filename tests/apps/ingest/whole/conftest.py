"""A whole service on 127.0.0.1: what serves payloads, what takes mail, and a folder for all the rest."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "reports"))

from mail_server import Behaviour, mail_server

from ..web import Web
from .service import Service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Set up, nothing handed in, no node."""
    mails = Behaviour()
    with Web() as web, mail_server(mails) as port:
        made = Service(place=tmp_path, web=web, mails=mails, smtp=port)
        made.set_up()
        try:
            yield made
        finally:
            made.close()
