"""Users, tokens, sessions, links, and what slows those who guess."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import BadLogin, NoSuch, Refused, TooManyAttempts
from spinney.model.rights.accounts import Identity, LoginAttempt, LoginLimit, Token, User, digest, new_token
from spinney.model.rights.actor import Actor
from spinney.store.parts import Store

from .behind import rows
from .words import Clock, Site

ROOT = Actor(by="root", call="c", reason="why not")
VIEWER = Rights(role=Role.VIEWER)
HOUR_US, MINUTE_US, DAY_US = 3_600_000_000, 60_000_000, 86_400_000_000


class People:
    """A store with the admin ``root``, and short words for what is asked of it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.add("root", ALL_RIGHTS)

    @property
    def now(self) -> int:
        return self.clock.now_us

    def add(self, name: str, rights: Rights = VIEWER, password: str | None = "hash") -> User:
        return self.store.accounts.add(name, rights, password, ROOT, now_us=self.now)

    def token(self, name: str = "ci", owner: str | None = None, rights: Rights = VIEWER, **more: Any) -> str:
        """Its secret."""
        id_, secret = new_token()
        made = Token(id=id_, name=name, owner=owner, rights=rights, created_us=0, by="", **more)
        self.store.accounts.make_token(made, digest(secret), ROOT, now_us=self.now)
        return secret

    def by_token(self, secret: str) -> Identity | None:
        return self.store.accounts.identity_of_token(secret.split("_")[1], digest(secret), now_us=self.now)

    def login(self, name: str, secret: str = "s", **more: Any) -> None:
        more = {"idle_us": HOUR_US, "lasts_us": 3 * HOUR_US} | more
        self.store.sign_in.open(name, digest(secret), ROOT, now_us=self.now, **more)

    def by_session(self, secret: str = "s") -> Identity | None:
        return self.store.sign_in.identity_of_session(digest(secret), now_us=self.now)

    def attempt(self, name: str, address: str | None = None) -> LoginAttempt:
        """Counted for somebody alone, and with others of this address."""
        limits = [LoginLimit(key=name, free=3, cleared=True)]
        if address is not None:
            limits.append(LoginLimit(key=address, free=3))
        return self.store.sign_in.attempt(limits, now_us=self.now)

    def fail(self, name: str = "ann", address: str | None = None) -> float:
        """An attempt that fails; or how long it would have to wait, and it is none."""
        try:
            self.attempt(name, address)
        except TooManyAttempts as error:
            return error.wait_s
        return 0.0

    def fail_patiently(self, name: str = "ann", address: str | None = None, *, times: int) -> list[float]:
        """So many that fail, each when it is answered; how long each had to wait."""
        waits = []
        for _ in range(times):
            waits.append(self.fail(name, address))
            if waits[-1]:
                self.clock.forward(waits[-1])
                assert self.fail(name, address) == 0
        return waits

    def verbs(self) -> list[tuple[str, int]]:
        return [(entry.verb, entry.count) for entry, _ in self.store.audit.entries()]


@pytest.fixture
def people(store: Store, clock: Clock) -> People:
    return People(store, clock)


# --- users ------------------------------------------------------------------------------------


def test_a_user_is_kept_with_exactly_these_rights(people: People) -> None:
    rights = Rights(
        role=Role.OPERATOR,
        within=AccessScope(collections=("alpha",), queues=("a", "b")),
        shares=("lab:*",),
        priorities=(40, 60),
        locks=("receiver:*",),
        external=("weigh",),
    )

    people.add("ann", rights, None)

    user = people.store.accounts.user("ann")
    assert user == User(name="ann", rights=rights, created_us=people.now, by="root")
    assert [u.name for u in people.store.accounts.users()] == ["ann", "root"]


