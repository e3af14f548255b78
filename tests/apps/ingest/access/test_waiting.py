"""``fetch --wait`` while the store is away."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spinney.apps.ingest.cli import access
from spinney.apps.ingest.cli.session import IngestSession
from spinney.model.errors import StoreUnavailable
from spinney.terminal import patience


class Session:
    """A session whose store is away at its second look at the ticket, and that has a package at the third."""

    def __init__(self) -> None:
        self.performer = SimpleNamespace(poll_s=0.0)
        self.looks = 0

    def do(self, _: Any) -> dict[str, str]:
        self.looks += 1
        if self.looks == 2:
            raise StoreUnavailable("the database is restarted")
        return {"token": "t", "status": "ready" if self.looks == 3 else "packing"}


def test_given_a_store_that_is_away_for_a_moment_then_the_wait_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(patience, "AGAIN_S", 0.0)
    session = cast("IngestSession", Session())

    ticket = access._wait(session, {"token": "t", "status": "packing"}, json=True)

    assert ticket["status"] == "ready"
    assert capsys.readouterr().err == "spinney: the database is restarted; waiting for it\n"
