"""The heartbeat: what is said while it fails."""

import logging
import threading

from spinney.model.errors import StoreUnusable
from spinney.node.deadline import Deadline
from spinney.node.heartbeat import Heartbeat


class FullDisk:
    """A store that takes no beat until there is room."""

    def __init__(self) -> None:
        self.room = threading.Event()
        self.beats = 0
        self.changed = threading.Condition()

    def beat(self, node_id: int, *, now_us: int) -> bool:
        with self.changed:
            self.beats += 1
            self.changed.notify_all()
        if not self.room.is_set():
            raise StoreUnusable("the disk that holds it is full")
        return True

    def close(self) -> None:
        pass

    def until(self, beats: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.beats >= beats, 20)


def test_why_beats_fail_is_logged_now_and_then_and_not_each_time(caplog) -> None:
    # Given a heartbeat on a full disk
    caplog.set_level(logging.INFO)
    store, deadline = FullDisk(), Deadline.make()
    heartbeat = Heartbeat(
        lambda: store, 1, deadline=deadline, lease_period_s=3600.0, beat_s=0.001,
        now_us=lambda: 0, on_dead=lambda why: None,
    )  # fmt: skip
    with heartbeat:
        # When many beats fail
        store.until(30)
        # Then the reason stands there once, as an error, and nothing was renewed
        (line,) = caplog.records
        assert line.levelno == logging.ERROR
        assert "the disk that holds it is full" in line.message
        assert not deadline.holds
        # And when it fails anew later, it is said anew
        store.room.set()
        store.until(store.beats + 3)
        store.room.clear()
        store.until(store.beats + 3)
    assert len(caplog.records) == 2
    assert deadline.holds
