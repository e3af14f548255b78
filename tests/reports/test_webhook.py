"""A webhook and a real receiver: what comes there, and what becomes of the job."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from reports.hook_server import Receiver, answer, cut, receiver
from reports.mail_server import free_port
from spinney import Defer, Fail, Spinney
from spinney.define.job.data import Data
from spinney.model.errors import BadParameters
from spinney.reports import Outbox, WebhookSettings, verify
from spinney.testing import StageHarness, StageResult

SECRET = "S3cret-of-the-depositor"
BODY = {"batch": "bid-1", "objects": 3, "title": "Größe", "rate": 0.1}


class Line:
    """A webhook's job, at a time that the test sets."""

    def __init__(self, folder: Path, **outbox: Any) -> None:
        self.now = 1_800_000_000.9
        self.admitted_urls: list[str] = []
        self.settings: dict[str, Any] = {"timeout_s": 5.0}
        self.harness = StageHarness(folder=folder)
        self.outbox = Outbox(
            Spinney(),
            webhook=lambda: WebhookSettings(**self.settings),
            clock=lambda: self.now,
            **({"admit": self.admitted_urls.append} | outbox),
        )

    def call(self, url: str, **params: Any) -> StageResult:
        """Run the stage that calls the webhook once."""
        arguments = {"url": url, "body": BODY, "secret": "depositor-a"} | params
        return self.harness.run(self.outbox.webhook, "calling", **arguments)


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPINNEY_WEBHOOK_SECRET_DEPOSITOR_A", SECRET)


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as receiving:
        yield receiving


# --- taken ------------------------------------------------------------------------------------


def test_the_receiver_can_verify_what_comes(line: Line, there: Receiver) -> None:
    ran = line.call(there.url)

    (call,) = there.calls
    verify(SECRET, call.headers, call.body, line.now)
    assert orjson.loads(call.body) == BODY
    assert call.headers["Spinney-Timestamp"] == "1800000000"
    assert call.headers["Content-Type"] == "application/json"
    assert ran.outcome == "ok"
    assert (ran.value["status"], ran.value["delivery"]) == (204, call.headers["Spinney-Delivery"])
    assert line.admitted_urls == [there.url]


def test_sent_again_it_is_the_same_delivery_signed_afresh(line: Line, tmp_path: Path) -> None:
    with receiver(answer(500), answer(200)) as there:
        first = line.call(there.url)
        line.now += 3600
        second = line.call(there.url)

    assert (first.outcome, second.outcome) == ("defer", "ok")
    assert len({call.headers["Spinney-Delivery"] for call in there.calls}) == 1
    assert len({call.body for call in there.calls}) == 1
    verify(SECRET, there.calls[1].headers, there.calls[1].body, line.now)


def test_a_delivery_may_be_named(line: Line, there: Receiver) -> None:
    line.call(there.url, delivery="bid-1.report-2")

    assert there.calls[0].headers["Spinney-Delivery"] == "bid-1.report-2"


# --- not taken --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500, 503])
def test_other_answers_are_tried_again(line: Line, status: int) -> None:
    with receiver(answer(status, b"not now", Location="http://127.0.0.1:1/")) as there:
        ran = line.call(there.url)

    assert isinstance(ran.signal, Defer)
    assert not ran.signal.lane
    assert 7.5 <= ran.signal.seconds <= 10
    assert f"answered {status}: not now" in ran.message
    assert ("not followed" in ran.message) == (300 <= status < 400)
    assert len(there.calls) == 1


def test_gone_is_for_good(line: Line) -> None:
    with receiver(answer(410)) as there:
        ran = line.call(there.url)

    assert isinstance(ran.signal, Fail)
    assert not ran.signal.retryable
    assert "410" in ran.message


def test_tries_are_finite_and_a_retry_has_all_of_them_again(line: Line) -> None:
    line.settings["tries"] = 3
    with receiver(answer(500)) as there:
        outcomes = [line.call(there.url).outcome for _ in range(4)]

    assert outcomes == ["defer", "defer", "error", "defer"]


