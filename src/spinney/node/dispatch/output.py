"""The pump: it reads the output of workers and assigns it to attempts.

It is a thread outside the event loop, so that a slow disk never blocks the supervisor. It reads the two pipes of each
worker and appends to ``<job folder>/.spinney/<stage>.<fence>.stdout`` and ``….stderr``: at once when it is certain
whose bytes they are, so that output is readable while the stage runs, and at the latest when the mark behind them
arrives (``workers.boundaries``).

*Whose are bytes without a mark behind them?* The worker sets an attempt's mark before it takes the
attempt off its page, and puts the next one on the page after that. So when the page shows the same attempt before and
after a read that emptied the pipe, every earlier mark was in the bytes that were read, and the bytes behind the last
mark are that attempt's. When it shows none before and after, and the number of ended attempts has not changed either,
none has passed in between: the bytes are what the application printed while the worker was idle, and go to the worker's
log. Otherwise the pump waits for the mark, or for the next read.

After the end of a worker and of all its descendants, the rest in its pipes belongs to the attempt that its page shows.
"""

import contextlib
import logging
import os
import queue
import selectors
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from spinney.model.attempts import remarks
from spinney.node.worker.capture import Capture, Loss, WorkerLog
from spinney.node.workers import boundaries
from spinney.node.workers.boundaries import STREAMS
from spinney.node.workers.child import Child
from spinney.node.workers.shared_page import CELL_PUMP, SharedPage

log = logging.getLogger(__name__)

TAIL_BYTES = 256 * 2**10
"""How many bytes from its end are kept when there was more."""
LOG_BYTES = 16 * 2**20
"""The longest log of a worker, before it starts anew."""

_READ_BYTES = 2 * 2**20
"""More than a pipe holds, so that a read empties it. The buffer is reused: for a new one of that size the allocator
would request pages from the kernel each time, which costs more than most reads."""
_LOOK_S = 0.05
"""Seconds until bytes that could not be assigned are checked again."""

Locate = Callable[[int], Path]
"""Returns the path of an attempt's output by its fence, without the suffix: ``<job folder>/.spinney/<stage>.<fence>``.
It is called in the pump's thread, and raises KeyError for an unknown fence."""


@dataclass(slots=True, kw_only=True)
class _Stream:
    """One of the two pipes of a worker. ``unmarked``: bytes that were read and are not assigned to an attempt
    yet."""

    child: "_Child"
    number: int
    fd: int
    unmarked: bytes = b""


@dataclass(slots=True, kw_only=True)
class _Child:
    """What the pump knows of one worker. ``start``: the bytes with which each of its marks begins."""

    page: SharedPage
    start: bytes
    locate: Locate
    log: WorkerLog
    streams: list[_Stream] = field(default_factory=list)
    captures: dict[tuple[int, str], Capture] = field(default_factory=dict)
    losses: dict[int, list[Loss]] = field(default_factory=dict)
    """The output that could not be written, by fence, until it is reported."""
    half_marked: set[int] = field(default_factory=set)
    """Fences whose mark has been seen in one of the two streams."""


