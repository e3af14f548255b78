"""The kill tests start the same nodes as the node's own tests. At the end the table of faults is shown."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "node"))

import chaos_table  # noqa: E402 - only now can it be found
from chaos_load import Grove, Harvest  # noqa: E402

from long_tests import LONG  # noqa: E402
from servers import postgres_schema  # noqa: E402

_ROW = "chaos"
SEED = int(os.environ.get("SPINNEY_CHAOS_SEED", str(int.from_bytes(os.urandom(3), "big"))))


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes find the application, and each test has run-time directories of its own."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


@pytest.fixture
def plant(tmp_path: Path, environment: None, stack: contextlib.ExitStack) -> Callable[..., Grove]:
    """Makes a grove on a store: ``sqlite``, ``postgresql``, or a URL."""

    def made(store: str, **more: Any) -> Grove:
        print(f"SPINNEY_CHAOS_SEED={SEED}")
        url = None if store == "sqlite" else store
        if store == "postgresql":
            url = stack.enter_context(postgres_schema())
        grove = Grove(tmp_path, url, **{"seed": SEED} | more)
        stack.callback(grove.close)
        return grove

    return made


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str, str, Harvest], None]:
    """Return a function that records a harvest in the table, and fails on anything lost, double or over a limit."""

    def record(fault: str, store: str, harvest: Harvest) -> None:
        request.node.user_properties.append((_ROW, chaos_table.row(fault, store, harvest)))
        assert harvest.findings == [], "\n".join(map(str, harvest.findings[:20]))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for rs in terminalreporter.stats.values() for r in rs if getattr(r, "when", None) == "call"]
    rows = [row for report in reports for name, row in report.user_properties if name == _ROW]
    if not rows:
        return
    terminalreporter.section("faults")
    for line in chaos_table.text(rows):
        terminalreporter.line(line)
    if LONG:
        to = HERE.parents[1] / "build" / "chaos.json"
        chaos_table.write(rows, to)
        terminalreporter.line(f"written to {to}")