def test_a_job_that_completed_has_all_tries_again_when_it_is_rerun(line: Line) -> None:
    """Given a delivery that was accepted at the last try, when its job runs again, then it has all tries again."""
    line.settings["tries"] = 2
    with receiver(answer(503), answer(200), answer(503), answer(200)) as there:
        runs = [line.call(there.url) for _ in range(4)]

    assert [run.outcome for run in runs] == ["defer", "ok", "defer", "ok"]
    assert runs[1].value["tries"] == 2
    assert len({call.headers["Spinney-Delivery"] for call in there.calls}) == 1


def test_a_job_that_an_earlier_version_completed_has_all_tries_when_it_is_rerun(line: Line) -> None:
    """Given an entry that still counts the tries of a delivery that was accepted."""
    line.settings["tries"] = 2
    line.harness.data["webhook"] = {"delivery": "bid-1", "tries": 2, "status": 200, "answer": ""}
    with receiver(cut, cut) as there:
        outcomes = [line.call(there.url).outcome for _ in range(2)]

    assert outcomes == ["defer", "error"]
    assert {call.headers["Spinney-Delivery"] for call in there.calls} == {"bid-1"}


def test_a_job_that_was_refused_has_all_tries_again_when_it_is_retried(tmp_path: Path) -> None:
    """Given a URL that may not be called at the last try, when it may be called and the job is retried."""
    refusals: list[Exception] = []

    def admit(url: str) -> None:
        if refusals:
            raise refusals.pop()

    line = Line(tmp_path, admit=admit)
    line.settings["tries"] = 2
    with receiver(answer(503), answer(503), answer(503)) as there:
        first = line.call(there.url)
        refusals.append(ValueError("the host is in a private network"))
        refused = line.call(there.url)
        retried = line.call(there.url)

    assert [result.outcome for result in (first, refused, retried)] == ["defer", "error", "defer"]


