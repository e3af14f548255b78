"""Getting in: by password, token, session, link."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from contract.words import Clock
from new_store import new_store
from spinney.commands.control import Control
from spinney.features.accounts.commands import AddUser, ChangeUser, MakeLink, MakeToken, set_password
from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.errors import BadLogin, BadName, TooManyAttempts, UsageError
from spinney.model.operators.audits import AuditEntry
from spinney.model.rights.accounts import token_id
from spinney.service import passwords
from spinney.service.login_limits import FREE_OF_MANY
from spinney.service.refusal_log import KINDS_MOST, RefusalLog
from spinney.service.sign_in import IDLE_US, ClientInfo, SignIn
from spinney.store.sql import open_store

PASSWORD = "correct horse 1"
HERE = ClientInfo(address="10.0.0.1", agent="Firefox")


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that take no time."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", lambda: (hasher, hasher.hash("")))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(tmp_path: Path, clock: Clock) -> Iterator[Control]:
    """A server's hand on a store without users."""
    store = open_store(new_store(tmp_path / "x.db"))
    yield Control(store=store, clock=lambda: clock.now_us, wake_nodes=lambda: None, by="(server)")
    store.close()


@pytest.fixture
def ann(server: Control) -> Control:
    """The same, with ann and her password."""
    server.do(AddUser(name="root", rights=ALL_RIGHTS))
    server.do(AddUser(name="ann", rights=Rights(role=Role.SUBMITTER), password=PASSWORD))
    return server


@pytest.fixture
def refusals() -> RefusalLog:
    return RefusalLog()


def entries(control: Control, verb: str) -> list[AuditEntry]:
    return [entry for entry, _ in control.store.audit.entries(verb=verb)]


def test_who_knows_the_password_gets_a_session(ann: Control, refusals: RefusalLog) -> None:
    secret, session = ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)

    principal = ann.part(SignIn).known_by_session(secret)
    assert principal is not None
    assert (principal.name, principal.rights, principal.session) == (
        "ann",
        Rights(role=Role.SUBMITTER),
        session,
    )
    assert (session.address, session.agent) == ("10.0.0.1", "Firefox")
    assert session.ends_us - session.created_us == 12 * 3_600_000_000
    assert ann.part(SignIn).logout(secret)
    assert ann.part(SignIn).known_by_session(secret) is None
    assert not ann.part(SignIn).logout(secret)
    assert [(e.by, e.what) for e in entries(ann, "logout")] == [("ann", '{"user":"ann"}')]


def test_terms_say_how_long_it_is_good(ann: Control, refusals: RefusalLog, clock: Clock) -> None:
    secret, _ = ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)

    clock.forward(IDLE_US / 1e6 - 0.1)
    assert ann.part(SignIn).known_by_session(secret, used=False) is not None
    clock.forward(0.2)
    assert ann.part(SignIn).known_by_session(secret, used=False) is None


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ann", "wrong"),
        ("ann", ""),
        ("ann", PASSWORD + "\0"),
        ("ann", PASSWORD * 100),
        ("ann", "\ud800" * 12),
        ("root", ""),
        ("root", PASSWORD),
        ("nobody", PASSWORD),
        ("", PASSWORD),
        ("ann ", PASSWORD),
    ],
)
def test_all_others_are_told_the_same(ann: Control, refusals: RefusalLog, name: str, password: str) -> None:
    with pytest.raises(BadLogin) as caught:
        ann.part(SignIn).login(name, password, refusals, visit=HERE)

    assert str(caught.value) == (
        "the name or the password is wrong; try again, or ask an admin for a link that sets a new one"
    )


def test_a_disabled_user_is_told_the_same(ann: Control, refusals: RefusalLog) -> None:
    ann.do(ChangeUser(name="ann", disabled=True))

    with pytest.raises(BadLogin, match="the name or the password is wrong"):
        ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)
    with pytest.raises(BadLogin):
        ann.part(SignIn).login_known("ann", visit=HERE)


