"""The two clients, with a server and a node that are there."""

import asyncio
import io
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from certificates import certificate_for_localhost
from cli.remote.conftest import Both, end
from cli.shell import furnish
from spinney.client import AsyncClient, Client
from spinney.client.errors import ServerUnavailable, UnexpectedResponse, error_from_response
from spinney.commands.job_filter import JobFilterBody
from spinney.commands.job_queries import ListAttempts, ListJobs, ShowJob
from spinney.features.accounts.commands import MakeToken, ShowUser
from spinney.features.bulk.commands import PlanBulk, RunBulk
from spinney.features.holds.commands import LayHold, LiftHold
from spinney.features.jobs.commands import RetryJob
from spinney.features.submission.commands import SubmitJob, SubmitJobs
from spinney.features.types.commands import ShowType
from spinney.model.access import Rights, Role
from spinney.model.errors import (
    BadParameters,
    Forbidden,
    NoSuch,
    NoSuchJob,
    Refused,
    SpinneyError,
    UnknownType,
    UsageError,
)
from spinney.model.operators.bulk_orders import Verb
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from spinney.schemas import BulkProgress

PATIENCE_S = 60.0
HELLO = SubmitJob(type="tell", params={"text": "hello"}, priority=7, idempotency_key="first")


def doubles(jobs: int) -> SubmitJobs:
    return SubmitJobs(type="double", lines=[b'{"n": %d}' % n for n in range(jobs)])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    both = Both(furnish(tmp_path_factory.mktemp("site")))
    node = both.shell.start("node", "jobs:app", "--name", "n1", "--slots", "2", "--lease", "10m")
    with both.listening():
        yield both
    end(node)


@pytest.fixture
def client(site: Both) -> Iterator[Client]:
    with Client(site.url) as opened:
        yield opened


def settled(client: Client, job: int) -> State:
    """Watched until it has settled."""
    for event in client.watch(f"job:{job}"):
        if client.do(ShowJob(job=job)).state in (State.COMPLETED, State.FAILED):
            assert event.topic == f"job:{job}"
            break
    return client.do(ShowJob(job=job)).state


def test_a_server_that_does_not_answer_at_first_is_told_by_the_watch(tmp_path: Path) -> None:
    nobody = f"unix:{tmp_path}/server.sock"

    async def watched() -> None:
        async with AsyncClient(nobody) as there:
            async for _ in there.watch("stats"):
                pass

    with Client(nobody) as there, pytest.raises(ServerUnavailable):
        next(there.watch("stats"))
    with pytest.raises(ServerUnavailable):
        asyncio.run(watched())


def test_a_job_is_submitted_watched_and_read(client: Client) -> None:
    # when
    answer = client.do(HELLO)
    again = client.do(HELLO)

    # then
    assert again == answer
    assert settled(client, answer.id) is State.COMPLETED
    shown = client.do(ShowJob(job=answer.id))
    assert (shown.priority, shown.params, shown.status) == (
        7,
        {"text": "hello"},
        client.do(ListJobs(limit=1)).items[0].status,
    )
    with pytest.raises(Refused):
        client.do(RetryJob(job=answer.id))
    assert shown.links["tree"].endswith(f"/jobs/{answer.id}/tree")
    (attempt,) = client.do(ListAttempts(job=answer.id)).items
    assert b"".join(client.output(answer.id, attempt.fence)) == b"hello\n"
    assert b"".join(client.output(answer.id, attempt.fence, start=3)) == b"lo\n"
    assert b"".join(client.output(answer.id, attempt.fence, start=99)) == b""
    assert b"".join(client.output(answer.id, attempt.fence, "stderr", follow=True)) == b"to stderr\n"


def test_files_go_there_and_come_back(client: Client) -> None:
    # given: a job that waits, so that it may be given files
    made = client.submit_with_files(
        SubmitJob(type="double", params={"n": 1}, at="2040-01-01T00:00:00Z"),
        {"in/ä b.txt": b"one", "large": io.BytesIO(b"x" * 300_000)},
    )

    # when
    put = client.upload(made.id, "in/more#1", iter([b"t", b"wo"]))

    # then
    assert (put.path, put.size) == ("in/more#1", 3)
    assert {file.path: file.size for file in client.files(made.id).items} == {
        "in/more#1": 3,
        "in/ä b.txt": 3,
        "large": 300_000,
    }
    assert b"".join(client.download(made.id, "in/ä b.txt")) == b"one"
    assert b"".join(client.download(made.id, "large", start=299_990)) == b"x" * 10


