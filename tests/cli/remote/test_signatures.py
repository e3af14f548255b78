"""The twins have what commands use of control, under the same names and with the same parameters."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spinney import cli
from spinney.cli.remote.control import RemoteControl
from spinney.cli.remote.queries import RemoteQueries
from spinney.control import Control
from spinney.service.queries import Queries

PAIRS = (
    (Queries, RemoteQueries),
    (Control, RemoteControl),
)
LESS = {"submit": {"keys", "once", "under"}, "submit_lines": {"once"}, "sweep": {"rest", "monotonic"}}
"""Parameters that no command uses."""
OWN = {"job_files", "clock"}
"""What only the twin has, or has as a field."""
LOCAL_FEATURES = {"doctor", "homes", "copies"}
"""Those whose commands are refused through a server."""


@pytest.mark.parametrize(("real", "remote"), PAIRS)
def test_a_twin_is_called_as_the_real_one_is(real: type, remote: type) -> None:
    for name, method in _methods(remote):
        if name not in OWN:
            given = inspect.signature(method).parameters
            wanted = inspect.signature(getattr(real, name)).parameters
            kept = [p for p in wanted.values() if p.name not in LESS.get(name, ())]
            assert [_form(p) for p in given.values()] == [_form(p) for p in kept], f"{remote.__name__}.{name}"


def test_a_twin_has_all_that_commands_use() -> None:
    counterparts = {
        "queries": RemoteQueries,
    }
    used = set()
    for file in Path(inspect.getfile(cli)).parents[1].glob("features/**/*cli.py"):
        if file.parent.name not in LOCAL_FEATURES:
            text = file.read_text()
            used |= set(re.findall(r"\bcontrol\.([a-z]+)\.([a-z_]+)\(", text))
            used |= {("queries", name) for name in re.findall(r"\bqueries\.([a-z_]+)\(", text)}
    assert used
    missing = {
        (part, name) for part, name in used if part != "store" and not hasattr(counterparts[part], name)
    }
    assert not missing


def _methods(remote: type) -> Iterator[tuple[str, Callable[..., object]]]:
    for name, member in inspect.getmembers(remote, inspect.isfunction):
        if not name.startswith("_"):
            yield name, member


def _form(parameter: inspect.Parameter) -> tuple[str, object, bool]:
    return parameter.name, parameter.kind, parameter.default is inspect.Parameter.empty
