"""A server, rules that let it be reached, and rests that are written down instead of taken."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from apps.ingest.web import Web
from spinney.apps.ingest.fetch import Rules


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def rules(web: Web) -> Rules:
    return Rules(hosts=frozenset({web.host}), mark_bytes=1000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "object"


@dataclass
class Rests:
    """The rules of a download whose pauses are recorded instead of slept through."""

    taken_s: list[float] = field(default_factory=list)

    def in_place_of(self, rules: Rules) -> Rules:
        return replace(rules, draw=lambda: 0.0, pause=lambda _, seconds: self.taken_s.append(seconds))


@pytest.fixture
def rests() -> Rests:
    return Rests()
