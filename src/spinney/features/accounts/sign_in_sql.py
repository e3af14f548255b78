"""How people get in: sessions, what slows down guessing, links that set a password, what servers sign with.

**Slowing down.** An attempt is counted as a failure before the password is verified (``attempt``), so that
many attempts at the same time do not get around the delay; one that succeeds is taken back in the transaction
that opens the session. The caller decides under which keys it is counted, and how many failures are free
under each (``spinney.service.login_limits``).

**A session is opened only on the password that was verified**: hashing takes long and happens outside of any
transaction, so it may have been changed meanwhile.
"""

import secrets
from collections.abc import Sequence

from spinney.features.accounts import sql as accounts
from spinney.features.accounts.sql import SEEN_EVERY_US
from spinney.model.access import ALL_RIGHTS
from spinney.model.errors import BadLogin, Refused, TooManyAttempts
from spinney.model.rights.accounts import AGENT_MAX, Identity, Link, LoginAttempt, LoginLimit, User, rights_in
from spinney.model.rights.accounts import Session as Login
from spinney.model.rights.actor import Actor
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import RowMap, insert, upsert
from spinney.store.sql.session import SqlPart

WAIT_MOST_S = 300
"""The longest delay of an attempt, in seconds."""
DAY_US = 86_400_000_000
TOKENS_KEPT_US = 90 * DAY_US
"""How long tokens that are revoked or expired are still listed, in microseconds; the audit has them for
ever."""
_ID_DIGITS = 16
"""How many digits of the digest of a session's secret are its id, by which lists name it."""
_SESSIONS = RowMap(
    Login,
    "sessions",
    columns={"id": "digest", "user": "user_name"},
    decode={"id": lambda digest: digest[:_ID_DIGITS]},
)
"""How rows of ``sessions`` become ``Session`` of the model: the id is made from the digest, which itself is
not shown."""
_IS_OPEN = "ends_us > ? and seen_us + idle_us > ?"
"""The condition of a session that has not ended: neither its whole time is over, nor has it been idle for too
long. It takes the present twice."""
_FIRST_ADMIN = ""
"""The user name in the row of the link that creates the first admin: no user can have an empty name."""