def test_a_name_is_taken_once_and_an_unknown_one_is_told_with_the_nearest(people: People) -> None:
    people.add("ann")

    with pytest.raises(Refused, match="there is a user 'ann' already"):
        people.add("ann")
    with pytest.raises(NoSuch, match=r"no user 'anne' \(did you mean 'ann'"):
        people.store.accounts.user("anne")


def test_a_store_without_users_says_so(store: Store, clock: Clock) -> None:
    assert not store.accounts.any_user()
    assert People(store, clock).store.accounts.any_user()


@pytest.mark.parametrize("do", ["disable", "delete", "change", "limit"])
def test_the_last_admin_without_limits_cannot_go(people: People, do: str) -> None:
    accounts, now_us = people.store.accounts, people.now
    people.add("ben", Rights(role=Role.ADMIN, within=AccessScope(queues=("a",))))
    people.add("cid", ALL_RIGHTS)
    accounts.disable("cid", ROOT, disabled=True, now_us=now_us)
    ways: dict[str, Callable[[], object]] = {
        "disable": lambda: accounts.disable("root", ROOT, disabled=True, now_us=now_us),
        "delete": lambda: accounts.delete("root", ROOT, now_us=now_us),
        "change": lambda: accounts.change("root", VIEWER, ROOT, now_us=now_us),
        "limit": lambda: accounts.change(
            "root", people.store.accounts.user("ben").rights, ROOT, now_us=now_us
        ),
    }

    with pytest.raises(Refused, match="root is the only admin without limits"):
        ways[do]()

    accounts.disable("cid", ROOT, disabled=False, now_us=now_us)
    ways[do]()


def test_every_change_is_in_the_audit_once_and_no_secret_is(people: People) -> None:
    accounts, now_us = people.store.accounts, people.now
    people.add("ann", password="secret-hash")
    accounts.change("ann", Rights(role=Role.SUBMITTER), ROOT, now_us=now_us)
    accounts.change("ann", Rights(role=Role.SUBMITTER), ROOT, now_us=now_us)
    accounts.set_password("ann", "secret-hash", ROOT, now_us=now_us)
    secret = people.token(owner="ann")
    people.login("ann", "secret-session")
    people.store.sign_in.close(digest("secret-session"), ROOT, now_us=now_us)
    people.store.sign_in.invite("ann", digest("secret-link"), ROOT, lasts_us=1, now_us=now_us)
    accounts.revoke(secret.split("_")[1], ROOT, now_us=now_us)
    accounts.disable("ann", ROOT, disabled=True, now_us=now_us)
    accounts.disable("ann", ROOT, disabled=True, now_us=now_us)
    accounts.disable("ann", ROOT, disabled=False, now_us=now_us)
    accounts.delete("ann", ROOT, now_us=now_us)

    assert [verb for verb, _ in people.verbs()] == [
        "user add",
        "user add",
        "user change",
        "user password",
        "token make",
        "login",
        "logout",
        "user link",
        "token revoke",
        "user disable",
        "user enable",
        "user delete",
    ]
    entries = str(people.store.audit.entries())
    assert "secret" not in entries
    assert secret[-43:] not in entries
    assert digest(secret) not in entries
    assert people.store.audit.verify() == 12


def test_what_outsiders_do_is_entered_by_itself(people: People) -> None:
    people.store.audit.enter("login refused", {"address": "::1"}, ROOT, count=7, now_us=people.now)

    assert people.verbs()[-1] == ("login refused", 7)


# --- tokens -----------------------------------------------------------------------------------


def test_a_token_acts_in_its_owners_name_and_never_beyond_either(people: People) -> None:
    people.add("ann", Rights(role=Role.SUBMITTER, within=AccessScope(queues=("a", "b"))))
    secret = people.token(owner="ann", rights=Rights(role=Role.ADMIN, within=AccessScope(queues=("b", "c"))))

    principal = people.by_token(secret)

    assert principal is not None
    assert (principal.name, principal.rights) == (
        "ann",
        Rights(role=Role.SUBMITTER, within=AccessScope(queues=("b",))),
    )
    people.store.accounts.change("ann", VIEWER, ROOT, now_us=people.now)
    principal = people.by_token(secret)
    assert principal is not None
    assert principal.rights.role is Role.VIEWER


