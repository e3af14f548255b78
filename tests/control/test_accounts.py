"""Users and tokens as admins manage them, and what everybody manages himself."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from contract.words import Clock
from new_store import new_store
from spinney.control import Control
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import BadLogin, BadName, Forbidden, NoSuch, Refused, TooManyAttempts, UsageError
from spinney.service import passwords
from spinney.store.contract import Store
from spinney.store.sql import open_store

ALPHA = AccessScope(collections=("alpha",))
LIMITED = Rights(role=Role.ADMIN, within=ALPHA)
SUBMITTER = Rights(role=Role.SUBMITTER)
Asking = Callable[..., Control]


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that take no time."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", lambda: (hasher, hasher.hash("")))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(new_store(tmp_path / "x.db"))
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def asking(store: Store, clock: Clock) -> Asking:
    def made(by: str = "root", rights: Rights = ALL_RIGHTS) -> Control:
        return Control(store=store, clock=lambda: clock.now_us, wake_nodes=lambda: None, by=by, rights=rights)

    return made


@pytest.fixture
def admin(asking: Asking) -> Control:
    """An admin, beside ann, who submits."""
    control = asking()
    control.accounts.add("root", ALL_RIGHTS, None)
    control.accounts.add("ann", SUBMITTER, None)
    return control


def test_only_admins_manage_users(admin: Control, asking: Asking) -> None:
    ann = asking("ann", Rights(role=Role.OPERATOR)).accounts
    for ask in (
        ann.users,
        lambda: ann.user("root"),
        lambda: ann.add("ben", SUBMITTER, None),
        lambda: ann.change("ann", ALL_RIGHTS),
        lambda: ann.disable("root"),
        lambda: ann.delete("root"),
        lambda: ann.set_password("root", "x" * 12),
        lambda: ann.invite("root"),
        lambda: ann.sessions("root"),
        lambda: ann.end_sessions("root"),
        lambda: ann.tokens("root"),
        lambda: ann.tokens(""),
        ann.invite_first,
        lambda: ann.make_token("t", owner="root"),
        lambda: ann.make_token("t", owner=None, rights=SUBMITTER),
        lambda: ann.find_token("t", "root"),
        lambda: ann.find_token("t", None),
    ):
        with pytest.raises(Forbidden, match="ann is an operator and may not manage"):
            ask()

    assert [u.name for u in admin.accounts.users()] == ["ann", "root"]


def test_everybody_looks_at_himself(admin: Control, asking: Asking) -> None:
    ann = asking("ann", SUBMITTER).accounts

    assert ann.user("ann").rights == SUBMITTER
    assert ann.sessions("ann") == []
    assert ann.end_sessions("ann") == 0
    assert ann.tokens() == ann.tokens("ann") == []


@pytest.mark.parametrize(
    "beyond",
    [
        ALL_RIGHTS,
        SUBMITTER,
        Rights(role=Role.VIEWER, within=AccessScope(collections=("alpha", "beta"))),
        Rights(role=Role.VIEWER, within=ALPHA, external=("weigh",)),
    ],
)
def test_an_admin_with_limits_gives_nothing_beyond_them(
    admin: Control, asking: Asking, beyond: Rights
) -> None:
    limited = asking("lim", LIMITED).accounts
    admin.accounts.add("bob", Rights(role=Role.VIEWER, within=ALPHA), None)

    for ask in (
        lambda: limited.add("new", beyond, None),
        lambda: limited.change("bob", beyond),
        lambda: limited.make_token("t", owner=None, rights=beyond),
    ):
        with pytest.raises(Forbidden, match="lim may not give or change rights beyond his own"):
            ask()
    limited.change("bob", Rights(role=Role.ADMIN, within=ALPHA))


def test_an_admin_with_limits_leaves_those_alone_who_may_more(admin: Control, asking: Asking) -> None:
    """To set somebody's password is to become him."""
    limited = asking("lim", LIMITED).accounts
    token = admin.accounts.make_token("t", owner="root").token

    for ask in (
        lambda: limited.set_password("root", "x" * 12),
        lambda: limited.invite("root"),
        lambda: limited.disable("root"),
        lambda: limited.delete("root"),
        lambda: limited.end_sessions("root"),
        lambda: limited.change("root", LIMITED),
        lambda: limited.make_token("u", owner="root"),
        lambda: limited.revoke_token(token.id),
    ):
        with pytest.raises(Forbidden, match="beyond his own"):
            ask()


@pytest.mark.parametrize("name", ["", "token:ci", "a/b", "..", "-x", "a b", "x" * 101])
def test_a_name_that_cannot_be_is_refused(admin: Control, name: str) -> None:
    with pytest.raises(BadName, match="cannot name a user"):
        admin.accounts.add(name, SUBMITTER, None)


