"""Commands that look at the store again and again go on when it is back."""

import json
from itertools import count
from typing import Any

import pytest

from spinney.commands import CompletePerformer
from spinney.features.stats import cli as stats_cli
from spinney.model.errors import StoreUnavailable
from spinney.terminal import patience

from .shell import Shell

ANNOUNCED = "spinney: the database is restarted; waiting for it\n"


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store does not answer the second and third command, and at the sixth the user presses Ctrl-C."""
    do, numbers = CompletePerformer.do, count(1)

    def do_or_fail(performer: Any, command: Any, *, tell: Any = None) -> Any:
        number = next(numbers)
        if number in (2, 3):
            raise StoreUnavailable("the database is restarted")
        if number == 6:
            raise KeyboardInterrupt
        return do(performer, command, tell=tell)

    monkeypatch.setattr(CompletePerformer, "do", do_or_fail)
    monkeypatch.setattr(patience, "AGAIN_S", 0.0)
    monkeypatch.setattr(stats_cli, "EVERY_S", 0.0)


@pytest.fixture
def settled(shell: Shell) -> Shell:
    """A store with one job, which has settled."""
    shell.ok("submit", "double", "-p", "n=1")
    shell.ok("cancel", "1")
    return shell


def test_following_logs_goes_on(settled: Shell, outage: None) -> None:
    result = settled.call("logs", "1", "--follow")

    assert (result.returncode, result.stderr) == (0, f"{ANNOUNCED}spinney: job 1 has no output\n")


def test_watching_statistics_goes_on(settled: Shell, outage: None) -> None:
    result = settled.call("stats", "--watch", "--json")

    assert result.stderr.startswith(ANNOUNCED)
    # Of the commands 1, 4 and 5.
    assert [json.loads(line)["states"] for line in result.stdout.splitlines()] == [{"cancelled": 1}] * 3
