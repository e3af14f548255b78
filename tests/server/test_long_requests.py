"""Requests that last longer than a moment, on a real server: what becomes of them when who asks may no more.

The server looks anew at who asks each twentieth of a second here, so that nobody waits for two seconds.
"""

import http.client
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from starlette.responses import Response

from contract.words import RealClock, Site
from http_listener import Listening
from spinney.client import Client
from spinney.client.streaming import CommandLines
from spinney.commands.control import Control
from spinney.features.accounts.commands import (
    AddUser,
    ChangeUser,
    DeleteUser,
    EndSessions,
    ListSessions,
    MakeToken,
    RevokeToken,
    find_token,
)
from spinney.features.bulk.commands import CanaryFields, RunBulk
from spinney.features.jobs.commands import CancelJob
from spinney.folders import folders
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import Forbidden
from spinney.model.jobs import Filter, Lease
from spinney.model.rights.accounts import digest
from spinney.server.application import Parts, make
from spinney.server.http_server import listen_unix
from spinney.service import canary
from spinney.service.sign_in import ClientInfo, SignIn
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.web.api import command_progress
from spinney.web.identity import StoreAuthenticator
from spinney.web.identity.cookies import Cookies
from spinney.web.request_context import now_us
from spinney.web.settings import ServerSettings

from .conftest import store_at

QUICK_S = 0.05
PATIENCE_S = 20.0
SETTINGS = ServerSettings(trusted_header="X-Remote-User", trusted_proxies=("127.0.0.1/32",))
LAB = Rights(role=Role.OPERATOR, within=AccessScope(collections=("lab",)))
FISH = Rights(role=Role.OPERATOR, within=AccessScope(collections=("fish",)))
HOUR_US = 3_600_000_000


@dataclass
class Hall:
    """A server with its store, and people who ask."""

    store: Store
    site: Site
    folders: Path
    socket: Path
    listening: Listening
    names: Iterator[str] = field(default_factory=lambda: (f"ann{n}" for n in count(1)))

    @property
    def control(self) -> Control:
        return Control(store=self.store, clock=now_us, wake_nodes=lambda: None, by="root")

    @property
    def sign_in(self) -> SignIn:
        return SignIn(store=self.store, clock=now_us, wake_nodes=lambda: None, by="root")

    def user(self) -> str:
        """A new one, who sees the collection ``lab``."""
        name = next(self.names)
        self.control.do(AddUser(name=name, rights=LAB))
        return name

    def token(self, name: str) -> dict[str, str]:
        """The header that shows a new token of this user, good for an hour."""
        answer = self.control.do(MakeToken(name="t", owner=name, rights=LAB, expires=now_us() + HOUR_US))
        return {"Authorization": f"Bearer {answer.secret}"}

    def session(self, name: str) -> dict[str, str]:
        """The headers of a browser in which this user has signed in."""
        secret, _ = self.sign_in.login_known(name, visit=ClientInfo())
        cookies = Cookies(key=self.sign_in.secret("session-key"), secure=False)
        cookies.set_session(answer := Response(), secret)
        proof = cookies.proof("session", digest(secret))
        return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-CSRF-Token": proof}

    def proxied(self, name: str) -> dict[str, str]:
        """What a proxy says that has signed this user in."""
        return {"X-Remote-User": name}

    def job(self) -> int:
        return self.site.submit_one(collection="lab", submitter="ann")

    def printing(self, text: bytes) -> tuple[int, Lease]:
        """A job at work, which has printed this."""
        self.job()
        lease = self.site.claim_one()  # that of an earlier test, perhaps
        self.site.start(lease)
        own = folders.make(self.folders, lease.job_id) / folders.OWN
        own.mkdir()
        (own / f"{lease.stage}.{lease.fence}.stdout").write_bytes(text)
        return lease.job_id, lease

    def get(self, path: str, headers: Mapping[str, str], **more: Any) -> httpx.Response:
        return httpx.get(f"{self.listening.url}{path}", headers=headers, timeout=PATIENCE_S, **more)


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    place = tmp_path_factory.mktemp("hall")
    url, root = store_at(place / "spinney.db"), place / "folders"
    store = open_store(url)
    folders.write_token(root, store.facts()["folder_token"])
    app = make(
        Parts(
            settings=SETTINGS,
            open_store=lambda: open_store(url),
            folders=root,
            run_dir=None,
            identity=lambda stores, settings: StoreAuthenticator(stores, settings, kept_s=QUICK_S),
            refresh_s=QUICK_S,
        )
    )
    unix = place / "server.sock"
    listening = Listening(app, SETTINGS, beside=[listen_unix(unix)])
    yield Hall(
        store=store,
        site=Site(store, RealClock()),
        folders=root,
        socket=unix,
        listening=listening,
    )
    listening.end()
    store.close()


