from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinney.containers import Limits, Member, unpack
from spinney.files.paths import NotAdmitted

Unpack = Callable[..., list[Member]]
Refused = Callable[..., str]


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "job" / "unpacked"


@pytest.fixture
def unpacked(into: Path) -> Unpack:
    """Unpacks a container below ``into``, within modest limits."""

    def run(container: Path, **limits: Any) -> list[Member]:
        chosen = Limits(**{"total_bytes": 50_000_000, "members": 1000, "depth": 20, **limits})
        return unpack(container, into, name=container.name, limits=chosen)

    return run


@pytest.fixture
def refused(unpacked: Unpack, into: Path, tmp_path: Path) -> Refused:
    """Expects a container to be refused, and nothing of it to be left anywhere; returns the message."""

    def run(container: Path, **limits: Any) -> str:
        before = {p for p in tmp_path.rglob("*") if p != into.parent}
        with pytest.raises(NotAdmitted) as refusal:
            unpacked(container, **limits)
        assert {p for p in tmp_path.rglob("*") if p != into.parent} == before
        message = str(refusal.value)
        assert message.startswith(f"container '{container.name}': ")
        return message

    return run