def test_as_much_is_hashed_for_who_is_not_there(
    ann: Control, refusals: RefusalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasher, of_nothing = passwords._hasher()
    seen: list[tuple[str, str]] = []

    class Seen(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # type: ignore[override]  # noqa: A002
            seen.append((str(hash).rsplit("$", 2)[0], str(password)))
            return hasher.verify(hash, password)

    monkeypatch.setattr(passwords, "_hasher", lambda: (Seen(), of_nothing))
    for name in ("ann", "root", "nobody"):
        with pytest.raises(BadLogin):
            ann.part(SignIn).login(name, "guess guess guess", refusals, visit=ClientInfo())

    assert seen == [("$argon2id$v=19$m=8,t=1,p=1", "guess guess guess")] * 3


def test_hashes_are_argon2s_own_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    assert passwords.hashed(PASSWORD).startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_only_so_many_are_verified_at_once_and_the_others_are_not_counted(
    ann: Control, refusals: RefusalLog
) -> None:
    with ExitStack() as crowd:
        for _ in range(passwords.AT_ONCE):
            crowd.enter_context(passwords.room())
        for _ in range(10):
            with pytest.raises(
                TooManyAttempts, match="too many users log in at this moment; try again in 1 second"
            ):
                ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)

    ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)


def test_the_same_text_fits_however_it_was_typed(ann: Control, refusals: RefusalLog) -> None:
    set_password(ann, "ann", "Ångström-é-12")

    ann.part(SignIn).login("ann", "A\u030angstro\u0308m-e\u0301-12", refusals, visit=HERE)


def test_a_hash_of_old_parameters_is_made_anew(ann: Control, refusals: RefusalLog) -> None:
    weak = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(PASSWORD)
    actor = ann.actor()
    ann.store.accounts.set_password("ann", weak, actor, now_us=ann.clock())

    secret, _ = ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)

    password = ann.store.accounts.password("ann")
    assert password is not None
    assert password[1] is not None
    assert not passwords.outdated(password[1])
    assert ann.part(SignIn).known_by_session(secret) is not None
    ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)


def test_guessing_is_slowed_and_who_waited_gets_in(ann: Control, refusals: RefusalLog, clock: Clock) -> None:
    for _ in range(3):
        with pytest.raises(BadLogin):
            ann.part(SignIn).login("ann", "guess", refusals, visit=HERE)
    with pytest.raises(TooManyAttempts, match="try again in 1 second") as caught:
        ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)
    assert caught.value.wait_s == 1.0

    clock.forward(1)
    ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)
    with pytest.raises(BadLogin):
        ann.part(SignIn).login("ann", "guess", refusals, visit=ClientInfo(address="10.0.0.2"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("testclient", "testclient", True),
        ("testclient", "other", False),
    ],
)
def test_what_counts_as_one_address(
    ann: Control, refusals: RefusalLog, one: str, other: str, same: bool
) -> None:
    guess(ann, refusals, *[("ann", one)] * 3)

    with pytest.raises(TooManyAttempts if same else BadLogin):
        ann.part(SignIn).login("ann", "guess", refusals, visit=ClientInfo(address=other))


def guess(control: Control, refusals: RefusalLog, *attempts: tuple[str, str]) -> None:
    """Wrong passwords for these names from these addresses, none of which has to wait."""
    for name, address in attempts:
        with pytest.raises(BadLogin):
            control.part(SignIn).login(name, "guess", refusals, visit=ClientInfo(address=address))


def test_who_guesses_slows_nobody_else(ann: Control, refusals: RefusalLog) -> None:
    ann.do(AddUser(name="ben", rights=Rights(role=Role.VIEWER), password=PASSWORD))
    guess(ann, refusals, *[("ann", "10.0.0.1")] * 3)

    ann.part(SignIn).login("ben", PASSWORD, refusals, visit=HERE)
    ann.part(SignIn).login("ann", PASSWORD, refusals, visit=ClientInfo(address="10.0.0.2"))
    with pytest.raises(TooManyAttempts):
        ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)