def test_a_machines_token_acts_in_a_name_that_no_user_has(people: People) -> None:
    principal = people.by_token(people.token("ci", rights=Rights(role=Role.SUBMITTER)))

    assert principal is not None
    assert (principal.name, principal.rights.role) == ("token:ci", Role.SUBMITTER)


def test_only_the_whole_secret_opens(people: People) -> None:
    secret = people.token()
    id_ = secret.split("_")[1]

    assert people.by_token(secret) is not None
    assert people.by_token(secret[:-1] + ("a" if secret[-1] != "a" else "b")) is None
    assert people.store.accounts.identity_of_token(id_, "", now_us=people.now) is None
    assert people.store.accounts.identity_of_token("0" * 16, digest(secret), now_us=people.now) is None


def test_a_token_ends_with_its_time_its_revocation_and_its_owner(people: People) -> None:
    people.add("ann")
    people.add("ben")
    timed = people.token("timed", "ann", expires_us=people.now + MINUTE_US)
    revoked, kept = people.token("revoked", "ann"), people.token("kept", "ann")
    of_ben = people.token("kept", "ben")

    people.clock.forward(59)
    assert people.by_token(timed) is not None
    people.clock.forward(1)
    assert people.by_token(timed) is None
    people.store.accounts.revoke(revoked.split("_")[1], ROOT, now_us=people.now)
    assert people.by_token(revoked) is None
    people.store.accounts.disable("ann", ROOT, disabled=True, now_us=people.now)
    assert people.by_token(kept) is None
    people.store.accounts.disable("ann", ROOT, disabled=False, now_us=people.now)
    assert people.by_token(kept) is not None
    people.store.accounts.delete("ann", ROOT, now_us=people.now)
    people.add("ann")
    assert people.by_token(kept) is None, "somebody else may have the name now"
    assert people.by_token(of_ben) is not None


def test_a_name_is_free_again_when_its_token_is_void(people: People) -> None:
    people.add("ann")
    first = people.token("ci", "ann", expires_us=people.now + 1)
    people.token("ci")
    with pytest.raises(Refused, match=r"there is a token 'ci' already.*token revoke ci --user ann"):
        people.token("ci", "ann")

    people.clock.forward(1)
    second = people.token("ci", "ann")

    assert people.by_token(first) is None
    assert people.by_token(second) is not None
    assert [(t.owner, t.name, t.revoked_us is None) for t in people.store.accounts.tokens()] == [
        (None, "ci", True),
        ("ann", "ci", False),
        ("ann", "ci", True),
    ]
    assert [t.owner for t in people.store.accounts.tokens("")] == [None]


def test_nobody_gets_a_token_who_is_not_there_or_disabled(people: People) -> None:
    people.add("ann")
    people.store.accounts.disable("ann", ROOT, disabled=True, now_us=people.now)

    with pytest.raises(Refused, match="ann is disabled"):
        people.token(owner="ann")
    with pytest.raises(NoSuch):
        people.token(owner="nobody")


def test_when_it_was_used_is_written_once_a_minute(people: People) -> None:
    secret = people.token()
    seen = []
    for seconds in (0, 30, 29, 1, 59, 1):
        people.clock.forward(seconds)
        people.by_token(secret)
        seen.append(people.store.accounts.token(secret.split("_")[1]).used_us)

    start = people.now - 120 * 1_000_000
    assert [(us or 0) - start for us in seen] == [0, 0, 0, MINUTE_US, MINUTE_US, 2 * MINUTE_US]


# --- sessions ---------------------------------------------------------------------------------


