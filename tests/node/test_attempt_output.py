"""What an attempt of a ``--concurrent`` worker prints is sent whole and in order, whoever prints it and when."""

import gc
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from spinney.node.worker.attempt_output import AttemptOutput
from spinney.node.worker.ports import RequestMultiplexer
from spinney.node.workers.wire import LIMIT_BYTES, Channel, Decoder, pack


class Noisy:
    """Garbage in a cycle that does something when it is collected, as asyncio's tasks do that nobody awaits."""

    def __init__(self, say: Callable[[], None]) -> None:
        self.cycle, self.say = self, say

    def __del__(self) -> None:
        self.say()


def ends(work: Callable[[], None]) -> bool:
    """Run it in a thread; return whether it ends."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


def test_a_finalizer_that_prints_while_output_is_sent_is_no_deadlock() -> None:
    """Given garbage that prints when it is collected, when that happens while a line or the rest is sent, then its
    line is sent behind that."""
    lines: list[str] = []

    def send(fence: int, stream: str, text: str) -> None:
        lines.append(text)
        gc.collect()  # as the allocation of the message may do

    output = AttemptOutput(1, send)

    def prints() -> None:
        Noisy(lambda: output.write("stdout", "gone\nrest of it, "))
        output.write("stdout", "line\nbegun, ")
        Noisy(lambda: output.write("stdout", "gone too\n"))
        output.write("stderr", "aside")
        output.flush()

    gc.collect()
    gc.disable()
    try:
        assert ends(prints)
    finally:
        gc.enable()
    assert lines[:2] == ["line\n", "begun, gone\n"]
    assert sorted(lines[2:]) == ["aside", "gone too\n", "rest of it, "]


def test_a_finalizer_that_prints_while_a_message_is_sent_is_no_deadlock() -> None:
    """Given garbage that prints when it is collected, when that happens inside the sending of another message, then
    both messages arrive whole, one after the other."""
    supervisor, worker = socket.socketpair()

    class CollectingChannel(Channel):
        def send(self, message: Any) -> None:
            data = pack(message)
            worker.sendall(data[:3])
            gc.collect()
            worker.sendall(data[3:])

    with supervisor, worker:
        requests = RequestMultiplexer(CollectingChannel(worker))
        output = AttemptOutput(1, lambda fence, stream, text: requests.send({"output": text}))

        def sends() -> None:
            Noisy(lambda: output.write("stdout", "gone\n"))
            requests.send({"done": 1})
            assert not requests.busy()

        gc.collect()
        gc.disable()
        try:
            assert ends(sends)
        finally:
            gc.enable()
        assert Decoder().feed(supervisor.recv(2**16)) == [{"done": 1}, {"output": "gone\n"}]


def test_a_thread_that_prints_in_a_finalizer_while_it_sends_waits_for_no_other_thread() -> None:
    """Given two threads of one attempt, of which one is sending its output and waits for the other, when garbage prints
    in that one, then the text is left to the first."""
    lines: list[str] = []
    sending, other_has_printed = threading.Event(), threading.Event()

    def send(fence: int, stream: str, text: str) -> None:
        lines.append(text)
        sending.set()
        assert other_has_printed.wait(10)

    output = AttemptOutput(1, send)
    first = threading.Thread(target=output.write, args=("stdout", "first\n"), daemon=True)
    first.start()
    assert sending.wait(10)
    assert ends(lambda: output.write("stdout", "second\n"))
    other_has_printed.set()
    output.finish()
    assert lines == ["first\n", "second\n"]
    first.join(10)


@pytest.mark.parametrize("character", ["x", "\0", "\U0001f332"])
def test_a_print_that_is_longer_than_a_message_is_sent_in_pieces(character: str) -> None:
    """Given a text whose message would be too long, when it is printed in one piece, then all of it is sent."""
    text = character * (LIMIT_BYTES // len(character.encode()) + 1) + "\n"
    sizes, pieces = [], []

    def send(fence: int, stream: str, text: str) -> None:
        sizes.append(len(pack({"output": [fence, stream, text]})))
        pieces.append(text)

    AttemptOutput(1, send).write("stdout", text)
    assert "".join(pieces) == text
    assert max(sizes) < LIMIT_BYTES / 4