def test_an_address_is_slowed_only_far_beyond_what_people_mistype(
    ann: Control, refusals: RefusalLog, clock: Clock
) -> None:
    guess(ann, refusals, *[(f"name{n}", "10.0.0.1") for n in range(FREE_OF_MANY)])

    with pytest.raises(TooManyAttempts):
        ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)
    ann.part(SignIn).login("ann", PASSWORD, refusals, visit=ClientInfo(address="10.0.0.2"))
    clock.forward(86_400)
    ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)


def test_a_name_that_many_addresses_guess_at_is_slowed_but_not_on_a_known_device(
    ann: Control, refusals: RefusalLog, clock: Clock
) -> None:
    _, session = ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)
    client_info = ClientInfo(address="10.0.0.1", device=ann.part(SignIn).device(session))
    guesses, ends_us = 0, clock.now_us + 86_400_000_000
    while clock.now_us < ends_us:
        try:
            ann.part(SignIn).login(
                "ann", "guess", refusals, visit=ClientInfo(address=f"2001:db8:{guesses:x}::1")
            )
        except TooManyAttempts as error:
            clock.forward(error.wait_s)
        except BadLogin:
            guesses += 1

    # Midnight lies within, so these are the free attempts of two days, and twice the ten until each takes 300 s.
    assert FREE_OF_MANY < guesses < 2 * (FREE_OF_MANY + 10) + 86_400 // 300
    ann.part(SignIn).login("ann", PASSWORD, refusals, visit=client_info)


def test_a_device_is_known_by_its_own_user_and_password_alone(
    ann: Control, refusals: RefusalLog, clock: Clock
) -> None:
    ann.do(AddUser(name="eve", rights=Rights(role=Role.VIEWER), password=PASSWORD))
    devices = {}
    for name in ("ann", "eve"):
        _, session = ann.part(SignIn).login(name, PASSWORD, refusals, visit=HERE)
        devices[name] = ann.part(SignIn).device(session)
    guess(ann, refusals, *[("ann", "10.0.0.1")] * 3)

    with pytest.raises(TooManyAttempts):  # somebody else's device
        ann.part(SignIn).login("ann", PASSWORD, refusals, visit=replace(HERE, device=devices["eve"]))
    clock.forward(0.5)
    set_password(ann, "ann", PASSWORD + "2")
    with pytest.raises(TooManyAttempts):
        ann.part(SignIn).login("ann", PASSWORD, refusals, visit=replace(HERE, device=devices["ann"]))


def test_who_guesses_on_a_known_device_is_slowed_by_himself(ann: Control, refusals: RefusalLog) -> None:
    _, session = ann.part(SignIn).login("ann", PASSWORD, refusals, visit=HERE)
    client_info = replace(HERE, device=ann.part(SignIn).device(session))
    for _ in range(3):
        with pytest.raises(BadLogin):
            ann.part(SignIn).login("ann", "guess", refusals, visit=client_info)

    with pytest.raises(TooManyAttempts):
        ann.part(SignIn).login("ann", PASSWORD, refusals, visit=client_info)


def test_what_opens_nothing_is_nobody(ann: Control) -> None:
    answer = ann.do(MakeToken(name="t", owner="ann"))

    assert token_id(answer.secret) == answer.token.id
    for secret in (
        "",
        "spn_",
        "spn_" + "0" * 16 + "_" + "x" * 43,
        answer.secret + "x",
        answer.secret.upper(),
        "\ud800",
    ):
        assert ann.part(SignIn).known_by_token(secret) is None
        assert ann.part(SignIn).known_by_session(secret) is None


# --- links ------------------------------------------------------------------------------------