def test_a_session_ends_when_it_was_idle_and_when_its_time_is_over(people: People) -> None:
    people.add("ann", Rights(role=Role.OPERATOR))
    people.login("ann", address="10.0.0.1", agent="x" * 1000)

    principal = people.by_session()
    assert principal is not None
    assert principal.session is not None
    assert (principal.name, principal.rights.role, principal.session.address) == (
        "ann",
        Role.OPERATOR,
        "10.0.0.1",
    )
    assert principal.session.agent == "x" * 200
    for _ in range(3):
        people.clock.forward(3_599)
        assert people.by_session() is not None, "it is seen, so that it goes on"
    people.clock.forward(3)
    assert people.by_session() is None, "three hours are over"

    people.login("ann", "other")
    people.clock.forward(3_600)
    assert people.by_session("other") is None, "an hour of nothing"
    assert people.store.sign_in.sessions("ann", now_us=people.now) == []


@pytest.mark.parametrize("do", ["password", "disable", "delete", "end", "close"])
def test_what_ends_a_session(people: People, do: str) -> None:
    people.add("ann")
    people.add("ben")
    people.login("ann")
    people.login("ben", "bens")
    accounts, sign_in, now_us = people.store.accounts, people.store.sign_in, people.now
    {
        "password": lambda: accounts.set_password("ann", "other", ROOT, now_us=now_us),
        "disable": lambda: accounts.disable("ann", ROOT, disabled=True, now_us=now_us),
        "delete": lambda: accounts.delete("ann", ROOT, now_us=now_us),
        "end": lambda: sign_in.end("ann", ROOT, now_us=now_us),
        "close": lambda: sign_in.close(digest("s"), ROOT, now_us=now_us),
    }[do]()

    assert people.by_session() is None
    assert people.by_session("bens") is not None
    if do == "disable":
        accounts.disable("ann", ROOT, disabled=False, now_us=now_us)
        assert people.by_session() is None, "it does not come back"


def test_a_session_is_opened_only_by_the_password_that_was_verified(people: People) -> None:
    people.add("ann", password="old")
    people.store.accounts.set_password("ann", "new", ROOT, now_us=people.now)

    with pytest.raises(BadLogin):
        people.login("ann", proof="old")
    people.login("ann", proof="new")
    with pytest.raises(BadLogin):
        people.store.accounts.set_password("ann", "third", ROOT, proof="old", now_us=people.now)
    people.store.accounts.rehash("ann", "old", "again")
    assert people.store.accounts.password("ann") == (people.store.accounts.user("ann"), "new")
    people.store.accounts.disable("ann", ROOT, disabled=True, now_us=people.now)
    with pytest.raises(BadLogin):
        people.login("ann", "t")


# --- slowing ----------------------------------------------------------------------------------


def test_three_attempts_are_free_and_each_that_follows_waits_twice_as_long(people: People) -> None:
    waits = people.fail_patiently(times=14)

    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert people.fail("ben") == 0, "others are not kept waiting"


def test_the_strictest_limit_counts(people: People) -> None:
    for name in ("a", "b", "c"):
        people.fail(name, "10.0.0.1")

    assert people.fail("d", "10.0.0.1") == 1
    assert people.fail("d", "10.0.0.2") == 0
    assert people.fail("a", "10.0.0.2") == 0


def test_many_at_once_are_no_way_round(people: People) -> None:
    """Each is counted before its password is looked at."""
    answers = [people.fail() for _ in range(20)]

    assert answers.count(0) == 3


def test_one_that_has_to_wait_is_not_counted(people: People) -> None:
    people.fail_patiently(times=3)
    assert [people.fail() for _ in range(5)] == [1] * 5

    people.clock.forward(0.75)
    assert people.fail() == 0.25
    people.clock.forward(0.25)
    assert people.fail() == 0


