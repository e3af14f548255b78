"""``webhook``: made, set, sent and looked at from the command line."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from reports.hook_server import Receiver, answer, receiver
from spinney.features.webhooks.sql import SqlWebhooks
from spinney.model.settings.webhooks import DueDelivery
from spinney.reports import verify
from spinney.store import completion_names
from spinney.store.sql import open_store

from .shell import Shell, furnish

URL = "https://example.org/hook?token=hush"


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A store with a webhook, which no test changes."""
    shell = furnish(tmp_path_factory.mktemp("named"))
    shell.ok("webhook", "add", "archive", URL)
    return shell


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver(answer(200, b"thanks")) as made:
        yield made


def listed(shell: Shell, *words: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in shell.ok("webhook", *words, "--json").splitlines()]


def test_a_webhook_is_made_and_its_secret_stands_alone_on_a_line(shell: Shell) -> None:
    result = shell.call(
        "webhook", "add", "archive", URL, "--event", "failed", "--event", "batch", "--type", "double"
    )
    secret = result.stdout.strip()
    assert (result.returncode, secret.startswith("whs_"), " " in secret) == (0, True, False)

    (row,) = listed(shell, "list")
    assert (row["name"], row["events"], row["type"]) == ("archive", ["failed", "batch"], "double")
    for words in (["list"], ["show", "archive"], ["list", "--json"], ["show", "archive", "--json"]):
        assert secret not in shell.ok("webhook", *words)
    assert "hush" not in shell.ok("webhook", "list")
    assert secret not in shell.ok("audit", "--json")
    assert "hush" not in shell.ok("audit", "--json")


def test_an_address_that_is_not_public_is_noted_when_a_webhook_is_made(shell: Shell) -> None:
    result = shell.call("webhook", "add", "inside", "http://127.0.0.1:9/hook")

    assert result.returncode == 0
    assert "note: 127.0.0.1 is not on the public Internet" in result.stderr
    assert "note:" not in shell.call("webhook", "add", "outside", URL).stderr


def test_it_is_set_otherwise_and_its_limits_are_taken_back(shell: Shell) -> None:
    shell.ok("webhook", "add", "archive", URL, "--collection", "maps")
    output = shell.ok(
        "webhook", "set", "archive", "--collection", "any", "--type", "tell", "--each", "--event", "failed"
    )
    assert "every job, type tell" in output
    (row,) = listed(shell, "list")
    assert (row["collection"], row["type"], row["roots_only"]) == (None, "tell", False)
    assert row["events"] == ["failed"]
    assert "batches and single jobs" in shell.ok("webhook", "set", "archive", "--roots")


def test_a_collection_that_no_job_can_have_is_refused(shell: Shell) -> None:
    shell.refused(2, "webhook", "add", "archive", URL, "--collection", "common terns")
    shell.ok("webhook", "add", "archive", URL)

    assert "cannot name a collection" in shell.refused(2, "webhook", "set", "archive", "--collection", "a/b")


def test_what_is_due_is_sent_once(shell: Shell, hook: Receiver) -> None:
    secret = shell.ok("webhook", "add", "archive", hook.url).strip()
    shell.ok("webhook", "test", "archive")

    out = shell.ok("webhook", "deliver", "--private")

    assert "delivered: 200 thanks" in out
    assert "1 delivered, 0 not delivered" in out
    (call,) = hook.calls
    verify(secret, call.headers, call.body, time.time())
    assert json.loads(call.body)["event"] == "ping"
    assert "0 delivered" in shell.ok("webhook", "deliver", "--private")
    (delivery,) = listed(shell, "deliveries", "archive")
    assert (delivery["outcome"], delivery["status"], delivery["tries"]) == ("delivered", 200, 1)
    shell.ok("webhook", "retry", str(delivery["delivery"]))
    assert "1 delivered" in shell.ok("webhook", "deliver", "--private")
    assert {call.headers["Spinney-Delivery"] for call in hook.calls} == {delivery["delivery"]}


def test_what_was_not_taken_ends_it_with_1(shell: Shell, hook: Receiver) -> None:
    hook.answers[:] = [answer(500, b"oh dear")]
    shell.ok("webhook", "add", "archive", hook.url)
    shell.ok("webhook", "test", "archive")

    result = shell.call("webhook", "deliver", "--private")
    closed = shell.call("webhook", "deliver")

    assert (result.returncode, "due: 500 oh dear" in result.stdout) == (1, True)
    assert (closed.returncode, closed.stdout) == (0, "0 delivered, 0 not delivered\n"), "it is due later"
    shown = shell.ok("webhook", "deliveries", "archive", "--outcome", "due")
    assert "oh dear" in shown
    assert '"oh dear' not in shown
    assert listed(shell, "deliveries", "archive", "--outcome", "delivered") == []


