"""A mail and a real server: who gets it, who gets it again, and what becomes of its job."""

import hashlib
import json
import os
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certificates import certificate_for_localhost
from reports.mail_server import CUT, Behaviour, free_port, mail_server
from spinney import Defer, Fail, Spinney
from spinney.model.errors import BadParameters
from spinney.model.jobs import DATA_MAX_BYTES
from spinney.model.values.paths import job_folder
from spinney.reports import MailSettings, Outbox, Security
from spinney.testing import StageHarness, StageResult

SENDER = "Archive <archive@example.org>"
LETTER = {"sender": SENDER, "to": ["ada@example.org"], "subject": "Report", "text": "All well.\n"}
DAY_S = 86_400.0
PASSWORD = "S3cret-of-the-mail-server"


class Post:
    """A mail job at a server, at a time that the test sets."""

    def __init__(self, port: int, folder: Path) -> None:
        self.now = 1_800_000_000.0
        self.settings: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": port,
            "security": Security.NONE,
            "timeout_s": 5.0,
        }
        self.harness = StageHarness(folder=folder)
        self.folder = folder
        self.outbox = Outbox(Spinney(), mail=lambda: MailSettings(**self.settings), clock=lambda: self.now)

    def send(self, **params: Any) -> StageResult:
        """One attempt."""
        return self.harness.run(self.outbox.mail, "sending", **(LETTER | params))

    def attach(self, content: bytes, name: str = "list.json") -> dict[str, str]:
        """A file in the folder of another job."""
        file = self.folder / job_folder(7) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return {
            "path": str(file),
            "sha256": hashlib.sha256(content).hexdigest(),
            "media_type": "application/json",
        }


@pytest.fixture
def behaviour() -> Behaviour:
    return Behaviour()


@pytest.fixture
def post(behaviour: Behaviour, tmp_path: Path) -> Iterator[Post]:
    with mail_server(behaviour, enable_SMTPUTF8=True) as port:
        yield Post(port, tmp_path)


# --- what arrives -----------------------------------------------------------------------------


def test_a_mail_arrives_with_all_that_it_was_given(post: Post, behaviour: Behaviour) -> None:
    content = os.urandom(70_000)
    ran = post.send(
        to=["Ada Lovelace <ada@example.org>"],
        cc=["bob@example.org", "ada@example.org"],
        text="Größe\n.\nFrom here\n",
        html="<p>Größe</p>",
        attachments=[post.attach(content)],
        message_id="<b.1@example.org>",
        in_reply_to="<b.0@example.org>",
        date=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
    )

    assert ran.outcome == "ok"
    assert ran.value == {"message_id": "<b.1@example.org>", "delivered": 2, "reply": "250 queued as 4711"}
    (arrived,) = behaviour.received
    assert (arrived.sender, arrived.recipients) == (
        "archive@example.org",
        ["ada@example.org", "bob@example.org"],
    )
    mail = arrived.mail
    assert (mail["To"], mail["Cc"]) == ("Ada Lovelace <ada@example.org>", "bob@example.org, ada@example.org")
    assert (mail["Message-ID"], mail["In-Reply-To"], mail["References"]) == (
        "<b.1@example.org>",
        "<b.0@example.org>",
        "<b.0@example.org>",
    )
    assert mail["Date"].datetime == datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    assert mail["Auto-Submitted"] == "auto-generated"
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert plain.get_content().splitlines() == ["Größe", ".", "From here"]
    assert html.get_content().splitlines() == ["<p>Größe</p>"]
    (file,) = mail.iter_attachments()
    assert (file.get_filename(), file.get_content_type(), file.get_content()) == (
        "list.json",
        "application/json",
        content,
    )
    assert arrived.content.isascii()