def test_a_login_clears_its_own_limit_but_not_what_is_counted_with_others(people: People) -> None:
    people.add("ann")
    people.fail_patiently("other", "10.0.0.1", times=2)
    people.fail_patiently("ann", "10.0.0.1", times=1)
    people.clock.forward(1)

    attempt = people.attempt("ann", "10.0.0.1")
    people.login("ann", attempt=attempt)

    assert people.fail_patiently("ann", times=4) == [0, 0, 0, 1], "of the name nothing is left"
    assert people.fail("other", "10.0.0.1") == 0, "it was its third, and the login itself is no failure"
    assert people.fail("fourth", "10.0.0.1") == 2, "of the address four have failed"


def test_a_login_takes_back_no_failure_that_came_meanwhile(people: People) -> None:
    people.add("ann")
    attempt = people.attempt("ann", "10.0.0.1")
    people.clock.forward(1)
    for name in ("a", "b"):
        people.fail(name, "10.0.0.1")
    people.login("ann", attempt=attempt)

    assert people.fail("c", "10.0.0.1") == 0
    assert people.fail("d", "10.0.0.1") == 1


def test_failures_are_forgotten_after_a_day(people: People) -> None:
    people.fail_patiently(times=8)
    people.clock.forward(86_400)

    assert people.fail_patiently(times=4) == [0, 0, 0, 1]


# --- links ------------------------------------------------------------------------------------