@pytest.mark.parametrize("file", ["../../{}/files/x", "./x", "a//x", "/x", "a/..", ""])
def test_a_path_that_leads_out_of_the_folder_is_not_sent(client: Client, file: str) -> None:
    # given: two jobs that may be given files
    later = SubmitJob(type="double", params={"n": 1}, at="2040-01-01T00:00:00Z")
    first, other = client.do(later).id, client.do(later).id

    # when
    with pytest.raises(UsageError, match="is no path within a job's folder"):
        client.upload(first, file.format(other), b"x")
    with pytest.raises(UsageError, match="is no path within a job's folder"):
        client.download(first, file.format(other))

    # then
    assert [*client.files(first).items, *client.files(other).items] == []


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_would_lead_to_another_address_is_not_sent(client: Client, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be part of an address"):
        client.do(ShowUser(name=name))


def test_all_of_a_list_is_gone_through(client: Client) -> None:
    # given
    answer = client.do(doubles(25))

    # when
    ids = [job.id for job in client.each(ListJobs(type="double", newest=False, limit=4))]

    # then
    assert set(answer.ids) <= set(ids)
    assert ids == sorted(set(ids))


def test_many_are_looked_at_first_and_done_step_by_step(client: Client) -> None:
    # given
    client.do(doubles(5))
    held = client.do(LayHold(scope=Scope.COLLECTION, name="kept", reason="not yet"))
    answer = client.do(
        SubmitJobs(lines=[b'{"type": "double", "params": {"n": 1}, "collection": "kept"}'] * 3)
    )

    # when
    kept = JobFilterBody(collection="kept")
    planned = client.do(PlanBulk(verb=Verb.CANCEL, filter=kept))
    steps: list[BulkProgress] = []
    cancel = RunBulk(verb=Verb.CANCEL, filter=kept, expect=planned.jobs, reason="of no use")
    report = client.do(cancel, tell=steps.append)

    # then
    assert (answer.held, planned.jobs, report.touched, report.refused) == (3, 3, 3, {})
    # On a machine that is slow a step may end before all three.
    assert [job for step in steps for job in step.jobs] == list(answer.ids)
    assert steps[-1].touched == 3
    assert client.do(LiftHold(hold=held.id)).id == held.id
    with pytest.raises(Refused):
        client.do(RunBulk(verb=Verb.RERUN, ids=list(answer.ids), expect=2))


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("do", ShowJob(job=99_999)), NoSuchJob),
        (("do", ShowUser(name="nobody")), NoSuch),
        (("do", ShowType(name="dobule")), NoSuch),
        (("do", SubmitJob(type="dobule")), UnknownType),
        (("do", SubmitJob(type="double")), BadParameters),
    ],
)
def test_what_is_refused_is_raised_as_control_raises_it(
    client: Client, words: tuple[object, ...], kind: type
) -> None:
    name, *args = words
    with pytest.raises(kind):
        getattr(client, str(name))(*args)


def test_a_token_that_is_none_is_forbidden(site: Both) -> None:
    with Client(site.url, token="spn_nothing") as stranger, pytest.raises(Forbidden):
        stranger.me()


def test_the_same_is_awaited(site: Both) -> None:
    async def work() -> tuple[list[int], bytes, bool]:
        async with AsyncClient(site.url) as client:
            answer = await client.do(SubmitJob(type="tell", params={"text": "later"}))
            async with asyncio.timeout(PATIENCE_S):
                async for _ in client.watch(f"job:{answer.id}"):
                    if (await client.do(ShowJob(job=answer.id))).state is State.COMPLETED:
                        break
            (attempt,) = (await client.do(ListAttempts(job=answer.id))).items
            output = b"".join([piece async for piece in client.output(answer.id, attempt.fence)])
            ids = [job.id async for job in client.each(ListJobs(type="tell", limit=1))]
            try:
                await client.do(ShowJob(job=99_999))
            except NoSuchJob:
                return ids, output, True
            return ids, output, False

    # when
    ids, output, refused = asyncio.run(work())

    # then
    assert (output, refused) == (b"later\n", True)
    assert ids