@pytest.mark.parametrize(
    ("written", "arrives"),
    [
        ("Zoë, the Ünïcode <zoe@bücher.example>", "zoe@xn--bcher-kva.example"),
        ('"Lovelace, Ada" <ada@example.org>', "ada@example.org"),
        ("zoë@example.org", "zoë@example.org"),
    ],
)
def test_names_and_addresses_outside_ascii_arrive(
    post: Post, behaviour: Behaviour, written: str, arrives: str
) -> None:
    assert post.send(to=[written], subject="Grüße — " + "ü" * 200).outcome == "ok"

    (mail,) = behaviour.received
    assert mail.recipients == [arrives]
    (address,) = mail.mail["To"].addresses
    assert address.addr_spec == arrives
    assert address.display_name == written.rpartition("<")[0].strip().strip('"')
    assert mail.mail["Subject"] == "Grüße — " + "ü" * 200


@pytest.mark.parametrize("field", ["to", "cc", "sender"])
def test_a_name_that_would_be_read_as_addresses_is_left_out(
    post: Post, behaviour: Behaviour, field: str
) -> None:
    forged = f"{'long ' * 15}, eve@example.org, {'long ' * 15} <ada@example.org>"

    assert post.send(**{field: forged if field == "sender" else [forged]}).outcome == "ok"

    header = behaviour.received[0].mail[{"sender": "From"}.get(field, field)]
    assert [str(a) for a in header.addresses] == ["ada@example.org"]


def test_a_boundary_that_somebody_guessed_stays_text(post: Post, behaviour: Behaviour) -> None:
    post.send(html="<p>", message_id="<known@example.org>")
    boundary = behaviour.received[0].mail.get_boundary()
    forged = f"\n--{boundary}\nContent-Type: text/html\n\n<script>\n--{boundary}--\n"
    post.harness = StageHarness(folder=post.folder)

    post.send(text=forged, html="<p>", message_id="<known@example.org>")

    mail = behaviour.received[1].mail
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert mail.get_boundary() == boundary
    assert plain is not None
    assert html is not None
    assert plain.get_content().splitlines() == forged.splitlines()
    assert html.get_content().strip() == "<p>"


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": ["ada@example.org\r\nRCPT TO:<eve@example.org>"]},
        {"to": ["ada@example.org>, <eve@example.org"]},
        {"to": ["Ada\nBcc: eve@example.org <ada@example.org>"]},
        {"to": ['"a b"@example.org']},
        {"to": ["ada@fuß.example"]},
        {"to": ["ada@example..org"]},
        {"to": ["ada"]},
        {"cc": [f"{'a' * 65}@example.org"]},
        {"sender": "a@b c"},
        {"subject": "Report\r\nBcc: eve@example.org"},
        {"subject": "Report\u2028Bcc: eve@example.org"},
        {"message_id": "<a@b>\r\nBcc: eve@example.org"},
        {"in_reply_to": "a@b"},
        {"auto_submitted": "no\r\nBcc: eve@example.org"},
        {"date": "2026-05-04T03:02:01"},
        {"attachments": [{"path": "x", "sha256": "0" * 64, "name": "a\r\nBcc: eve"}]},
        {"attachments": [{"path": "x", "sha256": "0" * 64, "media_type": "text/html\r\nBcc: eve"}]},
        {"attachments": [{"path": "x", "sha256": "0" * 64, "media_type": "message/rfc822"}]},
    ],
)
def test_what_would_forge_a_header_is_refused_where_it_is_submitted(
    post: Post, wrong: dict[str, Any]
) -> None:
    with pytest.raises(BadParameters):
        post.outbox.mail.texts([LETTER | wrong])


def test_a_refusal_says_what_is_wrong(post: Post) -> None:
    with pytest.raises(BadParameters, match=r"is not one line of up to 500 printable characters"):
        post.outbox.mail.texts([LETTER | {"subject": "a\nb"}])


# --- sent again -------------------------------------------------------------------------------


