"""Requests of a running attempt to the supervisor: two implementations of the ``Port`` of ``spinney.define.job``.

Answers to requests arrive on the same socket as new jobs. Where one attempt runs at a time, the requester reads the
socket itself, and puts other messages aside; in a ``--concurrent`` worker one thread reads for all.

Each attempt has a port of its own with its fence: a thread of the application may still have the handle of an attempt
that has ended, and what it asks for must not be done in the name of the next one."""

import os
import threading
from collections import deque
from concurrent.futures import Future
from math import inf
from time import monotonic
from typing import Any

from spinney.model import errors
from spinney.node.workers.shared_page import CELL_CANCEL, SharedPage
from spinney.node.workers.wire import Channel

_PROGRESS_EVERY_S = 0.1
"""How soon after a report of progress another one is not sent that says nearly the same, in seconds: a request takes as
long as thousands of passes of a short loop."""
_PROGRESS_STEP = 0.01
"""The difference of two fractions from which on they do not say nearly the same."""


class SupervisorGone(errors.SpinneyError):
    """The supervisor has ended; this attempt has lost its lease, so stop."""


class SerialChannel:
    """The socket of a worker that runs one attempt at a time, which the loop uses, and the port of each attempt."""

    def __init__(self, channel: Channel, page: SharedPage) -> None:
        self._channel, self._cells = channel, page.cells
        self._inbox: deque[Any] = deque()
        self._number = 0
        self._pid = os.getpid()
        self.fence = 0
        """The fence of the running attempt; 0: none runs. Whoever asks looks at it under ``lock``, which the loop takes
        once more after the last attempt of a list: so no requester reads the socket while the loop does."""
        self.lock = threading.Lock()
        """Held while sending or asking: an attempt may use its handle from several threads."""

    def ask(self, fence: int, verb: str, args: dict[str, Any]) -> Any:
        """Send a request for an attempt, wait, and return the answer. Jobs that come meanwhile are put aside
        for ``receive``.

        Raises what the supervisor refused with, StaleFence when the attempt has ended, SupervisorGone when
        the supervisor has, and UsageError in a forked process."""
        _require_worker(self._pid)
        with self.lock:
            if fence != self.fence:
                raise errors.StaleFence(0, fence)
            self._number += 1
            self._channel.send({"ask": self._number, "fence": fence, "verb": verb, "args": args})
            return self._answer()

    def cancelled(self, fence: int) -> bool:
        """Return whether cancellation of an attempt was requested."""
        return self._cells[CELL_CANCEL] == fence

    def receive(self) -> Any | None:
        """Return the next message that is no answer; None when the supervisor is gone."""
        while (message := self._inbox.popleft() if self._inbox else self._channel.receive()) is not None:
            if "answer" not in message:
                return message
        return None

    def send(self, message: Any) -> None:
        """Send a message; the caller holds ``lock``."""
        self._channel.send(message)

    def _answer(self) -> Any:
        """Return the answer to the last request; the caller holds ``lock``."""
        while (message := self._channel.receive()) is not None:
            if message.get("answer") == self._number:
                return unwrap(message)
            # Jobs that came meanwhile wait. An answer to a request that was interrupted by a signal's exception is
            # dropped.
            if "answer" not in message:
                self._inbox.append(message)
        raise SupervisorGone("the supervisor has ended; this attempt has lost its lease, so stop")


class _SentProgress:
    """The progress that an attempt has sent last."""

    __slots__ = ("_fraction", "_message", "_sent_s")

    def __init__(self) -> None:
        self._fraction, self._sent_s = 0.0, -inf
        self._message: str | None = None

    def is_news(self, fraction: float, message: str | None) -> bool:
        """Return whether to send this, and note it then. The end (1.0) is always sent."""
        now_s = monotonic()
        if (
            now_s - self._sent_s < _PROGRESS_EVERY_S
            and message == self._message
            and abs(fraction - self._fraction) < _PROGRESS_STEP
            and fraction < 1.0
        ):
            return False
        self._fraction, self._message, self._sent_s = fraction, message, now_s
        return True


