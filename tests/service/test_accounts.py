"""Users and tokens as admins manage them, and what everybody manages himself."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from contract.words import Clock
from new_store import new_store
from spinney.commands.control import Control
from spinney.features.accounts.commands import (
    AddUser,
    ChangePassword,
    ChangeUser,
    DeleteUser,
    EndSessions,
    ListSessions,
    ListTokens,
    ListUsers,
    MakeLink,
    MakeToken,
    RevokeToken,
    ShowUser,
    find_token,
    set_password,
)
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import BadLogin, BadName, Forbidden, NoSuch, Refused, TooManyAttempts, UsageError
from spinney.service import passwords
from spinney.service.sign_in import SignIn
from spinney.store.parts import Store
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
    control.do(AddUser(name="root", rights=ALL_RIGHTS))
    control.do(AddUser(name="ann", rights=SUBMITTER))
    return control


def test_only_admins_manage_users(admin: Control, asking: Asking) -> None:
    ann = asking("ann", Rights(role=Role.OPERATOR))
    for ask in (
        lambda: ann.do(ListUsers()),
        lambda: ann.do(ShowUser(name="root")),
        lambda: ann.do(AddUser(name="ben", rights=SUBMITTER)),
        lambda: ann.do(ChangeUser(name="ann", rights=ALL_RIGHTS)),
        lambda: ann.do(ChangeUser(name="root", disabled=True)),
        lambda: ann.do(DeleteUser(name="root")),
        lambda: set_password(ann, "root", "x" * 12),
        lambda: ann.do(MakeLink(name="root")),
        lambda: ann.do(ListSessions(name="root")),
        lambda: ann.do(EndSessions(name="root")),
        lambda: ann.do(ListTokens(owner="root")),
        ann.part(SignIn).invite_first,
        lambda: ann.do(MakeToken(name="t", owner="root")),
        lambda: ann.do(MakeToken(name="t", rights=SUBMITTER)),
        lambda: find_token(ann, "t", "root"),
    ):
        with pytest.raises(Forbidden, match="ann is an operator and may not manage"):
            ask()

    assert [u.name for u in admin.do(ListUsers()).items] == ["ann", "root"]


def test_everybody_looks_at_himself(admin: Control, asking: Asking) -> None:
    ann = asking("ann", SUBMITTER)

    assert ann.do(ShowUser(name="ann")).rights == SUBMITTER
    assert ann.do(ListSessions(name="ann")).items == []
    assert ann.do(EndSessions(name="ann")).ended == 0
    assert ann.do(ListTokens()).items == ann.do(ListTokens(owner="ann")).items == []


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
    limited = asking("lim", LIMITED)
    admin.do(AddUser(name="bob", rights=Rights(role=Role.VIEWER, within=ALPHA)))

    for ask in (
        lambda: limited.do(AddUser(name="new", rights=beyond)),
        lambda: limited.do(ChangeUser(name="bob", rights=beyond)),
        lambda: limited.do(MakeToken(name="t", rights=beyond)),
    ):
        with pytest.raises(Forbidden, match="lim may not grant or change rights that lim does not have"):
            ask()
    limited.do(ChangeUser(name="bob", rights=Rights(role=Role.ADMIN, within=ALPHA)))


def test_an_admin_with_limits_leaves_those_alone_who_may_more(admin: Control, asking: Asking) -> None:
    """To set somebody's password is to become him."""
    limited = asking("lim", LIMITED)
    token = admin.do(MakeToken(name="t", owner="root")).token

    for ask in (
        lambda: set_password(limited, "root", "x" * 12),
        lambda: limited.do(MakeLink(name="root")),
        lambda: limited.do(ChangeUser(name="root", disabled=True)),
        lambda: limited.do(DeleteUser(name="root")),
        lambda: limited.do(EndSessions(name="root")),
        lambda: limited.do(ChangeUser(name="root", rights=LIMITED)),
        lambda: limited.do(MakeToken(name="u", owner="root")),
        lambda: limited.do(MakeToken(name="u", owner="root", rights=LIMITED)),  # acts in the name of root
        lambda: limited.do(RevokeToken(token=token.id)),
    ):
        with pytest.raises(Forbidden, match=r"rights that .* does not have"):
            ask()


def test_an_admin_with_limits_sees_all_users_and_tokens(admin: Control, asking: Asking) -> None:
    set_password(admin, "ann", "correct horse 1")
    token = admin.do(MakeToken(name="t", owner="root")).token
    limited = asking("lim", LIMITED)

    assert limited.do(ListUsers()).items == admin.do(ListUsers()).items
    assert token in limited.do(ListTokens()).items


@pytest.mark.parametrize("name", ["", "token:ci", "a/b", "..", "-x", "a b", "x" * 101])
def test_a_name_that_cannot_be_is_refused(admin: Control, name: str) -> None:
    with pytest.raises(BadName, match="cannot name a user"):
        admin.do(AddUser(name=name, rights=SUBMITTER))


@pytest.mark.parametrize("password", ["x" * 11, "x" * 257, ""])
def test_a_password_has_a_length_and_is_not_repeated(admin: Control, password: str) -> None:
    with pytest.raises(UsageError, match=f"12 to 256 characters, this one {len(password)};") as caught:
        set_password(admin, "ann", password)

    assert not password or password not in str(caught.value)


# --- own password -----------------------------------------------------------------------------