@pytest.mark.parametrize("password", ["x" * 11, "x" * 257, ""])
def test_a_password_has_a_length_and_is_not_repeated(admin: Control, password: str) -> None:
    with pytest.raises(UsageError, match=f"12 to 256 characters, this one {len(password)};") as caught:
        admin.accounts.set_password("ann", password)

    assert not password or password not in str(caught.value)


# --- own password -----------------------------------------------------------------------------


def test_one_changes_the_own_password_by_the_one_there_is(
    admin: Control, asking: Asking, clock: Clock
) -> None:
    admin.accounts.set_password("ann", "correct horse 1")
    ann = asking("ann", SUBMITTER)
    with pytest.raises(BadLogin, match="not the password that you have"):
        ann.accounts.change_password("wrong horse 11", "battery staple")

    ann.accounts.change_password("correct horse 1", "battery staple")

    for _ in range(3):
        with pytest.raises(BadLogin):
            ann.accounts.change_password("correct horse 1", "x" * 12)
    with pytest.raises(TooManyAttempts, match="try again in 1 second"):
        ann.accounts.change_password("battery staple", "x" * 12)
    with pytest.raises(NoSuch):
        asking("uid 1000", SUBMITTER).accounts.change_password("", "x" * 12)


# --- tokens -----------------------------------------------------------------------------------


def test_a_user_makes_tokens_for_himself_and_never_beyond_his_rights(admin: Control, asking: Asking) -> None:
    ann = asking("ann", SUBMITTER).accounts

    plain = ann.make_token("laptop", owner="ann")
    less = ann.make_token("cron", owner="ann", rights=Rights(role=Role.VIEWER, within=ALPHA))

    assert plain.token.rights == SUBMITTER
    assert less.token.rights == Rights(role=Role.VIEWER, within=ALPHA)
    assert admin.sign_in.known_by_token(plain.secret) is not None
    for beyond in (Rights(role=Role.OPERATOR), Rights(role=Role.VIEWER, external=("*",))):
        with pytest.raises(UsageError, match="ann may not do all that the token would be good for"):
            ann.make_token("more", owner="ann", rights=beyond)
    assert [t.name for t in ann.tokens()] == ["cron", "laptop"]
    assert ann.find_token("cron", "ann") == less.token


def test_who_asks_with_a_token_makes_none_that_may_more(admin: Control, asking: Asking) -> None:
    narrow = asking("ann", Rights(role=Role.VIEWER, within=ALPHA)).accounts

    assert narrow.make_token("child", owner="ann").token.rights == Rights(role=Role.VIEWER, within=ALPHA)


def test_a_token_that_expires_makes_none_that_lasts_longer(admin: Control, clock: Clock) -> None:
    # given
    ends_us = clock.now_us + 3_600_000_000
    brief = dataclasses.replace(admin, ends_us=ends_us)

    # when, then
    for expires_us in (None, ends_us + 1):
        with pytest.raises(Forbidden, match="lasts longer"):
            brief.accounts.make_token(
                "heir", owner=None, rights=Rights(role=Role.VIEWER), expires_us=expires_us
            )
    made = brief.accounts.make_token("heir", owner=None, rights=Rights(role=Role.VIEWER), expires_us=ends_us)
    assert made.token.expires_us == ends_us


def test_others_tokens_are_not_there_for_who_is_no_admin(admin: Control, asking: Asking) -> None:
    token = admin.accounts.make_token("t", owner="root").token

    with pytest.raises(NoSuch, match="you have no token with the id"):
        asking("ann", SUBMITTER).accounts.revoke_token(token.id)
    admin.accounts.revoke_token(token.id)
    with pytest.raises(NoSuch, match="root has no token 't'"):
        admin.accounts.find_token("t", "root")


def test_a_machines_token_says_what_it_may_and_until_when(admin: Control, clock: Clock) -> None:
    with pytest.raises(UsageError, match="say which role"):
        admin.accounts.make_token("ci", owner=None)
    with pytest.raises(UsageError, match="would have expired already"):
        admin.accounts.make_token("ci", owner=None, rights=SUBMITTER, expires_us=clock.now_us)
    with pytest.raises(BadName):
        admin.accounts.make_token("c i", owner=None, rights=SUBMITTER)

    made = admin.accounts.make_token("ci", owner=None, rights=SUBMITTER, expires_us=clock.now_us + 1)

    known = admin.sign_in.known_by_token(made.secret)
    assert known is not None
    assert (known.name, known.rights) == ("token:ci", SUBMITTER)


def test_a_disabled_user_gets_none(admin: Control) -> None:
    admin.accounts.disable("ann")

    with pytest.raises(Refused, match="ann is disabled"):
        admin.accounts.make_token("t", owner="ann")
