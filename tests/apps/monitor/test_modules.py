"""Python modules as tasks: whatever their checks return is a result of the service."""

from pathlib import Path
from typing import Any

import pytest

from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.settings import Network
from spinney.apps.monitor.tasks import modules
from spinney.apps.monitor.tasks.findings import Finding, error

SERVICE = Service(gid=7, eid=1, uuid="u-7", type="WMS", version="", uri="http://h/x", description="Soil")


def run(folder: Path, returned: Any) -> Finding:
    """What is found where a check returns this."""
    context = modules.Context(timeout_s=20.0, data=folder, network=Network())
    return modules.run(lambda service, context: returned, SERVICE, context)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("ok", "the check returned no Finding"),
        (
            error("boom", OSError("refused")),
            "the info of its Finding is OSError('refused'); it must be a text",
        ),  # type: ignore[arg-type]
        (Finding(code=404), "the code of its Finding is 404; it must be a text"),  # type: ignore[arg-type]
        (Finding(status=None), "the status of its Finding is None; it must be a text"),  # type: ignore[arg-type]
        (Finding(status=""), "its status is ''; it must be a word such as ok"),
        (
            Finding(at_s=float("nan")),
            "the at_s of its Finding is nan; it must be None or a number of seconds",
        ),
        (Finding(at_s="now"), "the at_s of its Finding is 'now'; it must be None or a number of seconds"),  # type: ignore[arg-type]
    ],
)
def test_a_finding_that_cannot_be_recorded_is_an_error_of_the_service(
    returned: Any, sentence: str, tmp_path: Path
) -> None:
    assert run(tmp_path, returned) == error("unreadable_result", sentence)


@pytest.mark.parametrize("at_s", [None, 1.7e9, 1_700_000_000])
def test_a_sound_finding_stays_as_it_is(at_s: float | None, tmp_path: Path) -> None:
    assert run(tmp_path, Finding("odd", "x\x00", "c", at_s)) == Finding("odd", "x\x00", "c", at_s)


def test_a_time_that_no_clock_says_counts_as_none(tmp_path: Path) -> None:
    assert [run(tmp_path, Finding(at_s=at_s)).at_s for at_s in (-5.0, 1e300, 10**400)] == [None, None, None]