def test_sent_again_it_is_the_same_to_the_byte(post: Post, behaviour: Behaviour) -> None:
    behaviour.data = [CUT, "451 later", "250 OK"]
    files = [post.attach(b"[]")]

    outcomes = []
    for _ in range(3):
        outcomes.append(post.send(html="<p>", attachments=files).outcome)
        post.now += 600

    assert outcomes == ["defer", "defer", "ok"]
    assert len({mail.content for mail in behaviour.received}) == 1
    assert behaviour.received[0].mail["Date"].datetime.timestamp() == 1_800_000_000


def test_put_off_by_the_server_it_is_tried_again_alone(post: Post, behaviour: Behaviour) -> None:
    behaviour.data = ["451 greylisted", "451 greylisted", "451 greylisted"]
    delays = []
    for age_s in (0, 4 * 600, 3 * DAY_S):
        post.now = 1_800_000_000.0 + age_s
        ran = post.send()
        assert isinstance(ran.signal, Defer)
        assert not ran.signal.lane
        assert "451 greylisted" in ran.message
        delays.append(ran.signal.seconds)

    assert 45 <= delays[0] <= 60
    assert 450 <= delays[1] <= 600
    assert 2700 <= delays[2] <= 3600


def test_some_have_got_it_and_the_others_get_it_later(post: Post, behaviour: Behaviour) -> None:
    behaviour.to = {"bob@example.org": "450 mailbox busy"}
    to = ["ada@example.org", "bob@example.org"]

    first = post.send(to=to)
    behaviour.to.clear()
    second = post.send(to=to)

    assert (first.outcome, second.outcome) == ("defer", "ok")
    assert "bob@example.org (450 mailbox busy)" in first.message
    assert [mail.recipients for mail in behaviour.received] == [["ada@example.org"], ["bob@example.org"]]


def test_cut_off_between_two_recipients_none_has_got_it(post: Post, behaviour: Behaviour) -> None:
    behaviour.to = {"bob@example.org": CUT}

    assert post.send(to=["ada@example.org", "bob@example.org"]).outcome == "defer"
    assert behaviour.received == []


def test_with_all_told_nothing_is_sent_once_more(post: Post, behaviour: Behaviour) -> None:
    """Given a crash between the entry and the record of the stage, when it runs again, then it ends as it had."""
    post.send()

    assert post.send().outcome == "ok"
    assert len(behaviour.received) == 1


def test_a_server_that_stalls_is_left_after_its_time(post: Post, behaviour: Behaviour) -> None:
    behaviour.stalls = True
    post.settings["timeout_s"] = 0.2

    ran = post.send()

    assert ran.outcome == "defer"
    assert "timed out" in ran.message


# --- refused ----------------------------------------------------------------------------------


def test_one_refused_is_named_and_the_others_get_it(post: Post, behaviour: Behaviour) -> None:
    behaviour.to = {"eve@example.org": "550 no such\tuser"}

    ran = post.send(to=["eve@example.org", "ada@example.org"])

    assert ran.outcome == "warning"
    assert "1 of 2 recipients were refused: eve@example.org (550 no such\\tuser)" in ran.message
    assert ran.value["refused"] == 1
    assert behaviour.received[0].recipients == ["ada@example.org"]


def test_rerun_after_a_warning_it_goes_to_the_refused_alone(post: Post, behaviour: Behaviour) -> None:
    behaviour.to = {"eve@example.org": "550 no such user"}
    to = ["eve@example.org", "ada@example.org"]
    post.send(to=to)
    behaviour.to.clear()

    assert post.send(to=to).outcome == "ok"
    assert [mail.recipients for mail in behaviour.received] == [["ada@example.org"], ["eve@example.org"]]


@pytest.mark.parametrize("where", ["sender", "to", "data"])
def test_refused_for_all_it_fails_for_good(post: Post, behaviour: Behaviour, where: str) -> None:
    setattr(
        behaviour,
        where,
        {"sender": "550 no", "to": {"ada@example.org": "550 no"}, "data": ["550 no", "250 OK"]}[where],
    )

    ran = post.send()

    assert isinstance(ran.signal, Fail)
    assert not ran.signal.retryable
    assert "ada@example.org (550 no)" in ran.message