def test_private_addresses_are_closed_unless_they_are_opened(shell: Shell, hook: Receiver) -> None:
    shell.ok("webhook", "add", "archive", hook.url)
    shell.ok("webhook", "test", "archive")
    result = shell.call("webhook", "deliver")
    assert (result.returncode, "add --private" in result.stdout, hook.calls) == (1, True, [])


def test_paused_it_is_sent_nothing(shell: Shell, hook: Receiver) -> None:
    shell.ok("webhook", "add", "archive", hook.url)
    shell.ok("webhook", "test", "archive")
    shell.ok("webhook", "pause", "archive", "--reason", "they move house")
    assert "paused: they move house" in shell.ok("webhook", "show", "archive")
    assert "0 delivered" in shell.ok("webhook", "deliver", "--private")
    shell.ok("webhook", "resume", "archive")
    assert "1 delivered" in shell.ok("webhook", "deliver", "--private")


def test_one_whose_deliveries_are_not_leased_is_left_and_the_others_are_sent(
    shell: Shell, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("archive", "other"):
        shell.ok("webhook", "add", name, hook.url)
        shell.ok("webhook", "test", name)
    lease = SqlWebhooks.lease
    calls: list[str] = []

    def lease_of_others(self: SqlWebhooks, counts: Mapping[str, int], **times: int) -> Sequence[DueDelivery]:
        calls.extend(counts)
        assert len(calls) < 10, "it asks for ever"
        return [] if "archive" in counts else lease(self, counts, **times)

    monkeypatch.setattr(SqlWebhooks, "lease", lease_of_others)

    assert "1 delivered" in shell.ok("webhook", "deliver", "--private")
    assert calls == ["archive", "other"]


def test_removed_it_is_gone(shell: Shell) -> None:
    shell.ok("webhook", "add", "archive", URL)
    assert shell.call("webhook", "remove", "archive").returncode == 2, "there is no terminal to confirm it"
    assert json.loads(shell.ok("webhook", "remove", "archive", "--yes", "--json")) == {"deleted": "archive"}
    assert listed(shell, "list") == []


def test_another_secret_is_shown_once(shell: Shell) -> None:
    first = shell.ok("webhook", "add", "archive", URL).strip()
    second = json.loads(shell.ok("webhook", "rotate", "archive", "--json"))["secret"]
    assert second != first
    assert second.startswith("whs_")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("add", "b", "ftp://x/"), 2, "absolute http or https URL"),
        (("add", "b", "http://x:99999/"), 2, "absolute http or https URL"),
        (("add", "b", "http://u:secret@x/"), 2, "holds a user or password"),
        (("add", "b", URL, "--event", "held"), 2, "'held' is no event"),
        (("add", "b", URL, "--type", "duoble"), 2, "did you mean 'double'"),
        (("add", "archive", URL), 1, "already; choose"),
        (("show", "archve"), 1, "did you mean 'archive'"),
        (("set", "archive"), 2, "add one"),
        (("retry", "nothing-1"), 1, "there is no delivery"),
        (
            ("deliveries", "archive", "--outcome", "sent"),
            2,
            "'--outcome': 'sent' is not one of 'due', 'delivered', 'failed'",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    named: Shell, words: tuple[str, ...], code: int, message: str
) -> None:
    result = named.call("webhook", *words)
    assert (result.returncode, message in result.stderr) == (code, True), result.stderr
    assert "u:secret" not in result.stderr


def test_a_shell_is_offered_their_names(named: Shell) -> None:
    assert completion_names.names(f"sqlite:///{named.folder}/spinney.db", "webhook", "a") == ["archive"]


def test_the_secret_is_kept_to_sign_with(shell: Shell) -> None:
    secret = shell.ok("webhook", "add", "archive", URL).strip()
    shell.ok("webhook", "test", "archive")
    store = open_store(f"sqlite:///{shell.folder}/spinney.db")
    now = time.time_ns() // 1000
    (due,) = store.webhooks.lease({"archive": 1}, now_us=now, until_us=now + 1)
    store.close()
    assert due.secret == secret
