"""Requests: one job for what is asked for, and a token that leads to it."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from spinney.apps.ingest.access import forecast, tickets
from spinney.apps.ingest.access.packages import Package
from spinney.apps.ingest.access.requests import LARGE, SMALL, look, request
from spinney.apps.ingest.access.tickets import Status, Ticket
from spinney.commands.control import Control
from spinney.containers.pack import Format
from spinney.features.holds.commands import LayHold
from spinney.features.jobs.commands import CancelJob
from spinney.features.nodes.commands import DrainNode
from spinney.features.queues.commands import ChangeQueue
from spinney.files.paths import NotAdmitted
from spinney.model.errors import Refused
from spinney.model.jobs import ClaimRequest, LaneRequest, SlotRequest
from spinney.model.queue_selection import QueueSelection
from spinney.model.settings.holds import Scope
from spinney.model.states import State

from ..places import everywhere
from .filled_service import ARK, WHEN, Service


def test_a_request_answers_at_once_with_token_status_and_time(archive: Service) -> None:
    archive.holds({"a": b"x" * 1000})
    before = datetime.now(UTC)

    with archive.control() as control, archive.node(control.store):
        ticket = request(control, archive.settings, "ark:99999/fk4-abc")
        job = control.store.job(ticket.job)

    assert (ticket.ark, ticket.version, ticket.status, ticket.size_bytes) == (ARK, 1, Status.QUEUED, 1000)
    assert before < ticket.anticipated < before + timedelta(minutes=1)
    assert (ticket.path, ticket.url, ticket.expires) == (None, None, None)
    assert (job.type, job.queue, job.submitter) == ("ingest.access", SMALL, "ann")


def test_the_queue_is_chosen_by_size(archive: Service) -> None:
    archive.holds({"a": b"x" * 1000})
    small = archive.settings
    large = small.model_copy(update={"access": small.access.model_copy(update={"small_bytes": 999})})

    with archive.control() as control:
        queues = [
            queue_of(control, request(control, holding, ARK, format_=f))
            for holding, f in ((small, Format.ZIP), (large, Format.TAR))
        ]

    assert queues == [SMALL, LARGE]


def test_the_same_request_has_the_same_token_and_another_has_another(archive: Service) -> None:
    archive.holds({"a": b"1"})
    archive.holds({"a": b"2"}, version=2)

    with archive.control() as control:

        def token(**options: object) -> str:
            return request(control, archive.settings, ARK, **options).token

        assert token() == token(version=2) == token(version=2, format_=Format.ZIP, submitter="bob")
        assert len({token(), token(version=1), token(format_=Format.TAR), token(format_=Format.TAR_GZ)}) == 4


@everywhere
def test_many_who_ask_at_once_get_one_job(archive: Service) -> None:
    archive.holds({"a": b"1"})
    begin, tokens = threading.Barrier(5), []

    def ask() -> None:
        with archive.control() as control:
            begin.wait()
            tokens.append(request(control, archive.settings, ARK).token)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(tokens) == 5
    assert len(set(tokens)) == 1


@pytest.mark.parametrize(
    "token",
    [
        "",
        "1",
        "1-",
        "../../etc/passwd",
        "1-" + "0" * 32,
        "999999999999-" + "0" * 32,
        "9" * 99 + "-" + "0" * 32,
        "²-a",
    ],
)
def test_a_token_cannot_be_guessed(archive: Service, token: str) -> None:
    archive.holds({"a": b"1"})
    with archive.control() as control:
        ticket = request(control, archive.settings, ARK)
        assert look(control, archive.settings, ticket.token).ark == ARK

        with pytest.raises(Refused, match="no request with this token"):
            look(control, archive.settings, token)


def test_what_is_not_there_is_refused_by_name(archive: Service) -> None:
    archive.holds({"a": b"1"})
    with archive.control() as control:
        with pytest.raises(Refused, match="ark:/99999/other is not in the inventory"):
            request(control, archive.settings, "ark:/99999/other")
        with pytest.raises(Refused, match="no version 7; it has: 1"):
            request(control, archive.settings, ARK, version=7)
        with pytest.raises(NotAdmitted, match="no ARK"):
            request(control, archive.settings, "../etc")


def test_a_cancelled_request_goes_on_under_its_token_when_it_is_asked_again(archive: Service) -> None:
    archive.holds({"a": b"1"})
    with archive.control() as control:
        first = request(control, archive.settings, ARK)
        control.do(CancelJob(job=first.job))
        assert look(control, archive.settings, first.token).status is Status.FAILED

        again = request(control, archive.settings, ARK)

    assert (again.token, again.status) == (first.token, Status.QUEUED)


@pytest.mark.parametrize("held", [SMALL, LARGE])
def test_each_queue_is_held_apart(archive: Service, held: str) -> None:
    archive.holds({"a": b"1"})
    with archive.control() as control, archive.node(control.store):
        control.do(LayHold(scope=Scope.QUEUE, name=held, reason="disks are moved"))

        ticket = request(control, archive.settings, ARK)

    assert ticket.status is (Status.HELD if held == SMALL else Status.QUEUED)
    assert (ticket.anticipated is None) == (held == SMALL)


def test_what_is_before_it_is_waited_for(archive: Service) -> None:
    for n in range(3):
        archive.holds({"a": b"x" * 1000}, ark=f"ark:/99999/{n}")
    slow = archive.settings
    slow = slow.model_copy(update={"access": slow.access.model_copy(update={"bytes_s": 100.0})})
    now = datetime.now(UTC)

    with archive.control() as control, archive.node(control.store):
        waits = [request(control, slow, f"ark:/99999/{n}").anticipated - now for n in range(3)]

    assert [round(wait / timedelta(seconds=10)) for wait in waits] == [1, 2, 3]


@pytest.mark.parametrize("progress", [None, 0.75])
def test_a_slot_is_waited_for_where_none_is_free(archive: Service, progress: float | None) -> None:
    archive.holds({"a": b"x"})
    with archive.control() as control, archive.node(control.store) as node:
        # Given one slot, in which something has been at work for five minutes
        store, began_us = control.store, control.clock() - 300 * 10**6
        busy = control.submit("ingest.cleaning", [{}], internal=True).ids[0]
        lanes = {("ingest.cleaning", "cleaning"): LaneRequest()}
        want = ClaimRequest(node_id=node, slots=[SlotRequest(0, 1, 0.0, True)], lanes=lanes)
        (lease,) = store.flush_and_claim([], want, now_us=began_us).leases
        store.started([lease.fence], now_us=began_us)
        if progress is not None:
            store.progress(busy, lease.fence, progress, None)
        before = datetime.now(UTC)

        ticket = request(control, archive.settings, ARK)

    rest = timedelta(seconds=300 if progress is None else 100)
    assert rest <= ticket.anticipated - before < rest + timedelta(minutes=1)


def test_nothing_is_foretold_while_nobody_serves_the_queue(archive: Service) -> None:
    archive.holds({"a": b"x"})
    with archive.control() as control:
        answer = request(control, archive.settings, ARK)

        def foretold() -> bool:
            ticket = look(control, archive.settings, answer.token)
            assert ticket.status is Status.QUEUED
            return ticket.anticipated is not None

        assert answer.anticipated is None, "no node is there"
        with archive.node(control.store, serves=QueueSelection(active=(LARGE,))):
            assert not foretold()
        with archive.node(control.store, serves=QueueSelection(active=(SMALL,))):
            assert foretold()
            control.do(ChangeQueue(name=SMALL, limit=0))
            assert not foretold()
            control.do(ChangeQueue(name=SMALL, limit=1))
            assert foretold()
            control.do(DrainNode(node="n1"))
            assert not foretold()


def test_several_at_once_share_what_is_before() -> None:
    assert forecast.wait_s(100, 400, 0, 10) == 50
    assert forecast.wait_s(100, 400, 2, 10) == 30


def test_the_rate_is_that_of_the_last_packages() -> None:
    assert forecast.measured([]) is None
    assert forecast.measured([made(10, 0.001)]) is None  # too short to tell
    assert forecast.measured([made(100, 1), made(300, 1), made(10**9, 1)]) == 300


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("stands", [True, False])
def test_only_what_is_completed_and_stands_is_ready(state: State, stands: bool) -> None:
    is_ready = tickets.status_of(state, is_valid=stands) is Status.READY
    assert is_ready == (stands and state is State.COMPLETED)


def test_tokens_are_in_no_representation(archive: Service) -> None:
    order = tickets.AccessOrder.model_validate(archive.order())
    assert order.secret not in repr(order)


def queue_of(control: Control, ticket: Ticket) -> str:
    return control.store.job(ticket.job).queue


def made(content_bytes: int, seconds: float) -> Package:
    return Package(
        file="a", size_bytes=1, files=1, content_bytes=content_bytes, made=WHEN, expires=WHEN, seconds=seconds
    )