class Stream:
    """An answer as it comes, over a connection of its own."""

    def __init__(self, answer: httpx.Response) -> None:
        self._pieces = answer.iter_bytes()
        self.text = b""
        self.cut = False
        """Whether it broke off rather than ended."""

    def until(self, wanted: bytes, start: int = 0) -> None:
        while wanted not in self.text[start:]:
            self.text += next(self._pieces)

    def drain(self) -> None:
        """Read all that still comes, and keep nothing of it."""
        with suppress(StopIteration):
            try:
                while True:
                    next(self._pieces)
            except httpx.RemoteProtocolError:
                self.cut = True

    def rest(self) -> bytes:
        """All that still comes."""
        begun = len(self.text)
        try:
            for piece in self._pieces:
                self.text += piece
        except httpx.RemoteProtocolError:
            self.cut = True
        return self.text[begun:]


@contextmanager
def streaming(hall: Hall, path: str, headers: Mapping[str, str]) -> Iterator[Stream]:
    with httpx.stream("GET", f"{hall.listening.url}{path}", headers=headers, timeout=PATIENCE_S) as answer:
        assert answer.status_code == 200, answer.read()
        yield Stream(answer)


def told_last(text: bytes) -> Any:
    """What the last event says, which has to be the end."""
    *_, last, _ = text.split(b"\n\n")
    assert last.startswith(b"id:\nevent: end\ndata: "), text
    return orjson.loads(last.partition(b"data: ")[2])


Change = Callable[[Hall, str, pytest.MonkeyPatch], object]


