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

    for step in range(1, 101):
        now_s += 1 / 64
        port.ask("progress", fraction=step / 100, message=None)

    assert supervisor.progress == [*(step / 100 for step in range(1, 100, 7)), 1.0]
