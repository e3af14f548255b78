"""The twins have what commands use of control, under the same names and with the same parameters."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from spinney import cli
from spinney.cli.remote.client import RetryingClient
from spinney.cli.remote.control import RemoteControl
from spinney.control import Control

LESS = {"submit": {"keys", "once", "under"}, "submit_lines": {"once"}, "sweep": {"rest", "monotonic"}}
"""Parameters that no command uses."""
OWN = {"job_files", "clock"}
"""What only the twin has, or has as a field."""
LOCAL_FEATURES = {"doctor", "homes", "copies"}
"""Those whose commands are refused through a server."""


def test_a_twin_is_called_as_the_real_one_is() -> None:
    for name, method in _methods(RemoteControl):
        if name not in OWN:
            given = inspect.signature(method).parameters
            wanted = inspect.signature(getattr(Control, name)).parameters
            kept = [p for p in wanted.values() if p.name not in LESS.get(name, ())]
            assert [_form(p) for p in given.values()] == [_form(p) for p in kept], name


def test_a_twin_has_all_that_commands_use() -> None:
    used = set()
    for file in Path(inspect.getfile(cli)).parents[1].glob("features/**/*cli.py"):
        if file.parent.name not in LOCAL_FEATURES:
            used |= set(re.findall(r"\bcontrol\.([a-z_]+)", file.read_text()))
    assert used
    with RetryingClient("http://127.0.0.1:1", token=None, outage_limit_s=0) as client:
        twin = RemoteControl(client)
        assert {name for name in used - {"by"} if not hasattr(twin, name)} == set()


def _methods(remote: type) -> Iterator[tuple[str, Callable[..., object]]]:
    for name, member in inspect.getmembers(remote, inspect.isfunction):
        if not name.startswith("_"):
            yield name, member


def _form(parameter: inspect.Parameter) -> tuple[str, object, bool]:
    return parameter.name, parameter.kind, parameter.default is inspect.Parameter.empty
