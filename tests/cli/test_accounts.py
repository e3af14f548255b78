"""``spinney user`` and ``spinney token``."""

import io
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from argon2 import PasswordHasher

from spinney.commands.control import Control
from spinney.features.accounts.commands import ShowUser
from spinney.model.access import ALL_RIGHTS
from spinney.model.rights.accounts import token_id
from spinney.service import passwords
from spinney.service.refusal_log import RefusalLog
from spinney.service.sign_in import ClientInfo, SignIn
from spinney.store.sql import open_store

from .shell import Shell


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that take no time."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", lambda: (hasher, hasher.hash("")))


@contextmanager
def inside(shell: Shell) -> Iterator[Control]:
    """A server's hand on the same store."""
    with closing(open_store(f"sqlite:///{shell.folder}/spinney.db")) as store:
        yield Control(
            store=store, clock=lambda: time.time_ns() // 1000, wake_nodes=lambda: None, by="(server)"
        )


def rights(**more: object) -> dict[str, object]:
    return {
        "role": "viewer",
        "within": {"collections": None, "queues": None},
        "shares": None,
        "priorities": None,
        "locks": None,
        "external": [],
    } | more


def test_a_user_is_made_listed_changed_and_deleted(shell: Shell) -> None:
    output = shell.ok(
        "user",
        "add",
        "ann",
        "--role",
        "operator",
        "--collection",
        "alpha",
        "--collection",
        "beta",
        "--queue",
        "net",
        "--share",
        "lab:*",
        "--priority",
        "40..60",
        "--lock",
        "receiver:*",
        "--external",
        "weigh",
        "--no-password",
        "--by",
        "root",
    )
    assert output == (
        "user ann: operator, collections alpha beta, queues net, shares lab:*, locks receiver:*, external weigh, "
        "priorities 40..60\n"
    )
    (listed,) = shell.listed("user", "list")
    assert listed["rights"] == {
        "role": "operator",
        "within": {"collections": ["alpha", "beta"], "queues": ["net"]},
        "shares": ["lab:*"],
        "priorities": [40, 60],
        "locks": ["receiver:*"],
        "external": ["weigh"],
    }
    assert (listed["by"], listed["disabled"], listed["password_us"]) == ("root", False, None)

    output = shell.ok(
        "user",
        "set",
        "ann",
        "--role",
        "viewer",
        "--collection",
        "*",
        "--queue",
        "*",
        "--share",
        "*",
        "--priority",
        "*",
        "--lock",
        "*",
        "--external",
        "none",
    )
    assert output == "user ann: viewer\n"
    assert shell.listed("user", "list")[0]["rights"] == rights()
    assert shell.refused(2, "user", "set", "ann", "--role", "viewer").startswith(
        "spinney: the command names no change"
    )

    assert shell.ok("user", "disable", "ann", "--reason", "left") == "user ann is disabled\n"
    assert "disabled" in shell.ok("user", "list")
    assert shell.ok("user", "enable", "ann") == "user ann is enabled\n"
    assert "add --yes" in shell.refused(2, "user", "delete", "ann")
    assert shell.ok("user", "delete", "ann", "--yes") == "user ann is deleted\n"
    assert shell.listed("user", "list") == []
    assert [e["verb"] for e in shell.listed("audit")] == [
        "user add",
        "user change",
        "user disable",
        "user enable",
        "user delete",
    ]


def test_a_limit_that_is_not_named_stays(shell: Shell) -> None:
    shell.ok("user", "add", "ann", "--role", "viewer", "--queue", "net", "--no-password")

    shell.ok("user", "set", "ann", "--role", "operator")

    assert shell.ok("user", "list").splitlines()[1].split()[:4] == ["ann", "operator", "queues", "net"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["add", "ann", "--no-password"],
            "the role is missing; add --role with one of viewer, submitter, operator, admin",
        ),
        (["add", "ann", "--no-password", "--role", "king"], "'king' is not one of 'viewer'"),
        (["add", "ann", "--role", "viewer"], "there is no terminal to ask for a password"),
        (["add", "ann", "--role", "viewer", "--no-password", "--password-stdin"], "exclude each other"),
        (["add", "a b", "--role", "viewer", "--no-password"], "cannot name a user"),
        (["add", "ann", "--role", "viewer", "--no-password", "--priority", "60..40"], "the lower first"),
        (
            ["add", "ann", "--role", "viewer", "--no-password", "--priority", "some"],
            "is not a range of priorities",
        ),
        (["add", "ann", "--role", "viewer", "--no-password", "--queue", "a b"], "cannot name a queue"),
    ],
)
def test_what_cannot_be_meant_is_refused(shell: Shell, words: list[str], says: str) -> None:
    assert says in shell.refused(2, "user", *words)
    assert shell.listed("user", "list") == []


def test_who_is_not_there_is_named_with_the_nearest(shell: Shell) -> None:
    shell.ok("user", "add", "annabel", "--role", "viewer", "--no-password")

    assert "did you mean 'annabel'" in shell.refused(1, "user", "show", "annabell")