class SqlSignIn(SqlPart):
    """Sign-in: sessions, one-time links, and the delay of those who guess passwords. All secrets come as
    digests, and the store never has them in clear text."""

    # --- slowing --------------------------------------------------------------------------

    def attempt(self, limits: Sequence[LoginLimit], *, now_us: int) -> LoginAttempt:
        """Count a failure under each limit, for a day, before a password is verified, and return what takes
        it back.

        After the free failures under a limit the next attempt is answered only after 1 s, then 2, 4, … 300 s:
        until then this raises TooManyAttempts, and counts nothing. The delay is looked up once without
        writing, so that a flood of refused attempts holds up no writer, and again in the transaction that
        counts.
        """
        with self._session.look() as tx:
            _require_time(tx, limits, now_us)
        with self._session.write(durable=False) as tx:
            before_us = _require_time(tx, limits, now_us)
            for limit in limits:
                tx.run(
                    "insert into login_failures (whose, failures, last_us) values (?, 1, ?) on conflict (whose) do "
                    "update set failures = case when login_failures.last_us <= ? then 1 else "
                    "login_failures.failures + 1 end, last_us = excluded.last_us",
                    (limit.key, now_us, now_us - DAY_US),
                )
        return LoginAttempt(limits=tuple(limits), at_us=now_us, before_us=before_us)

    # --- sessions -------------------------------------------------------------------------

    def open(
        self,
        name: str,
        digest: str,
        actor: Actor,
        *,
        proof: str | None = None,
        attempt: LoginAttempt | None = None,
        idle_us: int,
        lasts_us: int,
        address: str | None = None,
        agent: str | None = None,
        now_us: int,
    ) -> Login:
        """Open a session, take the attempt back, and return the session.

        ``digest``: the digest of the session's secret. ``proof``: the hash that was verified; None: a proxy or an
        identity provider has authenticated the user. The session ends after ``lasts_us``, or ``idle_us`` after its last
        use, both in microseconds. ``address`` and ``agent`` are shown to the user in the list of sessions. Raises
        BadLogin where the password has been changed since, or the user is deleted or disabled.
        """
        with self._session.write() as tx:
            user = tx.one("select disabled, password from users where name = ?", (name,))
            if user is None or user[0] or (proof is not None and user[1] != proof):
                raise BadLogin("the name or the password is wrong; try again, or ask an admin for a link")
            if attempt is not None:
                take_back(tx, attempt)
            row = {
                "digest": digest,
                "user_name": name,
                "created_us": now_us,
                "seen_us": now_us,
                "ends_us": now_us + lasts_us,
                "address": address,
                "agent": agent and agent[:AGENT_MAX],
            }
            insert(tx, "sessions", {**row, "idle_us": idle_us})
            note(tx, now_us, actor, "login", {"user": name, "address": address}, 1)
        return _SESSIONS.read(list(row.values()))

    def identity_of_session(self, digest: str, *, used: bool = True, now_us: int) -> Identity | None:
        """Return whose session this is, with the rights that the user has now; None where it has ended or the
        user is disabled.

        If ``used``, the use is noted to the minute, without waiting for the disk, so that a power failure may
        undo that. A long request that checks its caller again passes False, so that it does not keep the
        session open.
        """
        with self._session.look() as tx:
            row = tx.one(
                f"select {_SESSIONS.columns}, rights from sessions join (select name, rights from users where "
                f"disabled = 0) u on u.name = user_name where digest = ? and {_IS_OPEN}",
                (digest, now_us, now_us),
            )
        if row is None:
            return None
        login = _SESSIONS.read(row)
        if used and now_us - login.seen_us >= SEEN_EVERY_US:
            with self._session.write(durable=False) as tx:
                tx.run(
                    "update sessions set seen_us = ? where digest = ? and seen_us < ?",
                    (now_us, digest, now_us),
                )
        return Identity(name=login.user, rights=rights_in(row[-1]), session=login)

    def take_back(self, attempt: LoginAttempt) -> None:
        """Take back the failures that were counted for an attempt that succeeded and opens no session."""
        with self._session.write() as tx:
            take_back(tx, attempt)

    def close(self, digest: str, actor: Actor, *, now_us: int) -> bool:
        """End a session, and return whether there was one."""
        with self._session.write() as tx:
            user = tx.value("select user_name from sessions where digest = ?", (digest,))
            if user is None:
                return False
            tx.run("delete from sessions where digest = ?", (digest,))
            note(tx, now_us, actor, "logout", {"user": user}, 1)
            return True

    def sessions(self, user: str, *, now_us: int) -> Sequence[Login]:
        """Return a user's open sessions, the oldest first. Raises NoSuch."""
        with self._session.look() as tx:
            accounts.require(tx, user)
            return _SESSIONS.all(
                tx, f"where user_name = ? and {_IS_OPEN} order by created_us, digest", (user, now_us, now_us)
            )

    def end(self, user: str, actor: Actor, *, now_us: int) -> int:
        """End all sessions of a user, and return how many there were. Raises NoSuch."""
        with self._session.write() as tx:
            accounts.require(tx, user)
            tx.run("delete from sessions where user_name = ?", (user,))
            ended = tx.changed()
            if ended:
                note(tx, now_us, actor, "logout all", {"user": user}, ended)
            return ended

    # --- links ----------------------------------------------------------------------------

    def invite(self, user: str | None, digest: str, actor: Actor, *, lasts_us: int, now_us: int) -> Link:
        """Store a link that sets this user's password once (None: creates the first admin), and void the one
        before.

        The first admin's link ends no later than the first of its kind, and none can be made after that.
        Raises NoSuch, and Refused when the user is disabled, or for None when there is a user or such a link
        has expired.
        """
        with self._session.write() as tx:
            ends_us = now_us + lasts_us
            if user is not None:
                accounts.require_enabled(tx, user)
            elif accounts.any_user(tx):
                raise Refused(
                    "there are users already, so no link makes a first admin; ask an admin for a link of your own"
                )
            else:
                # A link that nobody used ends when its hour is over, however often a server starts in between.
                ends_us = min(ends_us, _first_link_ends_us(tx, now_us) or ends_us)
            values = {"user_name": user or _FIRST_ADMIN, "digest": digest, "ends_us": ends_us, "by": actor.by}
            upsert(tx, "invites", "user_name", values)
            note(tx, now_us, actor, "user link", {"user": user}, 1)
        return Link(user=user, ends_us=ends_us)

    def link(self, digest: str, *, now_us: int) -> Link:
        """Return for whom the link is, and until when. Raises BadLogin where it is unknown, used up, or expired, and
        for the first admin's link when there is a user."""
        with self._session.look() as tx:
            return _link(tx, digest, now_us)

    def accept(self, digest: str, name: str, password: str, actor: Actor, *, now_us: int) -> User:
        """Use up a link, and return the user that it created or whose password it set. ``name`` is the name
        of the first admin, and ignored for other links.

        If two calls are made at once, only one succeeds. Raises BadLogin when the link is void.
        """
        with self._session.write() as tx:
            link = _link(tx, digest, now_us)
            if link.user is None:
                made = accounts.add(tx, name, ALL_RIGHTS, password, actor, now_us)
            else:
                made = accounts.set_password(tx, link.user, password, actor, now_us)
            tx.run("delete from invites where digest = ?", (digest,))
            return made

    # --- what servers share ---------------------------------------------------------------

    def secret(self, name: str, *, now_us: int) -> bytes:
        """Return 32 random bytes, always the same ones for a name in this store.

        The first server that asks creates them; if two ask at the same time, both get those of the first. They are not
        among the store's ``facts``, which every process may read.
        """
        sql = "select value from server_secrets where name = ?"
        with self._session.look() as tx:
            value = tx.value(sql, (name,))
        if value is None:
            with self._session.write() as tx:
                tx.run(
                    "insert into server_secrets (name, value, made_us) values (?, ?, ?) on conflict (name) do nothing",
                    (name, secrets.token_hex(32), now_us),
                )
                value = tx.value(sql, (name,))
        return bytes.fromhex(value)

    def expire(self, tx: Tx, now_us: int, limit: int = 500) -> None:
        """Remove, in the caller's transaction, at most ``limit`` rows of each kind that have expired:
        sessions, links, tokens and counts of failures. What is left after that is removed by the next
        call."""
        for table, key, over, at in (
            ("tokens", "id", "revoked_us <= ?", now_us - TOKENS_KEPT_US),
            ("tokens", "id", "expires_us <= ?", now_us - TOKENS_KEPT_US),
            ("sessions", "digest", "ends_us <= ?", now_us),
            ("login_failures", "whose", "last_us <= ?", now_us - DAY_US),
            # The first admin's link stays: the next start of a server must see that it has expired.
            ("invites", "user_name", f"user_name <> '{_FIRST_ADMIN}' and ends_us <= ?", now_us),
        ):
            tx.delete_some(table, key, over, (at,), limit)