def test_an_accepted_delivery_writes_its_entry_twice(
    line: Line, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given that each write of an entry is one to the store, then there is one before the request and one after."""
    entries: list[Any] = []
    real = Data.__setitem__

    def write(data: Data, name: str, value: Any) -> None:
        entries.append(value)
        real(data, name, value)

    monkeypatch.setattr(Data, "__setitem__", write)

    line.call(there.url)

    assert [entry.get("status") for entry in entries] == [None, 204]


def test_a_try_is_counted_before_it_is_made(tmp_path: Path) -> None:
    """Given a receiver at whose answer the worker dies each time, then the tries come to an end."""

    class Death(BaseException):
        pass

    def dies(request: httpx.Request) -> httpx.Response:
        raise Death

    line = Line(tmp_path, transport=lambda: httpx.MockTransport(dies))
    line.settings["tries"] = 2
    for tries in (1, 2):
        with pytest.raises(Death):
            line.call("http://example.org/")
        assert line.harness.data["webhook"]["tries"] == tries


@pytest.mark.parametrize(
    ("header", "seconds"), [("120", 120), ("1", 10), ("99999999", 21_600), ("nonsense", 10)]
)
def test_retry_after_is_heeded_within_bounds(line: Line, header: str, seconds: float) -> None:
    with receiver(answer(503, Retry_After=header)) as there:
        ran = line.call(there.url)

    assert isinstance(ran.signal, Defer)
    assert seconds * 0.75 <= ran.signal.seconds <= seconds


@pytest.mark.parametrize(
    "url", [lambda: f"http://127.0.0.1:{free_port()}/", lambda: "http://no-such-host.invalid/"]
)
def test_nobody_there_is_tried_again(line: Line, url: Any) -> None:
    ran = line.call(url())

    assert ran.outcome == "defer"
    assert "did not answer" in ran.message


def test_a_connection_that_is_cut_is_tried_again(line: Line) -> None:
    with receiver(cut) as there:
        assert line.call(there.url).outcome == "defer"


# --- hostile answers --------------------------------------------------------------------------


def test_of_an_endless_answer_only_the_beginning_is_read_and_shown(line: Line) -> None:
    sent = []

    def endless(handler: Any) -> None:
        handler.send_response(500)
        handler.end_headers()
        try:
            handler.wfile.write(b"\x1b[31m<b>\x00")
            while True:
                sent.append(handler.wfile.write(b"x" * 100_000))
        except OSError:
            handler.close_connection = True

    with receiver(endless) as there:
        ran = line.call(there.url)

    assert sum(sent) < 20_000_000
    answer_text = ran.data["webhook"]["answer"]
    assert answer_text.startswith("\\x1b[31m<b>\\x00xxx")
    assert len(answer_text) == 500


def test_an_answer_that_breaks_off_counts_by_its_status(line: Line) -> None:
    with receiver(answer(200, b"partly", length=10_000)) as there:
        ran = line.call(there.url)

    assert (ran.outcome, ran.value["answer"]) == ("ok", "partly")


def test_a_compressed_answer_is_not_unpacked(line: Line) -> None:
    with receiver(answer(500, b"\x1f\x8b\x08\x00bomb", Content_Encoding="gzip")) as there:
        ran = line.call(there.url)

    assert "bomb" in ran.data["webhook"]["answer"]
    assert there.calls[0].headers["Accept-Encoding"] == "identity"


def test_an_answer_that_drips_is_left_after_its_time(line: Line) -> None:
    line.settings["timeout_s"] = 0.2
    sent = []

    def drips(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(1000):
            try:
                handler.wfile.write(b"x")
            except OSError:
                return
            sent.append(1)
            time.sleep(0.02)  # the fault itself: a byte at a time

    with receiver(drips) as there:
        ran = line.call(there.url)

    assert ran.outcome == "ok"
    assert len(ran.value["answer"]) < 1000
    assert len(sent) < 1000


# --- where it may go --------------------------------------------------------------------------


def test_without_a_check_nothing_is_called(tmp_path: Path, there: Receiver) -> None:
    ran = Line(tmp_path, admit=None).call(there.url)

    assert isinstance(ran.signal, Fail)
    assert "which hosts may be called" in ran.message
    assert there.calls == []


@pytest.mark.parametrize(("error", "outcome"), [(ValueError, "error"), (OSError, "defer")])
def test_what_the_check_refuses_is_not_called(
    tmp_path: Path, there: Receiver, error: type[Exception], outcome: str
) -> None:
    def refuse(url: str) -> None:
        raise error("the host is in a private network")

    ran = Line(tmp_path, admit=refuse).call(there.url)

    assert ran.outcome == outcome
    assert "private network" in ran.message
    assert there.calls == []


def test_a_transport_of_the_applications_own_carries_it_and_may_refuse(
    tmp_path: Path, there: Receiver
) -> None:
    def refuses() -> httpx.BaseTransport:
        raise ValueError("the host is in a private network")

    result = Line(tmp_path / "a", admit=None, transport=httpx.HTTPTransport).call(there.url)
    refused = Line(tmp_path / "b", admit=None, transport=refuses).call(there.url)

    assert (result.outcome, refused.outcome, len(there.calls)) == ("ok", "error", 1)


def test_no_proxy_of_the_environment_is_asked(
    line: Line, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")

    assert line.call(there.url).outcome == "ok"


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://example.org/"},
        {"url": "/hook"},
        {"url": "http:///hook"},
        {"url": "file:///etc/passwd"},
        {"url": f"http://spinney:{SECRET}@example.org/"},
        {"url": "http://[::1/"},
        {"url": "http://example.org/\r\nHost: inside"},
        {"url": "http://example.org/a b"},
        {"url": f"http://example.org/{'x' * 2000}"},
        {"secret": "../../PATH"},
        {"secret": ""},
        {"delivery": "a\r\nHost: inside"},
        {"body": ["no", "object"]},
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_submitted(line: Line, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadParameters) as refused:
        line.outbox.webhook.texts([{"url": "http://example.org/", "body": BODY, "secret": "a"} | wrong])
    assert SECRET[:8] not in str(refused.value)


# --- secrets ----------------------------------------------------------------------------------


def test_a_secret_that_is_not_there_parks_the_job(line: Line, there: Receiver) -> None:
    ran = line.call(there.url, secret="depositor-b")

    assert ran.outcome == "hold"
    assert "no SPINNEY_WEBHOOK_SECRET_DEPOSITOR_B" in ran.message
    assert there.calls == []


@pytest.mark.parametrize("made", [answer(500), answer(410), answer(302), cut])
def test_neither_secret_nor_token_is_told(line: Line, made: Any) -> None:
    with receiver(made) as there:
        ran = line.call(there.url)

    text = f"{ran!r}{ran.data}{ran.message}{ran.signal!r}"
    assert SECRET not in text
    assert "tell-nobody" not in text