def test_a_server_without_utf8_refuses_addresses_that_need_it(behaviour: Behaviour, tmp_path: Path) -> None:
    with mail_server(behaviour, enable_SMTPUTF8=False) as port:
        ran = Post(port, tmp_path).send(to=["zoë@example.org"])

    assert isinstance(ran.signal, Fail)
    assert "no addresses outside ASCII" in ran.message


@pytest.mark.parametrize("count", [0, 101])
def test_nobody_and_too_many_are_refused(post: Post, count: int) -> None:
    ran = post.send(to=[f"a{n}@example.org" for n in range(count)])

    assert isinstance(ran.signal, Fail)
    assert f"1 to 100 addresses, not {count}" in ran.message


def test_a_hundred_lengthy_refusals_fit_into_an_entry(post: Post, behaviour: Behaviour) -> None:
    to = [f"{'a' * 60}{n}@{'b' * 60}.{'c' * 60}.{'d' * 58}" for n in range(100)]
    behaviour.to = dict.fromkeys(to, f"550 {'y' * 450}") | {to[0]: "450 later"}

    ran = post.send(to=to)

    assert ran.outcome == "defer"
    assert len(ran.data["mail"]["refused"]) == 99
    assert len(json.dumps(ran.data["mail"])) < DATA_MAX_BYTES


# --- the server is away -----------------------------------------------------------------------


def test_while_the_server_is_away_all_mail_rests(tmp_path: Path) -> None:
    ran = Post(free_port(), tmp_path).send()

    assert isinstance(ran.signal, Defer)
    assert (ran.signal.lane, ran.signal.seconds) == (True, 60)
    assert "cannot be used now" in ran.message


def test_away_for_its_whole_term_it_fails_and_a_retry_has_a_whole_term_again(tmp_path: Path) -> None:
    port = free_port()
    post = Post(port, tmp_path)
    post.send()
    post.now += 5 * DAY_S + 1

    ran = post.send()
    retried = post.send()

    assert isinstance(ran.signal, Fail)
    assert not ran.signal.retryable
    assert "given up after 5.0 days" in ran.message
    assert retried.outcome == "defer"
    with mail_server(Behaviour(), port=port):
        assert post.send().outcome == "ok"


def test_the_term_of_a_message_with_a_date_runs_from_then(tmp_path: Path) -> None:
    post = Post(free_port(), tmp_path)

    ran = post.send(date=datetime.fromtimestamp(post.now - 6 * DAY_S, UTC))

    assert isinstance(ran.signal, Fail)
    assert "given up after 6.0 days" in ran.message


def test_a_message_of_long_ago_is_tried_once_at_least(post: Post, behaviour: Behaviour) -> None:
    assert post.send(date=datetime(2001, 1, 1, tzinfo=UTC)).outcome == "ok"
    assert len(behaviour.received) == 1


# --- secrets ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_for_localhost(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secured(behaviour: Behaviour, certificate: Path, tmp_path: Path) -> Iterator[Post]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with mail_server(behaviour, tls=tls) as port:
        post = Post(port, tmp_path)
        post.settings |= {"host": "localhost", "security": Security.STARTTLS, "ca_file": certificate}
        yield post


