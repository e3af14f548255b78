"""The twins have what commands use of control, under the same names and with the same parameters."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spinney import cli
from spinney.cli.afar import parts
from spinney.cli.afar.bulk import AfarBulk
from spinney.cli.afar.control import Afar
from spinney.cli.afar.looking import Looks
from spinney.control import Control
from spinney.control.accounts import Accounts
from spinney.control.bulk import Bulk
from spinney.control.fleet import Fleet
from spinney.control.holding import Holds
from spinney.control.locking import Locks
from spinney.control.looking import Looking
from spinney.control.queueing import Queues
from spinney.control.retaining import Retention
from spinney.control.scheduling import Schedules
from spinney.control.webhooks import Webhooks

TWINS = (
    (Accounts, parts.Accounts),
    (Bulk, AfarBulk),
    (Fleet, parts.Fleet),
    (Holds, parts.Holds),
    (Locks, parts.Locks),
    (Looking, Looks),
    (Queues, parts.Queues),
    (Retention, parts.Retention),
    (Schedules, parts.Schedules),
    (Webhooks, parts.Webhooks),
    (Control, Afar),
)
LESS = {"submit": {"keys", "once", "under"}, "submit_lines": {"once"}, "sweep": {"rest", "monotonic"}}
"""Parameters that no command uses."""
OWN = {"job_files", "clock"}
"""What only the twin has, or has as a field."""
AT_HAND = ("doctoring", "rehoming", "serving", "setup", "moving")
"""Commands that are refused through a server."""


@pytest.mark.parametrize(("real", "twin"), TWINS)
def test_a_twin_is_called_as_the_real_one_is(real: type, twin: type) -> None:
    for name, method in _methods(twin):
        if name not in OWN:
            given = inspect.signature(method).parameters
            wanted = inspect.signature(getattr(real, name)).parameters
            kept = [p for p in wanted.values() if p.name not in LESS.get(name, ())]
            assert [_form(p) for p in given.values()] == [_form(p) for p in kept], f"{twin.__name__}.{name}"


def test_a_twin_has_all_that_commands_use() -> None:
    twins = {
        "look": Looks,
        "accounts": parts.Accounts,
        "bulk": AfarBulk,
        "fleet": parts.Fleet,
        "holds": parts.Holds,
        "locks": parts.Locks,
        "queues": parts.Queues,
        "retention": parts.Retention,
        "webhooks": parts.Webhooks,
        "schedules": parts.Schedules,
    }
    used = set()
    for file in Path(inspect.getfile(cli)).parent.glob("*.py"):
        if file.stem not in AT_HAND:
            text = file.read_text()
            used |= set(re.findall(r"\bcontrol\.([a-z]+)\.([a-z_]+)\(", text))
            used |= {("look", name) for name in re.findall(r"\blook\.([a-z_]+)\(", text)}
    assert len(used) > 40
    missing = {(part, name) for part, name in used if part != "store" and not hasattr(twins[part], name)}
    assert not missing


def _methods(twin: type) -> Iterator[tuple[str, Callable[..., object]]]:
    for name, member in inspect.getmembers(twin, inspect.isfunction):
        if not name.startswith("_"):
            yield name, member


def _form(parameter: inspect.Parameter) -> tuple[str, object, bool]:
    return parameter.name, parameter.kind, parameter.default is inspect.Parameter.empty