class Pump:
    """The pump's thread and its state. All methods may be called in any thread and never block."""

    def __init__(
        self,
        on_output_written: Callable[[int, str | None], None],
        *,
        head_bytes: int,
        tail_bytes: int = TAIL_BYTES,
    ) -> None:
        """``on_output_written(fence, remark)``: all output of that attempt is in its files, or ``remark`` says
        that some was lost. Called in the pump's thread, once for each attempt whose row says ``output``.
        ``head_bytes``: how many bytes from the beginning of an attempt's stream are kept."""
        self._on_marked = on_output_written
        self._head_bytes, self._tail_bytes = head_bytes, tail_bytes
        self._children: dict[str, _Child] = {}
        self._doubtful: set[int] = set()
        """Descriptors of streams with bytes that could not be assigned yet."""
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._printed: dict[tuple[str, int, str], bytearray] = {}
        """What ``put`` was given and is not written yet, by child, fence and stream. There is one order for each."""
        self._lock = threading.Lock()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._stopping = False
        self._room = memoryview(bytearray(_READ_BYTES))
        self._thread = threading.Thread(target=self._work, name="pump", daemon=True)
        self._thread.start()

    def add(self, child: Child, locate: Locate) -> None:
        """Add a worker's pipes (their read ends, which belong to the pump from now on).

        Its ``log_file`` gets output that belongs to no attempt. Its page must stay mapped until the future of
        ``remove`` is done."""
        added = _Child(
            page=child.page,
            start=boundaries.boundary_prefix(child.token),
            locate=locate,
            log=WorkerLog(child.log_file, limit_bytes=LOG_BYTES),
        )
        pipes = enumerate((child.stdout_fd, child.stderr_fd))
        added.streams = [_Stream(child=added, number=number, fd=fd) for number, fd in pipes]

        def join() -> None:
            self._children[child.name] = added
            for stream in added.streams:
                os.set_blocking(stream.fd, False)
                self._selector.register(stream.fd, selectors.EVENT_READ, stream)

        self._order(join)

    def remove(self, child: str) -> "Future[dict[int, str]]":
        """Read the rest of a dead worker's pipes, assign it to the attempt that its page shows, and forget the worker.

        It is to be called when no process of the worker is left (``Events.exited``). The future is done when all output
        is in the files; the attempt is to be recorded after that. It has the remarks, by fence, on attempts whose
        output was partly lost and for which ``on_output_written`` was not called."""
        done: Future[dict[int, str]] = Future()

        def leave() -> None:
            removed = self._children.pop(child, None)
            done.set_result({} if removed is None else self._let_go(removed))

        self._order(leave, done)
        return done

    def put(self, child: str, fence: int, stream: str, text: str) -> None:
        """Write what an attempt in a ``--concurrent`` worker has printed.

        Texts that come faster than they are written wait together as the bytes of one write: an order for each would
        take a hundred times as much memory as a short line."""
        key = (child, fence, stream)

        def take() -> None:
            with self._lock:
                data = self._printed.pop(key)
            if (worker := self._children.get(child)) is not None:
                self._write(worker, fence, stream, bytes(data))

        with self._lock:
            if key not in self._printed:
                self._printed[key] = bytearray()
                self._order(take)
            self._printed[key] += text.encode("utf-8", "replace")

    def end(self, child: str, fence: int) -> None:
        """Note that an attempt in a ``--concurrent`` worker has ended; ``on_output_written`` is called when all its
        output is written."""

        def take() -> None:
            if (worker := self._children.get(child)) is not None:
                self._finish(worker, fence, STREAMS)
            self._tell(fence, None if worker is None else _remark(worker, fence))

        self._order(take)

    def close(self) -> None:
        """Stop when all earlier calls are done; this blocks until then. Idempotent."""
        if self._stopping:
            return

        def stop() -> None:
            for child in self._children.values():
                self._let_go(child)
            self._children.clear()
            self._stopping = True

        self._order(stop)
        self._thread.join()
        # Closed here and not in the thread: that may run ``stop`` before ``_order`` has written to the bell.
        os.close(self._bell)

    # --- the thread -----------------------------------------------------------------------

    def _order(self, order: Callable[[], None], done: "Future[dict[int, str]] | None" = None) -> None:
        """Have the pump's thread call ``order``. An error of it is logged, and becomes that of ``done``, if
        given; the thread goes on."""

        def step() -> None:
            try:
                order()
            except Exception as error:
                log.exception("an order of the pump failed")
                if done is not None and not done.done():
                    done.set_exception(error)

        self._orders.put(step)
        os.eventfd_write(self._bell, 1)

    def _work(self) -> None:
        while not self._stopping:
            ready = self._selector.select(_LOOK_S if self._doubtful else None)
            descriptors = {key.fd for key, _ in ready} | self._doubtful
            for fd in descriptors - {self._bell}:
                self._step(self._selector.get_key(fd).data)
            if self._bell in descriptors:
                self._obey()
        self._selector.close()

    def _step(self, stream: _Stream) -> None:
        try:
            self._pull(stream)
        except Exception:
            # After any error, the output of the other workers must flow, and this one's too if it can.
            log.exception("the pump failed on one stream")

    def _obey(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while not self._orders.empty():
            self._orders.get()()

    def _pull(self, stream: _Stream) -> bool:
        """Read once and assign the bytes; return whether there may be more."""
        page = stream.child.page
        # The counter is read before the fence: at the end of an attempt the worker increments the counter first,
        # and then clears the fence.
        done, before = page.done(), page.fence()
        data = _read(stream, page, self._room)
        after = page.fence()
        if data:
            parts, stream.unmarked = boundaries.split(stream.unmarked + data, stream.child.start)
            for fence, text in parts:
                self._marked(stream, fence, text)
        same = before == after and (after != 0 or page.done() == done)
        certain = same and page.lines == 1 and len(data or b"") < _READ_BYTES
        if stream.unmarked and (certain or page.lines > 1):
            self._write(stream.child, after if certain else 0, STREAMS[stream.number], stream.unmarked)
            stream.unmarked = b""
        if stream.unmarked and data != b"":
            self._doubtful.add(stream.fd)
        else:
            self._doubtful.discard(stream.fd)
        if data == b"":
            with contextlib.suppress(KeyError):
                self._selector.unregister(stream.fd)
        return bool(data)

    def _marked(self, stream: _Stream, fence: int, text: bytes) -> None:
        """Assign text to the attempt whose mark follows it. The output of an attempt is complete when its
        mark has come in both streams; then that is reported."""
        name = STREAMS[stream.number]
        if text:
            self._write(stream.child, fence, name, text)
        self._finish(stream.child, fence, (name,))
        half_marked = stream.child.half_marked
        if fence in half_marked:
            half_marked.discard(fence)
            self._tell(fence, _remark(stream.child, fence))
        elif fence:
            half_marked.add(fence)

    def _tell(self, fence: int, remark: str | None) -> None:
        try:
            self._on_marked(fence, remark)
        except Exception:
            # Caught here, because the bytes that were just read may also have output of the attempts after this one.
            log.exception("the end of the output of attempt %d could not be reported", fence)

    def _write(self, child: _Child, fence: int, stream: str, data: bytes) -> None:
        capture = child.captures.get((fence, stream))
        if capture is None:
            place = self._place(child, fence)
            if place is None:
                child.log.write(data)
                return
            path = place.with_name(f"{place.name}.{stream}")
            capture = Capture(path, head_bytes=self._head_bytes, tail_bytes=self._tail_bytes)
            child.captures[(fence, stream)] = capture
        capture.write(data)

    def _place(self, child: _Child, fence: int) -> Path | None:
        """Return where the output of an attempt belongs; None for output of no attempt (fence 0), and where
        the place cannot be found: then it goes to the worker's log rather than being lost."""
        if not fence:
            return None
        try:
            return child.locate(fence)
        except KeyError:
            log.warning("output of the unknown attempt %d goes to its worker's log", fence)
        except Exception:
            log.exception(
                "the folder for the output of attempt %d is not known; it goes to its worker's log", fence
            )
        return None

    def _finish(self, child: _Child, fence: int, streams: tuple[str, ...]) -> None:
        for name in streams:
            capture = child.captures.pop((fence, name), None)
            if capture is not None and (loss := capture.close()) is not None:
                child.losses.setdefault(fence, []).append(loss)

    def _let_go(self, child: _Child) -> dict[int, str]:
        """Read both pipes of a worker to their end and close them. What is behind the last mark belongs to
        the attempt on the page; a worker of many attempts has no such one, and its rest goes to its log.
        Return the remarks on lost output, by fence."""
        for stream in child.streams:
            while self._pull(stream):
                pass
            if stream.unmarked:
                last = child.page.fence() if child.page.lines == 1 else 0
                self._write(child, last, STREAMS[stream.number], stream.unmarked)
            self._doubtful.discard(stream.fd)
            with contextlib.suppress(KeyError):
                self._selector.unregister(stream.fd)
            os.close(stream.fd)
        for fence, name in list(child.captures):
            self._finish(child, fence, (name,))
        return {fence: remark for fence in list(child.losses) if (remark := _remark(child, fence))}


def _remark(child: _Child, fence: int) -> str | None:
    """Return the remark on lost output of an attempt, once."""
    losses = child.losses.pop(fence, None)
    return None if losses is None else remarks.lost(sum(loss.size_bytes for loss in losses), losses[0].why)


def _read(stream: _Stream, page: SharedPage, room: memoryview) -> bytes | None:
    """Read the pipe; None: nothing now, empty: all writers have closed it. ``boundaries`` relies on the order of the
    three writes to cells."""
    at = CELL_PUMP + 2 * stream.number
    page.cells[at] = 1
    try:
        size = os.readv(stream.fd, [room])
        page.cells[at + 1] += size
        return bytes(room[:size])
    except BlockingIOError:
        return None
    finally:
        page.cells[at] = 0