def test_it_logs_in_over_an_encrypted_connection(
    secured: Post, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_SMTP_USER", "spinney")
    monkeypatch.setenv("SPINNEY_SMTP_PASSWORD", "right")

    assert secured.send().outcome == "ok"
    assert behaviour.logins == [(b"spinney", b"right")]


def test_a_refused_login_rests_and_tells_no_password(
    secured: Post, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_SMTP_USER", "spinney")
    monkeypatch.setenv("SPINNEY_SMTP_PASSWORD", PASSWORD)

    ran = secured.send()

    assert behaviour.logins[0] == (b"spinney", PASSWORD.encode())
    assert isinstance(ran.signal, Defer)
    assert ran.signal.lane
    assert "refused the login with 535" in ran.message
    assert PASSWORD not in f"{ran!r}{ran.data}{ran.message}{MailSettings(**secured.settings)!r}"


def test_a_certificate_of_somebody_else_is_not_trusted(secured: Post, behaviour: Behaviour) -> None:
    secured.settings["ca_file"] = None

    ran = secured.send()

    assert isinstance(ran.signal, Defer)
    assert "certificate" in ran.message.lower()
    assert behaviour.received == []


def test_a_server_that_cannot_encrypt_gets_nothing(
    post: Post, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_SMTP_USER", "spinney")
    monkeypatch.setenv("SPINNEY_SMTP_PASSWORD", PASSWORD)
    post.settings["security"] = Security.STARTTLS

    ran = post.send()

    assert ran.outcome == "defer"
    assert "offers no STARTTLS; set the security of mail (SPINNEY_SMTP_SECURITY) to tls" in ran.message
    assert behaviour.received == []
    assert behaviour.logins == []


def test_a_server_without_logins_gets_nothing_if_a_user_is_set(
    post: Post, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_SMTP_USER", "spinney")
    monkeypatch.setenv("SPINNEY_SMTP_PASSWORD", PASSWORD)

    ran = post.send()

    assert ran.outcome == "defer"
    assert "offers no login; check its port and security, or set no user and no password" in ran.message
    assert behaviour.received == []


@pytest.mark.parametrize(
    ("environment", "settings", "message"),
    [
        ({"SPINNEY_SMTP_USER": "spinney"}, {}, "no SPINNEY_SMTP_PASSWORD"),
        ({"SPINNEY_SMTP_USER": "u", "SPINNEY_SMTP_PASSWORD": PASSWORD}, {"host": "mail.example"}, "in clear"),
        ({}, {"host": ""}, "'' names no mail server; name one"),
    ],
)
def test_settings_that_cannot_work_park_the_job(
    post: Post,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    settings: dict[str, Any],
    message: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    post.settings |= settings

    ran = post.send()

    assert ran.outcome == "hold"
    assert message in ran.message
    assert PASSWORD not in ran.message


# --- attachments ------------------------------------------------------------------------------


def test_only_files_below_the_folder_are_attached(post: Post, behaviour: Behaviour, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_bytes(b"secret")
    link = tmp_path / "link"
    link.symlink_to(outside)
    digest = hashlib.sha256(b"secret").hexdigest()
    try:
        for path in (str(outside), f"../{outside.name}", "link", "/etc/passwd"):
            ran = post.send(attachments=[{"path": path, "sha256": digest}])
            assert isinstance(ran.signal, Fail), path
            assert "does not lie below" in ran.message
    finally:
        outside.unlink()
    assert behaviour.received == []


def test_what_has_changed_is_gone_or_is_no_file_is_not_attached(post: Post, behaviour: Behaviour) -> None:
    changed, gone, pipe = post.attach(b"a", "changed"), post.attach(b"a", "gone"), post.attach(b"a", "pipe")
    Path(changed["path"]).write_bytes(b"b")
    Path(gone["path"]).unlink()
    Path(pipe["path"]).unlink()
    os.mkfifo(pipe["path"])

    messages = [post.send(attachments=[file]).message for file in (changed, gone, pipe)]

    assert [
        "has changed" in messages[0],
        "is not there" in messages[1],
        "no regular file" in messages[2],
    ] == [True] * 3
    assert behaviour.received == []


def test_attachments_are_bounded_together(post: Post, behaviour: Behaviour) -> None:
    post.settings["attachments_max_bytes"] = 15
    files = [post.attach(b"0123456789", name) for name in ("a", "b")]

    ran = post.send(attachments=files)

    assert isinstance(ran.signal, Fail)
    assert "5 bytes left" in ran.message
    assert post.send(attachments=files[:1]).outcome == "ok"
    assert len(behaviour.received) == 1