def test_one_changes_the_own_password_by_the_one_there_is(
    admin: Control, asking: Asking, clock: Clock
) -> None:
    set_password(admin, "ann", "correct horse 1")
    ann = asking("ann", SUBMITTER)
    with pytest.raises(BadLogin, match="not the password that you have"):
        ann.do(ChangePassword(before="wrong horse 11", after="battery staple"))

    ann.do(ChangePassword(before="correct horse 1", after="battery staple"))

    for _ in range(3):
        with pytest.raises(BadLogin):
            ann.do(ChangePassword(before="correct horse 1", after="x" * 12))
    with pytest.raises(TooManyAttempts, match="try again in 1 second"):
        ann.do(ChangePassword(before="battery staple", after="x" * 12))
    with pytest.raises(NoSuch):
        asking("uid 1000", SUBMITTER).do(ChangePassword(before="", after="x" * 12))


# --- tokens -----------------------------------------------------------------------------------


def test_a_user_makes_tokens_for_himself_and_never_beyond_his_rights(admin: Control, asking: Asking) -> None:
    ann = asking("ann", SUBMITTER)

    plain = ann.do(MakeToken(name="laptop", owner="ann"))
    less = ann.do(MakeToken(name="cron", owner="ann", rights=Rights(role=Role.VIEWER, within=ALPHA)))

    assert plain.token.rights == SUBMITTER
    assert less.token.rights == Rights(role=Role.VIEWER, within=ALPHA)
    assert admin.part(SignIn).known_by_token(plain.secret) is not None
    for beyond in (Rights(role=Role.OPERATOR), Rights(role=Role.VIEWER, external=("*",))):
        with pytest.raises(UsageError, match="the token would have more rights than ann"):
            ann.do(MakeToken(name="more", owner="ann", rights=beyond))
    assert [t.name for t in ann.do(ListTokens()).items] == ["cron", "laptop"]
    assert find_token(ann, "cron", "ann") == less.token


def test_who_asks_with_a_token_makes_none_that_may_more(admin: Control, asking: Asking) -> None:
    narrow = asking("ann", Rights(role=Role.VIEWER, within=ALPHA))

    assert narrow.do(MakeToken(name="child", owner="ann")).token.rights == Rights(
        role=Role.VIEWER, within=ALPHA
    )


def test_a_token_of_few_rights_ends_neither_tokens_of_more_nor_sessions(
    admin: Control, asking: Asking
) -> None:
    more = asking("ann", SUBMITTER).do(MakeToken(name="more", owner="ann")).token
    narrow = asking("ann", Rights(role=Role.VIEWER, within=ALPHA))
    own = narrow.do(MakeToken(name="own", owner="ann")).token

    for ask in (lambda: narrow.do(RevokeToken(token=more.id)), lambda: narrow.do(EndSessions(name="ann"))):
        with pytest.raises(Forbidden, match="this token has fewer rights than ann and may not"):
            ask()
    narrow.do(RevokeToken(token=own.id))
    assert [t.name for t in asking("ann", SUBMITTER).do(ListTokens()).items if not t.revoked_us] == ["more"]


def test_a_token_that_expires_makes_none_that_lasts_longer(admin: Control, clock: Clock) -> None:
    # given
    ends_us = clock.now_us + 3_600_000_000
    brief = dataclasses.replace(admin, ends_us=ends_us)

    # when, then
    for expires_us in (None, ends_us + 1):
        with pytest.raises(Forbidden, match="lasts longer"):
            brief.do(MakeToken(name="heir", rights=Rights(role=Role.VIEWER), expires=expires_us))
    answer = brief.do(MakeToken(name="heir", rights=Rights(role=Role.VIEWER), expires=ends_us))
    assert answer.token.expires_us == ends_us


def test_a_token_that_expires_gives_no_password(admin: Control, clock: Clock) -> None:
    brief = dataclasses.replace(admin, ends_us=clock.now_us + 3_600_000_000)

    for command in (
        MakeLink(name="ann"),
        AddUser(name="heir", rights=SUBMITTER, password="correct horse battery"),
    ):
        with pytest.raises(Forbidden, match=r"a token that expires cannot .* which lasts longer; sign in"):
            brief.do(command)
    assert brief.do(AddUser(name="heir", rights=SUBMITTER)).name == "heir"


def test_others_tokens_are_not_there_for_who_is_no_admin(admin: Control, asking: Asking) -> None:
    token = admin.do(MakeToken(name="t", owner="root")).token

    with pytest.raises(NoSuch, match="you have no token with the id"):
        asking("ann", SUBMITTER).do(RevokeToken(token=token.id))
    admin.do(RevokeToken(token=token.id))
    with pytest.raises(NoSuch, match="root has no token 't'"):
        find_token(admin, "t", "root")


def test_a_users_token_that_is_looked_up_without_its_owner_is_refused_with_the_owners_name(
    admin: Control,
) -> None:
    admin.do(MakeToken(name="t", owner="root"))

    with pytest.raises(NoSuch, match="token 't' belongs to root; add --user root"):
        find_token(admin, "t", None)


def test_a_machines_token_says_what_it_may_and_until_when(admin: Control, clock: Clock) -> None:
    with pytest.raises(UsageError, match="name a role"):
        admin.do(MakeToken(name="ci"))
    with pytest.raises(UsageError, match="would have expired already"):
        admin.do(MakeToken(name="ci", rights=SUBMITTER, expires=clock.now_us))
    with pytest.raises(BadName):
        admin.do(MakeToken(name="c i", rights=SUBMITTER))

    answer = admin.do(MakeToken(name="ci", rights=SUBMITTER, expires=clock.now_us + 1))

    principal = admin.part(SignIn).known_by_token(answer.secret)
    assert principal is not None
    assert (principal.name, principal.rights) == ("token:ci", SUBMITTER)


def test_a_disabled_user_gets_none(admin: Control) -> None:
    admin.do(ChangeUser(name="ann", disabled=True))

    with pytest.raises(Refused, match="ann is disabled"):
        admin.do(MakeToken(name="t", owner="ann"))
