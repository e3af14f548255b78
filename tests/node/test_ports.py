"""The ports by which attempts ask their supervisor."""

from typing import Any, cast

import pytest

from spinney.node.worker.ports import ConcurrentPort, RequestMultiplexer, SerialChannel, SerialPort


class _Supervisor:
    def __init__(self) -> None:
        self.progress: list[float] = []

    def ask(self, fence: int, verb: str, args: dict[str, Any]) -> None:
        assert (fence, verb) == (7, "progress")
        self.progress.append(args["fraction"])


def _serial(supervisor: _Supervisor) -> SerialPort:
    return SerialPort(cast(SerialChannel, supervisor), 7)


def _concurrent(supervisor: _Supervisor) -> ConcurrentPort:
    return ConcurrentPort(cast(RequestMultiplexer, supervisor), 7)


@pytest.mark.parametrize("port_to", [_serial, _concurrent])
def test_of_progress_in_a_fast_loop_only_some_and_the_end_is_sent(
    port_to: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("spinney.node.worker.ports.monotonic", lambda: now_s)
    supervisor = _Supervisor()
    port = port_to(supervisor)

    for step in range(1, 1001):
        now_s += 1 / 64
        port.ask("progress", fraction=step / 1000, message=None)

    assert supervisor.progress == [*(step / 1000 for step in range(1, 1000, 7)), 1.0]


@pytest.mark.parametrize("port_to", [_serial, _concurrent])
def test_progress_that_says_something_else_is_sent_at_once(
    port_to: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.node.worker.ports.monotonic", lambda: 1000.0)
    supervisor = _Supervisor()
    port = port_to(supervisor)

    for fraction, message in [
        (0.5, "copies"),
        (0.5, "copies"),
        (0.5, "checks"),
        (0.509, "checks"),
        (0.51, "checks"),
    ]:
        port.ask("progress", fraction=fraction, message=message)

    assert supervisor.progress == [0.5, 0.5, 0.51]
