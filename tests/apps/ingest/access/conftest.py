"""A service without a node."""

from pathlib import Path

import pytest

from ..places import Kinds, endpoint_of
from .filled_service import Service, service


@pytest.fixture
def archive(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: Kinds
) -> Service:
    made = service(tmp_path / "service", kinds=kinds, endpoint=endpoint_of(request, kinds))
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made