def test_a_password_comes_by_stdin_and_opens(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse 1\n"))
    shell.ok("user", "add", "ann", "--role", "admin", "--password-stdin")
    with inside(shell) as control:
        secret, _ = control.part(SignIn).login("ann", "correct horse 1", RefusalLog(), visit=ClientInfo())
        monkeypatch.setattr("sys.stdin", io.StringIO("another horse 2\r\n"))

        assert shell.ok("user", "password", "ann", "--password-stdin") == "user ann has a new password\n"

        assert control.part(SignIn).known_by_session(secret) is None
        control.part(SignIn).login("ann", "another horse 2", RefusalLog(), visit=ClientInfo())
    assert "session      from this host, seen " in shell.ok("user", "show", "ann")
    assert "horse" not in shell.ok("audit", "list", "--json")


def test_at_a_terminal_it_is_asked_for_twice(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["correct horse 1", "correct horse 2", "correct horse 1", "correct horse 1"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("getpass.getpass", lambda _: next(answers))

    assert "the two passwords differ" in shell.refused(2, "user", "add", "ann", "--role", "admin")
    shell.ok("user", "add", "ann", "--role", "admin")

    with inside(shell) as control:
        control.part(SignIn).login("ann", "correct horse 1", RefusalLog(), visit=ClientInfo())


def test_a_link_is_printed_alone_and_sets_a_password(shell: Shell) -> None:
    shell.ok("user", "add", "ann", "--role", "viewer", "--no-password")

    path = shell.ok("user", "link", "ann")

    assert path.startswith("/welcome?link=")
    with inside(shell) as control:
        control.part(SignIn).accept(path.strip().partition("=")[2], "", "correct horse 1")
    assert shell.listed("user", "list")[0]["password_us"] is not None


def test_a_token_is_shown_once_listed_and_revoked(shell: Shell) -> None:
    shell.ok("user", "add", "ann", "--role", "submitter", "--no-password")

    of_ann = shell.ok("token", "make", "laptop", "--user", "ann", "--expires", "30d").strip()
    of_ci = shell.ok("token", "make", "ci", "--role", "submitter", "--queue", "net").strip()

    with inside(shell) as control:
        principals = [control.part(SignIn).known_by_token(secret) for secret in (of_ann, of_ci)]
        assert [k and k.name for k in principals] == ["ann", "token:ci"]
        listed = shell.listed("token", "list")
        assert [(t["owner"], t["name"], t["id"]) for t in listed] == [
            (None, "ci", token_id(of_ci)),
            ("ann", "laptop", token_id(of_ann)),
        ]
        assert listed[1]["expires_us"] - listed[1]["created_us"] == pytest.approx(30 * 86_400 * 1e6, rel=1e-3)
        assert listed[0]["rights"] == rights(
            role="submitter", within={"collections": None, "queues": ["net"]}
        )
        assert of_ann[-43:] not in json.dumps(listed)
        assert [t["name"] for t in shell.listed("token", "list", "--user", "ann")] == ["laptop"]

        assert shell.ok("token", "revoke", "ci") == "token ci of token:ci is revoked\n"
        assert control.part(SignIn).known_by_token(of_ci) is None
        assert control.part(SignIn).known_by_token(of_ann) is not None
    assert "revoked" in shell.ok("token", "list")
    assert "did you mean 'laptop'" in shell.refused(1, "token", "revoke", "lapto", "--user", "ann")


def test_a_token_beyond_its_owner_is_refused(shell: Shell) -> None:
    shell.ok("user", "add", "ann", "--role", "submitter", "--no-password")

    assert "the token would have more rights than ann" in shell.refused(
        2, "token", "make", "x", "--user", "ann", "--role", "admin"
    )
    assert "name a role" in shell.refused(2, "token", "make", "x")
    assert "is no length of time" in shell.refused(
        2, "token", "make", "x", "--role", "viewer", "--expires", "soon"
    )


def test_a_first_admin_by_the_command_line_has_all_rights_that_are_told(shell: Shell) -> None:
    shell.ok("user", "add", "root", "--role", "admin", "--external", "*", "--no-password")

    with inside(shell) as control:
        assert control.do(ShowUser(name="root")).rights == ALL_RIGHTS
    assert "only admin without limits" in shell.refused(1, "user", "disable", "root")


def test_users_links_and_tokens_are_documents_for_programs(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def document(*words: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(shell.ok(*words, "--json"))
        return value

    user = document("user", "add", "ann", "--role", "viewer", "--no-password")
    assert (user["name"], user["rights"], user["password_us"]) == ("ann", rights(), None)
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse 1\n"))
    assert document("user", "password", "ann", "--password-stdin")["password_us"] is not None
    link = document("user", "link", "ann")
    assert link["path"] == f"/welcome?link={link['secret']}"

    made = document("token", "make", "laptop", "--user", "ann")
    assert token_id(made["secret"]) == made["token"]["id"]
    assert document("token", "revoke", "laptop", "--user", "ann")["revoked_us"] is not None