def test_a_client_serves_several_threads(client: Client) -> None:
    # given
    names: list[str] = []

    def ask() -> None:
        names.append(client.me().name)

    threads = [threading.Thread(target=ask) for _ in range(4)]

    # when
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # then
    assert len(names) == 4
    assert len(set(names)) == 1


def test_a_token_may_come_from_a_file_with_its_line_feed(site: Both, client: Client) -> None:
    made = client.do(MakeToken(name="file", rights=Rights(role=Role.VIEWER)))

    with Client(site.url, token=f"{made.secret}\n") as opened:
        assert opened.me().name == "token:file"


@pytest.mark.parametrize("token", ["spn_hush\nspn_hush", "spn_hush\u00e9", "spn_hush\x00"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(UsageError, match="token") as error:
        Client("http://127.0.0.1:9", token=token)
    assert "hush" not in str(error.value)


def test_what_is_no_server_of_spinneys_is_told(tmp_path: Path) -> None:
    # when, then
    with (
        Client(f"unix:{tmp_path / 'nothing'}") as client,
        pytest.raises(ServerUnavailable, match="does not answer"),
    ):
        client.me()
    for url in ("spinney.example.org", "http://[::1", "http://", "http://host:port", "http://a\x00b"):
        with pytest.raises(UsageError, match="is no server; write https://"):
            Client(url)
    assert isinstance(error_from_response(502, b"<html>Bad gateway"), ServerUnavailable)
    assert isinstance(error_from_response(500, b"<html>Oh no"), UnexpectedResponse)
    assert "Bad gateway" in str(error_from_response(502, b"<html>Bad gateway"))
    assert "follows no redirects: give the address" in str(error_from_response(302, b"<html>Sign in"))


def _serve_tls(connection: socket.socket, certificate: Path | None = None) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate is not None:
        tls.load_cert_chain(certificate)
    with suppress(ssl.SSLError, ConnectionError), tls.wrap_socket(connection, server_side=True) as secured:
        _serve_plain(secured)


def _serve_plain(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@contextmanager
def _served_once(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Serve one connection, and yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_S)

        def once() -> None:
            connection, _ = listening.accept()
            connection.settimeout(PATIENCE_S)
            with connection:
                serve(connection)

        thread = threading.Thread(target=once)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("serve", "scheme", "right"), [(_serve_plain, "https", "http"), (_serve_tls, "http", "https")]
)
def test_an_address_with_the_wrong_scheme_is_answered_with_the_right_one(
    serve: Callable[[socket.socket], None], scheme: str, right: str
) -> None:
    with (
        _served_once(serve) as port,
        Client(f"{scheme}://127.0.0.1:{port}") as client,
        pytest.raises(ServerUnavailable, match=f"write {right}://127.0.0.1:{port}$"),
    ):
        client.me()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_for_localhost(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize(
    ("trusted", "host", "error", "message"),
    [
        (False, "localhost", ServerUnavailable, "self-signed .* set SSL_CERT_FILE to a PEM file"),
        (True, "127.0.0.1", ServerUnavailable, "IP address mismatch.* the address has the name"),
        (True, "localhost", UnexpectedResponse, "answered 400"),
    ],
)
def test_the_certificate_of_a_server_is_trusted_if_the_environment_names_it(
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    trusted: bool,
    host: str,
    error: type[SpinneyError],
    message: str,
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with (
        _served_once(partial(_serve_tls, certificate=certificate)) as port,
        Client(f"https://{host}:{port}") as client,
        pytest.raises(error, match=message),
    ):
        client.me()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_certificates_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    file = tmp_path / "trusted.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(UsageError, match=f"SSL_CERT_FILE={file}"):
        Client("https://localhost:9")