class SerialPort:
    """The port of one attempt in a worker that runs one at a time."""

    __slots__ = ("_channel", "_fence", "_progress")

    def __init__(self, channel: SerialChannel, fence: int) -> None:
        self._channel, self._fence = channel, fence
        self._progress: _SentProgress | None = None

    def ask(self, verb: str, **args: Any) -> Any:
        """Send a request, wait, and return the answer. Raises as ``SerialChannel.ask``."""
        if verb == "progress":
            self._progress = self._progress or _SentProgress()
            if not self._progress.is_news(**args):
                return None
        return self._channel.ask(self._fence, verb, args)

    def cancelled(self) -> bool:
        """Return whether cancellation of this attempt was requested."""
        return self._channel.cancelled(self._fence)


class RequestMultiplexer:
    """Passes answers to the threads that wait for them. One thread, that of ``ConcurrentWorker.run``, reads
    the socket; any thread may ask."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: dict[int, Future[Any]] = {}
        self._number = 0
        self._lock = threading.RLock()
        self._unsent: deque[Any] = deque()
        self._sending = False
        self._pid = os.getpid()

    def send(self, message: Any) -> None:
        """Send one message; from any thread. In a finalizer that has interrupted the sending of a message in this
        thread (it prints, say) it is sent behind that."""
        with self._lock:
            self._unsent.append(message)
            if self._sending:
                return
            self._sending = True
            try:
                while self._unsent:
                    self._channel.send(self._unsent.popleft())
            finally:
                self._sending = False

    def busy(self) -> bool:
        """Return whether a thread is sending; in a signal handler it may be the interrupted thread itself."""
        return self._sending

    def ask(self, fence: int, verb: str, args: dict[str, Any]) -> Any:
        """Send a request, wait, and return the answer. It blocks the calling thread: in an ``async`` stage
        the whole event loop waits for as long as a request takes.

        Raises what the supervisor refused with, SupervisorGone, and UsageError in a forked process."""
        _require_worker(self._pid)
        answer: Future[Any] = Future()
        with self._lock:
            self._number += 1
            self._waiting[self._number] = answer
            self.send({"ask": self._number, "fence": fence, "verb": verb, "args": args})
        return unwrap(answer.result())

    def answered(self, message: Any) -> None:
        """Pass an answer to its requester; the reading thread calls this."""
        waiting = self._waiting.pop(message["answer"], None)
        if waiting is not None:
            waiting.set_result(message)

    def fail_all(self) -> None:
        """Fail all open requests, because the supervisor is gone."""
        for waiting in list(self._waiting.values()):
            waiting.set_exception(SupervisorGone(SupervisorGone.__doc__))
        self._waiting.clear()


class ConcurrentPort:
    """The port of one attempt in a ``--concurrent`` worker."""

    __slots__ = ("_multiplexer", "_progress", "cancel_requested", "fence")

    def __init__(self, multiplexer: RequestMultiplexer, fence: int) -> None:
        self._multiplexer, self.fence = multiplexer, fence
        self._progress: _SentProgress | None = None
        self.cancel_requested = False
        """Whether cancellation of this attempt was requested."""

    def ask(self, verb: str, **args: Any) -> Any:
        """Send a request, wait, and return the answer. Raises as ``RequestMultiplexer.ask``."""
        if verb == "progress":
            self._progress = self._progress or _SentProgress()
            if not self._progress.is_news(**args):
                return None
        return self._multiplexer.ask(self.fence, verb, args)

    def cancelled(self) -> bool:
        """Return whether cancellation of this attempt was requested."""
        return self.cancel_requested


def unwrap(message: Any) -> Any:
    """Return the value of an answer, or raise its error: an exception of the same class of
    ``spinney.model.errors`` with the same message, as if the store had been called here."""
    if "error" not in message:
        return message.get("value")
    name, text = message["error"]
    kind = getattr(errors, name, errors.SpinneyError)
    if not (isinstance(kind, type) and issubclass(kind, errors.SpinneyError)):
        kind = errors.SpinneyError
    # Some of these classes build their message from parts that the answer does not have.
    error = kind.__new__(kind, text)
    Exception.__init__(error, text)
    raise error


def _require_worker(pid: int) -> None:
    """Raise UsageError in a process that user code has forked: two processes that read one socket would each
    get parts of messages."""
    if os.getpid() != pid:
        raise errors.UsageError(
            "the handle of a job works only in the process that the stage was started in; "
            "have the forked process send what it found to the stage, and use the handle there"
        )