# --- within a transaction ---------------------------------------------------------------------


def _require_time(tx: Tx, limits: Sequence[LoginLimit], now_us: int) -> tuple[int, ...]:
    """Return when an attempt failed last under each limit (0: none has). Raises TooManyAttempts when one has to
    wait."""
    last, wait_s = [], 0.0
    for limit in limits:
        row = tx.one("select failures, last_us from login_failures where whose = ?", (limit.key,))
        if row is None or row[1] <= now_us - DAY_US:
            last.append(0)
            continue
        failures, last_us = row
        last.append(last_us)
        if failures >= limit.free:
            least_s = min(WAIT_MOST_S, 2 ** min(failures - limit.free, 20))
            # A server whose clock is ahead makes nobody wait longer than that.
            wait_s = max(wait_s, least_s - max(0, now_us - last_us) / 1e6)
    if wait_s > 0:
        raise TooManyAttempts(wait_s)
    return tuple(last)


def take_back(tx: Tx, attempt: LoginAttempt) -> None:
    """Remove an attempt that did not fail from the counts. Under limits that other attempts share, only this attempt is
    removed, so that nobody clears failed guesses at other names by signing in to an account of their own in between."""
    for limit, before_us in zip(attempt.limits, attempt.before_us, strict=True):
        tx.run(
            "update login_failures set failures = failures - 1, last_us = case when last_us = ? then ? else last_us "
            "end where whose = ?",
            (attempt.at_us, before_us, limit.key),
        )
        tx.run(
            "delete from login_failures where whose = ? and (failures <= 0 or ? = 1)",
            (limit.key, int(limit.cleared)),
        )


def _first_link_ends_us(tx: Tx, now_us: int) -> int | None:
    """Return when the first admin's link ends; None: none was made yet. Raises Refused when it has expired."""
    ends_us: int | None = tx.value("select ends_us from invites where user_name = ?", (_FIRST_ADMIN,))
    if ends_us is not None and ends_us <= now_us:
        raise Refused(
            "the link for the first admin has expired; create the first admin on a host that has the "
            "store: 'spinney user "
            "add NAME --role admin'"
        )
    return ends_us


def _link(tx: Tx, digest: str, now_us: int) -> Link:
    """Return the link with this digest. Raises BadLogin where it cannot be used now."""
    row = tx.one("select user_name, ends_us from invites where digest = ? and ends_us > ?", (digest, now_us))
    if row is None or (row[0] == _FIRST_ADMIN and accounts.any_user(tx)):
        raise BadLogin("the link is no longer good: it works once and for a limited time; ask for a new one")
    return Link(user=row[0] or None, ends_us=row[1])
