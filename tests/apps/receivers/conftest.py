from collections.abc import Iterator
from pathlib import Path

import pytest

from .service import Service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service of its own, without a node."""
    made = Service(tmp_path)
    yield made
    made.close()