def test_the_first_admin_comes_by_a_link(server: Control, clock: Clock) -> None:
    secret = server.part(SignIn).invite_first()
    assert secret is not None
    assert server.part(SignIn).link(secret).user is None
    with pytest.raises(UsageError, match="12 to 256"):
        server.part(SignIn).accept(secret, "ann", "short")
    with pytest.raises(BadName):
        server.part(SignIn).accept(secret, "", PASSWORD)

    made = server.part(SignIn).accept(secret, "ann", PASSWORD)

    assert (made.name, made.rights, made.by) == ("ann", ALL_RIGHTS, "ann")
    assert server.part(SignIn).invite_first() is None
    with pytest.raises(BadLogin, match="the link is no longer good"):
        server.part(SignIn).accept(secret, "ben", PASSWORD)
    server.part(SignIn).login("ann", PASSWORD, RefusalLog(), visit=HERE)


def test_it_is_good_for_an_hour(server: Control, clock: Clock) -> None:
    secret = server.part(SignIn).invite_first()
    assert secret is not None
    clock.forward(3_600)

    with pytest.raises(BadLogin, match="the link is no longer good"):
        server.part(SignIn).link(secret)


def test_a_link_of_an_admins_sets_a_password(ann: Control, refusals: RefusalLog) -> None:
    secret = ann.do(MakeLink(name="ann")).secret
    assert ann.part(SignIn).link(secret).user == "ann"

    ann.part(SignIn).accept(secret, "root", "another horse 2")

    ann.part(SignIn).login("ann", "another horse 2", refusals, visit=HERE)
    assert [(e.by, e.verb) for e, _ in ann.store.audit.entries(verb="user password")] == [
        ("ann", "user password")
    ]


# --- refusals in the audit --------------------------------------------------------------------


def test_a_refused_login_is_in_the_audit_without_what_was_typed(ann: Control, refusals: RefusalLog) -> None:
    for name in ("ann", "typed-password-here"):
        with pytest.raises(BadLogin):
            ann.part(SignIn).login(name, "guess-guess", refusals, visit=HERE)

    assert [(e.by, e.what, e.count) for e in entries(ann, "login refused")] == [
        ("(nobody)", '{"address":"10.0.0.1","user":"ann","why":"wrong"}', 1),
        ("(nobody)", '{"address":"10.0.0.1","user":null,"why":"wrong"}', 1),
    ]
    audit_text = str(ann.store.audit.entries())
    assert "typed-password-here" not in audit_text
    assert "guess-guess" not in audit_text


def test_a_flood_of_one_kind_is_two_entries_a_minute(
    ann: Control, refusals: RefusalLog, clock: Clock
) -> None:
    audit = ann.store.audit
    for _ in range(1_000):
        refusals.enter(audit, "ben", "refused", {"what": "submit"}, now_us=clock.now_us)
    assert [e.count for e in entries(ann, "refused")] == [1]

    clock.forward(60)
    refusals.flush(audit, now_us=clock.now_us)

    assert [(e.by, e.what, e.count) for e in entries(ann, "refused")] == [
        ("ben", '{"what":"submit"}', 1),
        ("ben", '{"what":"submit"}', 999),
    ]
    refusals.enter(audit, "ben", "refused", {"what": "submit"}, now_us=clock.now_us)
    refusals.flush(audit, now_us=clock.now_us, all_=True)
    refusals.flush(audit, now_us=clock.now_us, all_=True)
    assert [e.count for e in entries(ann, "refused")] == [1, 999, 1]


def test_a_flood_of_many_kinds_is_bounded_and_none_is_lost(
    ann: Control, refusals: RefusalLog, clock: Clock
) -> None:
    audit = ann.store.audit
    for n in range(KINDS_MOST + 500):
        refusals.enter(audit, f"name{n}", "refused", {"path": f"/{n}"}, now_us=clock.now_us)
    assert len(entries(ann, "refused")) == KINDS_MOST + 1

    refusals.flush(audit, now_us=clock.now_us, all_=True)

    refused = entries(ann, "refused")
    assert sum(e.count for e in refused) == KINDS_MOST + 500
    assert (refused[-1].by, refused[-1].what, refused[-1].count) == ("(many)", "{}", 499)