def later(hall: Hall, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day goes by."""
    monkeypatch.setattr("spinney.web.identity.authenticator.now_us", lambda: now_us() + 24 * HOUR_US)


CHANGES: dict[str, Change] = {
    "revoked": lambda hall, name, _: hall.control.do(
        RevokeToken(token=find_token(hall.control, "t", name).id)
    ),
    "ended": lambda hall, name, _: hall.control.do(EndSessions(name=name)),
    "disabled": lambda hall, name, _: hall.control.do(ChangeUser(name=name, disabled=True)),
    "deleted": lambda hall, name, _: hall.control.do(DeleteUser(name=name)),
    "expired": later,
}
LOST = [
    *[("token", change, 401) for change in ("revoked", "disabled", "deleted", "expired")],
    *[("session", change, 401) for change in ("ended", "disabled", "deleted", "expired")],
    *[("proxied", change, 403) for change in ("disabled", "deleted")],
]


@pytest.mark.parametrize(("way", "change", "status"), LOST)
def test_given_who_watches_and_may_no_more_then_the_stream_says_why_and_ends(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, way: str, change: str, status: int
) -> None:
    name, job = hall.user(), hall.job()
    headers = getattr(hall, way)(name)
    path = f"/events?topic=job:{job}"

    with streaming(hall, path, headers) as stream:
        stream.until(b'"pending"')
        CHANGES[change](hall, name, monkeypatch)
        end = told_last(stream.rest())

    assert not stream.cut
    assert end["status"] == status
    assert end["next"]
    again = hall.get(path, headers)
    assert again.status_code == status


@pytest.mark.parametrize(("way", "change", "status"), LOST)
def test_given_who_follows_output_and_may_no_more_then_it_says_why_and_breaks_off(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, way: str, change: str, status: int
) -> None:
    name = hall.user()
    job, lease = hall.printing(b"first\n")
    headers = getattr(hall, way)(name)
    path = f"/api/v1/jobs/{job}/attempts/{lease.fence}/stdout?follow=true"

    with streaming(hall, path, headers) as stream:
        stream.until(b"first\n")
        CHANGES[change](hall, name, monkeypatch)
        last = stream.rest()

    assert stream.cut, "a program must not take it for the end of the output"
    again = hall.get(path, headers)
    assert again.status_code == status
    assert last.startswith(b"\n[spinney: the output breaks off here: "), last


def test_given_the_client_and_a_token_that_is_revoked_then_it_raises_why(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = hall.user()
    job, lease = hall.printing(b"first\n")
    secret = hall.token(name)["Authorization"].removeprefix("Bearer ")
    with Client(hall.listening.url, token=secret) as client:
        output, events = client.output(job, lease.fence, follow=True), client.watch(f"job:{job}")
        assert next(output) == b"first\n"
        assert next(events).topic == f"job:{job}"

        CHANGES["revoked"](hall, name, monkeypatch)

        for stream in (output, events):
            with pytest.raises(Forbidden, match="revoked; make another"):
                list(stream)


@pytest.mark.parametrize("way", ["token", "session", "proxied"])
def test_given_limits_that_were_narrowed_then_events_are_told_within_them(hall: Hall, way: str) -> None:
    name, job = hall.user(), hall.job()

    with streaming(hall, f"/events?topic=job:{job}", getattr(hall, way)(name)) as stream:
        stream.until(b'"pending"')
        before = len(stream.text)
        hall.control.do(ChangeUser(name=name, rights=FISH))
        stream.until(b"data: ", before)
        stream.until(b"\n\n", before)
        assert orjson.loads(stream.text[before:].partition(b"data: ")[2]) == {"id": job, "state": None}


@pytest.mark.parametrize("way", ["token", "session", "proxied"])
def test_given_limits_that_were_narrowed_then_output_out_of_sight_breaks_off(hall: Hall, way: str) -> None:
    name = hall.user()
    job, lease = hall.printing(b"first\n")
    path = f"/api/v1/jobs/{job}/attempts/{lease.fence}/stdout?follow=true"

    with streaming(hall, path, getattr(hall, way)(name)) as stream:
        stream.until(b"first\n")
        hall.control.do(ChangeUser(name=name, rights=FISH))
        last = stream.rest()

    assert stream.cut
    assert f"there is no job {job}".encode() in last


# --- downloads --------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["disabled", "narrowed"])
def test_given_a_download_whose_rest_may_not_be_had_then_it_breaks_off(hall: Hall, change: str) -> None:
    name, job = hall.user(), hall.job()
    file = folders.make(hall.folders, job) / "large"
    file.touch()
    os.truncate(file, 2**33)  # more than any buffer on the way can take

    with streaming(hall, f"/api/v1/jobs/{job}/files/large", hall.token(name)) as stream:
        stream.until(b"\0")
        if change == "disabled":
            hall.control.do(ChangeUser(name=name, disabled=True))
        else:
            hall.control.do(ChangeUser(name=name, rights=FISH))
        stream.drain()

    assert stream.cut


# --- bodies -----------------------------------------------------------------------------------


class Sending:
    """A request whose body comes as the test says."""

    def __init__(
        self, hall: Hall, method: str, path: str, headers: Mapping[str, str], content_type: str
    ) -> None:
        self._sock = socket.create_connection(("127.0.0.1", hall.listening.port), timeout=PATIENCE_S)
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: localhost",
            "Transfer-Encoding: chunked",
            "Expect: 100-continue",
            f"Content-Type: {content_type}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._sock.sendall("\r\n".join([*lines, "", ""]).encode())
        # The route has begun to read the body: whoever asks is known, and may.
        assert self._sock.recv(1000).startswith(b"HTTP/1.1 100 ")

    def send(self, text: bytes) -> None:
        self._sock.sendall(b"%x\r\n%b\r\n" % (len(text), text))

    def answer(self) -> tuple[int, Any]:
        """Status and content; the server closes the connection behind a refusal of a body."""
        with self._sock:
            response = http.client.HTTPResponse(self._sock)
            response.begin()
            text = response.read()
        return response.status, orjson.loads(text) if text else None


BOUNDARY = "x7MA4YWxk"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
FORM_BEGINS = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="type"\r\n\r\none\r\n'
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
).encode()
BODIES = {
    "file": ("PUT", "/api/v1/jobs/{job}/files/new", "application/octet-stream", b"half"),
    "lines": (
        "POST",
        "/api/v1/jobs/batch",
        "application/x-ndjson",
        b'{"type": "one", "collection": "lab"}\n',
    ),
    "json": ("POST", "/api/v1/jobs", "application/json", b'{"type": "one", '),
    "verb": ("POST", "/api/v1/jobs/{job}/cancel", "application/json", b'{"reason": '),
    "form": ("POST", "/submit", FORM, FORM_BEGINS),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("way", "change", "status"),
    [
        ("token", "revoked", 401),
        ("token", "expired", 401),
        ("session", "ended", 401),
        ("session", "disabled", 401),
    ],
)
def test_given_a_body_whose_sender_may_no_more_then_it_is_refused_before_its_end_and_nothing_is_done(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, body: str, way: str, change: str, status: int
) -> None:
    name, job = hall.user(), hall.job()
    method, path, content_type, begins = BODIES[body]
    before = hall.store.counts(Filter())

    sending = Sending(hall, method, path.format(job=job), getattr(hall, way)(name), content_type)
    sending.send(begins)
    CHANGES[change](hall, name, monkeypatch)
    answered, problem = sending.answer()

    assert answered == status
    assert problem["next"]
    assert hall.store.counts(Filter()) == before
    assert not (folders.make(hall.folders, job) / "new").exists()


def test_given_jobs_in_lines_and_limits_that_were_narrowed_then_those_in_force_at_the_end_count(
    hall: Hall,
) -> None:
    name = hall.user()
    method, path, content_type, line = BODIES["lines"]
    before = hall.store.counts(Filter())

    sending = Sending(hall, method, path, hall.token(name), content_type)
    sending.send(line)
    hall.control.do(ChangeUser(name=name, rights=FISH))
    time.sleep(2 * QUICK_S)  # older than that no answer may be by which the server goes
    sending.send(line)
    sending.send(b"")
    answered, problem = sending.answer()

    assert answered == 403
    assert "is limited to collection" in problem["detail"]
    assert hall.store.counts(Filter()) == before


# --- verbs over many jobs ---------------------------------------------------------------------


@pytest.mark.parametrize("change", ["revoked", "narrowed"])
def test_given_a_verb_over_many_jobs_and_rights_that_change_then_it_stops_between_two_steps(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    name = hall.user()
    _, lease = hall.printing(b"")
    hall.site.fail(lease)
    order = {
        "verb": "retry",
        "ids": [lease.job_id, hall.job()],
        "canary": {"first": 1, "stop_at": 0.5, "patience_s": 3600},
    }
    headers = hall.token(name) | {"Accept": "application/x-ndjson"}

    with httpx.stream(
        "POST", f"{hall.listening.url}/api/v1/jobs/verbs", headers=headers, json=order, timeout=PATIENCE_S
    ) as answer:
        lines = answer.iter_lines()
        assert "step" in orjson.loads(next(lines))
        if change == "revoked":
            CHANGES["revoked"](hall, name, monkeypatch)
        else:
            hall.control.do(ChangeUser(name=name, rights=FISH))
        *_, last = lines

    problem = orjson.loads(last)["problem"]
    assert problem["status"] == 403
    assert "stopped between two steps" in problem["detail"]


def test_given_a_verb_that_has_nothing_to_report_then_empty_lines_show_that_it_goes_on(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would end a silent connection, and a client could not know whether the server is still there."""
    monkeypatch.setattr(canary, "LOOK_S", 0.5)
    monkeypatch.setattr(command_progress, "BEAT_S", 0.1)
    _, lease = hall.printing(b"")
    hall.site.fail(lease)
    trial = CanaryFields(first=1, stop_at=0.5, patience_s=0.4)
    retry = RunBulk(verb="retry", ids=[lease.job_id, hall.job()], canary=trial)

    response = httpx.post(
        f"{hall.listening.url}/api/v1/jobs/verbs",
        headers=hall.token(hall.user()) | {"Accept": "application/x-ndjson"},
        json=retry.model_dump(mode="json", exclude_unset=True),
        timeout=PATIENCE_S,
    )

    assert "\n\n" in response.text
    answer = CommandLines(retry, None)
    for line in response.text.splitlines():
        answer.take(line)
    assert answer.report.touched == 1


# --- what goes on -----------------------------------------------------------------------------


def test_given_a_peer_at_the_unix_socket_then_it_is_looked_at_anew_and_its_stream_goes_on(hall: Hall) -> None:
    job = hall.job()
    with (
        httpx.Client(transport=httpx.HTTPTransport(uds=str(hall.socket)), timeout=PATIENCE_S) as client,
        client.stream("GET", f"http://localhost/events?topic=job:{job}") as answer,
    ):
        stream = Stream(answer)
        stream.until(b'"pending"')
        hall.control.do(CancelJob(job=job))
        stream.until(b'"cancelled"')
        assert b"event: end" not in stream.text


def test_given_a_session_then_a_stream_is_no_use_of_it_that_keeps_it_from_ending(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, job = hall.user(), hall.job()
    headers = hall.session(name)
    (before,) = hall.control.do(ListSessions(name=name)).items
    hour_later = now_us() + HOUR_US

    with streaming(hall, f"/events?topic=job:{job}", headers) as stream:
        stream.until(b'"pending"')
        monkeypatch.setattr("spinney.web.identity.authenticator.now_us", lambda: hour_later)
        hall.control.do(CancelJob(job=job))
        stream.until(b'"cancelled"')  # told after who watches was looked at an hour later
        (after,) = hall.control.do(ListSessions(name=name)).items
        assert after.seen_us == before.seen_us

        assert hall.get("/api/v1/jobs", headers).status_code == 200
        (used,) = hall.control.do(ListSessions(name=name)).items
        assert used.seen_us == hour_later
