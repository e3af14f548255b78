"""What a node tells about a database that is away."""

import logging

import pytest

from spinney.model.errors import StoreMissing, StoreReplaced, StoreUnavailable
from spinney.node.health import AGAIN_S, QUIET_S, REMEMBERED_S, NodeHealth
from spinney.node.retry_delays import RetryDelays

GONE = StoreUnavailable("db cannot be reached: it is gone; start it")


class HealthScene:
    """The health of a node with clocks of its own, and the messages that it logged."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        self.now, self.held, self._caplog = 100.0, 0, caplog
        self.health = NodeHealth(
            held_back=lambda: self.held, monotonic=lambda: self.now, wall=lambda: 43_200.0 + self.now - 100.0
        )

    @property
    def log(self) -> list[str]:
        return [record.getMessage() for record in self._caplog.records]


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> HealthScene:
    return HealthScene(caplog)


def test_it_is_told_once_when_it_begins_now_and_then_and_when_it_is_over(scene: HealthScene) -> None:
    for _ in range(21):
        scene.health.failed("reader", GONE)
        scene.health.failed("writer", GONE)
        scene.held += 1
        scene.now += AGAIN_S / 10
    scene.health.failed("writer", GONE)
    scene.health.worked("reader")
    scene.health.worked("writer")
    assert len(scene.log) == 3, "nothing is over while it may fail again at once"
    scene.now += QUIET_S
    scene.health.worked("reader")
    begun, still, again, reset = scene.log
    assert begun == f"degraded: {GONE}; running attempts continue, and are recorded when that is fixed"
    assert still.startswith("degraded for 10 s, 10 records held back: db cannot be reached")
    assert again.startswith("degraded for 20 s, 20 records held back")
    assert reset == "no longer degraded, after 21.0 s in which up to 21 records were held back"


def test_a_node_that_finds_no_store_ends_and_is_not_called_degraded(scene: HealthScene) -> None:
    missing = StoreMissing("there is no store")

    scene.health.failed("reader", missing)

    assert scene.log == []
    scene.health.worked("reader")
    scene.health.failed("reader", missing)
    assert scene.log == [
        f"degraded: {missing}; running attempts continue, and are recorded when that is fixed"
    ]


def test_a_node_whose_store_was_replaced_ends_and_promises_no_record(scene: HealthScene) -> None:
    scene.health.worked("reader")

    scene.health.failed("writer", StoreReplaced("the store's file was replaced"))

    assert scene.log == []


def test_it_is_not_over_while_one_of_the_threads_fails(scene: HealthScene) -> None:
    scene.health.failed("writer", GONE)
    scene.now += 10 * QUIET_S
    scene.health.worked("reader")
    assert len(scene.log) == 1


def test_it_is_not_over_between_two_tries_of_one_operation(scene: HealthScene) -> None:
    delays = RetryDelays(draw=lambda: 1.0)
    for _ in range(20):
        scene.health.failed("writer", GONE)
        scene.now += delays.next_s()
        scene.health.worked("writer")  # by something else that writes nothing
    assert not [line for line in scene.log if line.startswith("no longer")]


def test_others_are_told_afterwards_when_and_why_for_a_while(scene: HealthScene) -> None:
    assert scene.health.text() is None
    scene.health.failed("writer", GONE)
    assert scene.health.text() == f"is cut off since 12:00:00 UTC: {GONE}"
    scene.now += 12
    scene.health.failed("writer", GONE)
    scene.now += QUIET_S
    scene.health.worked("writer")
    assert scene.health.text() == f"was cut off 12:00:00 to 12:00:12 UTC: {GONE}"
    scene.now += REMEMBERED_S
    assert scene.health.text() is None


def test_the_heartbeat_may_read_the_trouble_while_its_first_failure_is_being_noted(
    scene: HealthScene, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a healthy node, when the heartbeat's thread reads the trouble at the moment at which the first failure is
    logged, then it gets the whole sentence."""
    texts: list[str | None] = []

    class Heartbeat(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            texts.append(scene.health.text())
            return True

    with caplog.filtering(Heartbeat()):
        scene.health.failed("writer", GONE)
    assert texts == [f"is cut off since 12:00:00 UTC: {GONE}"]


def test_what_is_wrong_beside_the_database_is_told_while_it_lasts(scene: HealthScene) -> None:
    for _ in range(3):
        scene.health.lasts("folders", "the disk of the job folders is full")
    assert scene.health.text() == "the disk of the job folders is full"
    scene.health.lasts("folders", None)
    scene.health.lasts("folders", None)
    assert scene.health.text() is None
    assert scene.log == [
        "degraded: the disk of the job folders is full",
        "no longer degraded; resolved: the disk of the job folders is full",
    ]


def test_a_node_is_degraded_until_each_of_its_troubles_is_over(scene: HealthScene) -> None:
    scene.health.lasts("folders", "the disk of the job folders is full")
    scene.health.lasts("workers", "the node cannot start a worker")
    scene.health.failed("writer", GONE)

    scene.health.lasts("workers", None)
    scene.now += QUIET_S
    scene.health.worked("writer")
    scene.health.lasts("folders", None)

    assert [line.partition(",")[0] for line in scene.log[3:]] == [
        "still degraded; resolved: the node cannot start a worker",
        "the store works again",
        "no longer degraded; resolved: the disk of the job folders is full",
    ]


def test_pauses_grow_to_a_bound_differ_and_begin_anew() -> None:
    draws = iter([0.0, 0.999, 0.5, 0.5, 0.5, 0.5])
    delays = RetryDelays(1.0, 4.0, draw=lambda: next(draws))
    assert [delays.next_s() for _ in range(5)] == pytest.approx([0.5, 2.998, 4.0, 4.0, 4.0])
    delays.reset()
    assert delays.next_s() == 1.0
