"""The heartbeat: what is said while it fails."""

import logging
import threading

import pytest

from spinney.model.errors import StoreLocked, StoreUnusable
from spinney.model.fleet import Load
from spinney.node.lifecycle.deadline import Deadline, boot_ns
from spinney.node.lifecycle.heartbeat import Heartbeat


class FullDisk:
    """A store that takes no beat until there is room."""

    def __init__(self) -> None:
        self.room = threading.Event()
        self.beats = 0
        self.last_beat: tuple[Load | None, str | None] = (None, None)
        self.changed = threading.Condition()

    def beat(self, node_id: int, *, load: Load | None, trouble: str | None, now_us: int) -> bool:
        self.last_beat = (load, trouble)
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
        lambda: store,
        1,
        deadline=deadline,
        lease_period_s=3600.0,
        beat_s=0.001,
        now_us=lambda: 0,
        on_dead=lambda why: None,
    )
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


class LockedFile(FullDisk):
    """A store that another program has locked until there is room; others are kept out where they can be."""

    def __init__(self, *, keeps_out: bool) -> None:
        super().__init__()
        self.keeps_out = keeps_out

    def beat(self, node_id: int, *, load: Load | None, trouble: str | None, now_us: int) -> bool:
        try:
            return super().beat(node_id, load=load, trouble=trouble, now_us=now_us)
        except StoreUnusable as error:
            raise StoreLocked(str(error)) from error

    def keep_out(self, node_id: int) -> bool:
        return self.keeps_out


@pytest.mark.parametrize("keeps_out", [True, False])
def test_without_a_beat_a_node_goes_on_only_where_nobody_can_find_it_dead(keeps_out: bool) -> None:
    store, deadline = LockedFile(keeps_out=keeps_out), Deadline.make()
    heartbeat = Heartbeat(
        lambda: store,
        1,
        deadline=deadline,
        lease_period_s=3600.0,
        beat_s=0.001,
        now_us=lambda: 0,
        on_dead=lambda why: None,
    )
    with heartbeat:
        store.until(2)
        assert heartbeat.held_up
        assert deadline.holds == keeps_out
        store.room.set()
        store.until(store.beats + 3)
        assert not heartbeat.held_up
        assert deadline.holds


def test_each_beat_tells_the_load_of_the_host_and_what_troubles_the_node() -> None:
    store = FullDisk()
    store.room.set()
    troubles = ["the clock is wrong"]
    heartbeat = Heartbeat(
        lambda: store,
        1,
        deadline=Deadline.make(),
        lease_period_s=3600.0,
        beat_s=0.001,
        now_us=lambda: 0,
        on_dead=lambda why: None,
        trouble=lambda: troubles[-1] or None,
    )
    with heartbeat:
        store.until(1)
        load, trouble = store.last_beat
        assert load is not None
        assert load.cpus >= 1
        assert 0 < load.memory_free_bytes <= load.memory_bytes
        assert trouble == "the clock is wrong"
        troubles.append("")
        store.until(store.beats + 2)
        assert store.last_beat[1] is None


def test_a_node_that_comes_too_late_beats_no_more() -> None:
    # Given a machine that has stood still for longer than a lease
    store, deadline, dead = FullDisk(), Deadline.make(), threading.Event()
    store.room.set()
    deadline.renew(boot_ns() - 1)
    heartbeat = Heartbeat(
        lambda: store,
        1,
        deadline=deadline,
        lease_period_s=3600.0,
        beat_s=0.001,
        now_us=lambda: 0,
        on_dead=lambda why: dead.set(),
    )
    with heartbeat:
        # When its heart goes on before its guard does
        assert dead.wait(20)
    # Then it does not look alive once more to whoever is taking its leases away
    assert store.beats == 0
