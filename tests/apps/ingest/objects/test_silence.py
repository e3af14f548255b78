"""Hosts that do not answer: one object tries them, the others rest, and none waits in a slot."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from apps.ingest.objects.scene import Deposit, Service, payload
from apps.ingest.signals import deferral, failure
from apps.ingest.web import Exchange, Web, cut, redirect, status
from spinney.apps.ingest.manifests import PayloadKind
from spinney.testing import StageResult


class Silent:
    """A port at which nobody listens, until somebody does."""

    def __init__(self) -> None:
        self._bound = socket.socket()
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._bound.bind(("127.0.0.1", 0))
        self.port = int(self._bound.getsockname()[1])
        self.host = f"127.0.0.1:{self.port}"

    def listens(self) -> Web:
        self.close()
        return Web(port=self.port)

    def close(self) -> None:
        self._bound.close()


@pytest.fixture
def silent(service: Service) -> Iterator[Silent]:
    server = Silent()
    service.profile(hosts=[service.web.host, server.host])
    service.write(downloads={"tries": 3})
    yield server
    server.close()


def of(service: Service, host: str, number: int = 1, stage: str = "downloading") -> Deposit:
    """An object of that host, which has come to this stage; its size has to be asked for."""
    deposit = service.object(number, payload=payload(PayloadKind.FILE, f"http://{host}/{number}/a", "a"))
    if stage == "downloading":
        deposit.harness.results |= {
            "estimating": {"files": 1, "bytes": 3, "unknown": 0},
            "provisioning": {"bytes": 3},
        }
        row = {"url": f"http://{host}/{number}/a", "name": "a", "size": 3, "digest": None, "mime_type": None}
        (deposit.folder / "wanted.jsonl").write_text(json.dumps(row) + "\n")
    return deposit


def marks(service: Service) -> dict[str, tuple[int, bool]]:
    """Each silent host: how often it was tried, and whether it is being tried."""
    document = (json.loads(path.read_text()) for path in service.settings.unresponsive_hosts.glob("*.json"))
    return {mark["host"]: (mark["tries"], mark["trying"]) for mark in document}


def due(service: Service) -> None:
    """As if the time had come at which hosts are tried again."""
    for path in service.settings.unresponsive_hosts.glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"due_s": 0.0}))


def rested(ran: StageResult, *words: str) -> float:
    """How long."""
    assert ran.outcome == "defer", ran.message
    assert all(word in ran.message for word in words), ran.message
    return deferral(ran).seconds


def test_who_meets_a_silent_host_rests_and_the_rests_grow(service: Service, silent: Silent) -> None:
    deposit = of(service, silent.host)

    first = rested(
        deposit.run("downloading"), f"{silent.host} does not answer (tried once since", "no connection"
    )
    assert 5 < first <= 10
    assert rested(deposit.run("downloading"), "it is tried again at", "tried once") <= first, (
        "and is not asked"
    )
    due(service)
    assert 20 < rested(deposit.run("downloading"), "tried 2 times since") <= 30
    assert marks(service) == {silent.host: (2, False)}


def test_others_rest_without_asking_and_go_on_when_the_host_answers(service: Service, silent: Silent) -> None:
    one, other, elsewhere = (
        of(service, silent.host),
        of(service, silent.host, 2),
        of(service, service.web.host, 3),
    )
    service.web.put("/3/a", b"map")
    rested(one.run("downloading"))
    with silent.listens() as web:
        for number in (1, 2):
            web.put(f"/{number}/a", b"map")

        rested(other.run("downloading"), silent.host, "tried again at")
        assert elsewhere.run("downloading").outcome == "ok"
        assert web.log == []
        due(service)
        assert one.run("downloading").outcome == "ok"
        assert marks(service) == {}
        assert other.run("downloading").outcome == "ok"
    assert "silent" not in one.harness.data
    assert "silent" not in other.harness.data


def test_one_tries_while_the_others_rest(service: Service, silent: Silent) -> None:
    one, other = of(service, silent.host), of(service, silent.host, 2)
    rested(one.run("downloading"))
    due(service)
    connected, answers = threading.Event(), threading.Event()

    def slowly(x: Exchange) -> None:
        connected.set()
        answers.wait(30)
        x.well()

    with silent.listens() as web:
        web.put("/1/a", b"map", slowly)
        web.put("/2/a", b"map")
        trying = threading.Thread(target=one.run, args=("downloading",))
        trying.start()
        assert connected.wait(30)
        assert 60 < rested(other.run("downloading"), "it is being tried") < 300, "longer than a try is silent"
        assert marks(service) == {silent.host: (1, True)}
        answers.set()
        trying.join()
        assert one.harness.results["downloading"]["files"] == 1
        assert other.run("downloading").outcome == "ok"


def test_who_comes_to_fail_for_something_else_gives_its_try_back(service: Service, silent: Silent) -> None:
    one = of(service, silent.host)
    rested(one.run("downloading"))
    due(service)
    assert one.beside(f"download:{silent.host}").run("downloading").outcome == "locked"
    assert marks(service) == {silent.host: (1, False)}


def test_it_fails_when_the_host_was_tried_so_often_by_whomever(service: Service, silent: Silent) -> None:
    one, other = of(service, silent.host), of(service, silent.host, 2)
    rested(one.run("downloading"))
    rested(other.run("downloading"))
    due(service)
    rested(other.run("downloading"))
    due(service)
    rested(other.run("downloading"))  # the third in all, the second that the other knows of

    ran = one.run("downloading")

    assert not failure(ran).retryable
    assert ran.message.startswith(f"{silent.host} has not answered 3 tries since ")
    due(service)
    assert other.run("downloading").message.startswith(
        f"'a' could not be fetched: {silent.host} has not answered 3"
    )
    # Sent back, it begins anew.
    assert "silent" not in one.harness.data
    rested(one.run("downloading"), "tried 4 times since")


def test_a_file_behind_which_its_host_falls_silent_fails_though_others_come(
    service: Service, silent: Silent
) -> None:
    one = of(service, silent.host)
    for tries in (1, 2):
        assert "tried once" in one.run("downloading").message, tries
        for path in service.settings.unresponsive_hosts.glob("*.json"):
            path.unlink()  # it answered somebody
    assert "has not answered 3 tries since" in one.run("downloading").message


def test_a_redirect_to_a_silent_host_is_met_and_waited_for(service: Service, silent: Silent) -> None:
    one, other = of(service, service.web.host), of(service, service.web.host, 2)
    for number in (1, 2):
        service.web.put(f"/{number}/a", always=redirect(f"http://{silent.host}/x"))
    rested(one.run("downloading"), silent.host)
    due(service)
    rested(other.run("downloading"), silent.host, "tried once")
    rested(other.run("downloading"), silent.host, "tried 2 times")
    assert rested(one.run("downloading"), "tried 2 times") > 20
    assert service.web.request_count("/1/a") == 1, "its host is known by now"


def test_tries_are_all_tries_of_a_file(service: Service, silent: Silent) -> None:
    service.write(downloads={"tries": 2})
    one = of(service, service.web.host)
    service.web.put("/1/a", b"map", cut(1), always=status(503))
    ran = one.run("downloading")
    assert not failure(ran).retryable
    assert "answers 503; try again later (tried 2 times)" in ran.message


def test_sizes_are_waited_for_and_then_left_unknown(service: Service, silent: Silent) -> None:
    one = of(service, silent.host, stage="estimating")
    for _ in range(3):
        rested(one.run("estimating"), silent.host)
        due(service)

    ran = one.run("estimating")

    assert (ran.outcome, ran.value["unknown"]) == ("warning", 1)
    ran = one.to("downloading", "provisioning")
    assert "has not answered 3 tries since" in ran.message, "it was tried once more"


def test_a_silent_host_is_not_asked_for_a_size_that_was_given(service: Service, silent: Silent) -> None:
    file_payload = payload(PayloadKind.FILE, f"http://{silent.host}/a", "a", size_bytes=3)
    ran = service.object(payload=file_payload).run("estimating")
    assert (ran.outcome, ran.value) == ("ok", {"files": 1, "bytes": 3, "unknown": 0}), (
        "what the depositor gave counts"
    )
    assert marks(service) == {}


def test_a_server_that_leaves_head_unanswered_is_asked_for_its_files(
    service: Service, silent: Silent
) -> None:
    service.write(downloads={"tries": 1})
    one = of(service, silent.host, stage="estimating")
    rested(one.run("estimating"))
    assert one.run("estimating").outcome == "warning"
    one.run("provisioning")
    due(service)
    with silent.listens() as web:
        web.put("/1/a", b"map")
        assert one.run("downloading").outcome == "ok"


def test_a_manifest_on_a_silent_host_is_waited_for_and_named(service: Service, silent: Silent) -> None:
    manifest_payload = payload(PayloadKind.OBJECT_MANIFEST, f"http://{silent.host}/m.checkm", "m.checkm")
    one = service.object(payload=manifest_payload)
    for _ in range(2):
        rested(one.run("estimating"), silent.host)
        due(service)
    ran = one.run("estimating")
    assert not failure(ran).retryable
    assert ran.message.startswith(
        f"'m.checkm' could not be fetched: {silent.host} has not answered 3 tries since"
    )


def test_a_garbled_mark_is_none(service: Service, silent: Silent) -> None:
    one = of(service, silent.host)
    rested(one.run("downloading"))
    for path in service.settings.unresponsive_hosts.glob("*.json"):
        path.write_text("{")
    rested(one.run("downloading"), "tried once")