def test_the_first_admin_is_made_once(store: Store, clock: Clock) -> None:
    sign_in = store.sign_in
    sign_in.invite(None, digest("old"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)
    sign_in.invite(None, digest("new"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)

    with pytest.raises(BadLogin):  # a new link voids the old
        sign_in.link(digest("old"), now_us=clock.now_us)
    made = sign_in.accept(digest("new"), "ann", "hash", ROOT, now_us=clock.now_us)

    assert (made.name, made.rights) == ("ann", ALL_RIGHTS)
    with pytest.raises(BadLogin):
        sign_in.accept(digest("new"), "ben", "hash", ROOT, now_us=clock.now_us)
    with pytest.raises(Refused, match="there are users already"):
        sign_in.invite(None, digest("third"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)


def test_the_first_admins_link_ends_an_hour_after_the_first_however_many_are_made(
    store: Store, clock: Clock
) -> None:
    sign_in, began_us = store.sign_in, clock.now_us
    sign_in.invite(None, digest("first"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)
    clock.forward(3_599)

    second = sign_in.invite(None, digest("second"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)

    assert second.ends_us == began_us + HOUR_US
    clock.forward(1)
    store.sweep(now_us=clock.now_us)
    with pytest.raises(
        Refused, match=r"has expired; create the first admin .*'spinney user add NAME --role admin'"
    ):
        sign_in.invite(None, digest("third"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)


def test_a_link_to_the_first_admin_is_void_once_there_is_a_user(store: Store, clock: Clock) -> None:
    store.sign_in.invite(None, digest("link"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)
    store.accounts.add("ann", VIEWER, None, ROOT, now_us=clock.now_us)

    with pytest.raises(BadLogin):
        store.sign_in.link(digest("link"), now_us=clock.now_us)
    with pytest.raises(BadLogin):
        store.sign_in.accept(digest("link"), "ben", "hash", ROOT, now_us=clock.now_us)


def test_of_two_who_use_a_link_at_once_one_wins(open_another: Callable[[], Store], clock: Clock) -> None:
    first = open_another()
    first.sign_in.invite(None, digest("link"), ROOT, lasts_us=HOUR_US, now_us=clock.now_us)
    came: list[str] = []
    ready = threading.Barrier(4)

    def accept(name: str, store: Store) -> None:
        ready.wait(10)
        try:
            came.append(store.sign_in.accept(digest("link"), name, "hash", ROOT, now_us=clock.now_us).name)
        except BadLogin:
            came.append("")

    threads = [threading.Thread(target=accept, args=(f"u{n}", open_another())) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    (winner,) = [name for name in came if name]
    assert len(came) == 4
    assert [u.name for u in first.accounts.users()] == [winner]


def test_a_link_sets_a_password_once_and_in_its_time(people: People) -> None:
    people.add("ann", password=None)
    sign_in = people.store.sign_in
    sign_in.invite("ann", digest("late"), ROOT, lasts_us=MINUTE_US, now_us=people.now)
    people.clock.forward(60)
    with pytest.raises(BadLogin):
        sign_in.link(digest("late"), now_us=people.now)
    sign_in.invite("ann", digest("link"), ROOT, lasts_us=MINUTE_US, now_us=people.now)
    people.login("ann")
    link = sign_in.link(digest("link"), now_us=people.now)
    assert link.user == "ann"

    made = sign_in.accept(digest("link"), "whatever", "hash", ROOT, now_us=people.now)

    assert (made.name, made.password_us, made.rights) == ("ann", people.now, VIEWER)
    assert people.by_session() is None
    with pytest.raises(BadLogin):
        sign_in.accept(digest("link"), "ann", "hash", ROOT, now_us=people.now)


@pytest.mark.parametrize("do", ["password", "disable", "delete"])
def test_what_voids_a_link(people: People, do: str) -> None:
    people.add("ann")
    accounts, sign_in, now_us = people.store.accounts, people.store.sign_in, people.now
    sign_in.invite("ann", digest("link"), ROOT, lasts_us=MINUTE_US, now_us=now_us)
    {
        "password": lambda: accounts.set_password("ann", "other", ROOT, now_us=now_us),
        "disable": lambda: accounts.disable("ann", ROOT, disabled=True, now_us=now_us),
        "delete": lambda: accounts.delete("ann", ROOT, now_us=now_us),
    }[do]()

    with pytest.raises(BadLogin):
        sign_in.link(digest("link"), now_us=now_us)


def test_a_disabled_user_gets_no_link(people: People) -> None:
    people.add("ann")
    people.store.accounts.disable("ann", ROOT, disabled=True, now_us=people.now)

    with pytest.raises(Refused, match="ann is disabled"):
        people.store.sign_in.invite("ann", digest("link"), ROOT, lasts_us=1, now_us=people.now)


# --- what servers share, and what goes --------------------------------------------------------


def test_a_secret_is_made_once_for_all_servers_and_is_no_fact(
    open_another: Callable[[], Store], clock: Clock
) -> None:
    one, other = open_another(), open_another()

    secret = one.sign_in.secret("session-key", now_us=clock.now_us)

    assert len(secret) == 32
    assert other.sign_in.secret("session-key", now_us=clock.now_us) == secret
    assert other.sign_in.secret("other", now_us=clock.now_us) != secret
    assert secret.hex() not in str(one.facts())


def test_housekeeping_forgets_what_is_over_and_nothing_else(site: Site, people: People) -> None:
    people.add("ann")
    people.fail("guessed")
    people.login("ann", "over", lasts_us=HOUR_US)
    old = people.token("old", "ann", expires_us=people.now + 1)
    people.clock.forward(2 * 86_400)
    people.login("ann", "good")
    people.store.sign_in.invite("ann", digest("link"), ROOT, lasts_us=HOUR_US, now_us=people.now)
    kept = people.token("kept", "ann")

    people.store.sweep(now_us=people.now)

    assert people.by_session("good") is not None
    assert people.store.sign_in.link(digest("link"), now_us=people.now).user == "ann"
    assert people.by_token(kept) is not None
    assert [t.name for t in people.store.accounts.tokens("ann")] == ["kept", "old"], (
        "it is listed for a while"
    )
    people.clock.forward(90 * 86_400)
    people.store.sweep(now_us=people.now)
    assert [t.name for t in people.store.accounts.tokens("ann")] == ["kept"]
    assert people.by_token(old) is None
    for table in ("sessions", "login_failures", "invites"):
        assert rows(people.store, f"select * from {table}") == []
