"""A service without a node."""

from pathlib import Path

import pytest

from .given import Service, service


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    made = service(tmp_path / "service")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made
