"""Users and tokens: rows of ``users`` and ``tokens``.

Their names bind nothing else: what a user did stays his when he is deleted, and a user made anew under the name has
none of the old one's tokens (they are revoked), sessions or links.
"""

import hmac
from collections.abc import Sequence
from typing import Any

from spinney.model.access import Rights, Role
from spinney.model.errors import BadLogin, NoSuch, Refused
from spinney.model.rights.accounts import Identity, Token, User, rights_in, rights_text
from spinney.model.rights.operators import Actor
from spinney.model.values.hints import did_you_mean
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.session import Session

SEEN_EVERY_US = 60_000_000
"""How exactly it is known when a token or a session was used last: a write a minute, whatever the traffic."""
_USER = "name, rights, created_us, by, disabled, password_us"
_TOKEN = "id, name, owner, rights, created_us, by, expires_us, revoked_us, used_us"  # noqa: S105 - columns


class SqlAccounts:
    """Users and tokens.

    The caller has checked names and rights; passwords come as hashes, secrets as digests
    (``spinney.model.rights.accounts``). A call that changes nothing is not in the audit, and no secret ever is.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    # --- users ----------------------------------------------------------------------------

    def users(self) -> Sequence[User]:
        """Return all users by name."""
        with self._session.look() as tx:
            return [_user(row) for row in tx.all(f"select {_USER} from users order by name")]

    def user(self, name: str) -> User:
        """Return one user. Raises NoSuch."""
        with self._session.look() as tx:
            return require(tx, name)

    def any_user(self) -> bool:
        """Return whether there is any user, disabled ones included."""
        with self._session.look() as tx:
            return any_user(tx)

    def add(self, name: str, rights: Rights, password: str | None, actor: Actor, *, now_us: int) -> User:
        """Create a user; without a password a proxy has to authenticate the user. Raises Refused (the name is
        taken)."""
        with self._session.write() as tx:
            return add(tx, name, rights, password, actor, now_us)

    def change(self, name: str, rights: Rights, actor: Actor, *, now_us: int) -> User:
        """Change the rights of a user, and of the user's tokens, from the next request on. Raises NoSuch, and Refused
        (the only admin without limits)."""
        with self._session.write() as tx:
            before = require(tx, name)
            if before.rights == rights:
                return before
            if not _rules_all(rights):
                _require_another_admin(tx, before)
            tx.run("update users set rights = ? where name = ?", (rights_text(rights), name))
            note(tx, now_us, actor, "user change", {"user": name, "rights": rights}, 1)
            return require(tx, name)

    def disable(self, name: str, actor: Actor, *, disabled: bool, now_us: int) -> User:
        """Disable a user, or enable it again. Ends the sessions and voids the links; tokens are refused meanwhile.
        Raises NoSuch, and Refused (the only admin without limits)."""
        with self._session.write() as tx:
            before = require(tx, name)
            if before.disabled == disabled:
                return before
            if disabled:
                _require_another_admin(tx, before)
                _shut_out(tx, name)
            tx.run("update users set disabled = ? where name = ?", (int(disabled), name))
            note(tx, now_us, actor, "user disable" if disabled else "user enable", {"user": name}, 1)
            return require(tx, name)

    def delete(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Delete a user, and revoke the tokens. Raises NoSuch, and Refused (the only admin without limits)."""
        with self._session.write() as tx:
            _require_another_admin(tx, require(tx, name))
            _shut_out(tx, name)
            tx.run("update tokens set revoked_us = ? where owner = ? and revoked_us is null", (now_us, name))
            revoked = tx.changed()
            tx.run("delete from users where name = ?", (name,))
            note(tx, now_us, actor, "user delete", {"user": name, "tokens": revoked}, 1)

    # --- passwords ------------------------------------------------------------------------

    def password(self, name: str) -> tuple[User, str | None] | None:
        """Return a user with the hash of the password; None where there is no such user."""
        with self._session.look() as tx:
            row = tx.one(f"select {_USER}, password from users where name = ?", (name,))
        return None if row is None else (_user(row), row[-1])

    def set_password(
        self, name: str, password: str | None, actor: Actor, *, proof: str | None = None, now_us: int
    ) -> User:
        """Set another password (None: none); ends sessions and voids links. ``proof``: the hash that was verified
        before. Raises NoSuch, and BadLogin (the password has been changed since)."""
        with self._session.write() as tx:
            if proof is not None and tx.value("select password from users where name = ?", (name,)) != proof:
                raise BadLogin("the password was changed meanwhile; log in with the new one")
            return set_password(tx, name, password, actor, now_us)

    def rehash(self, name: str, before: str, after: str) -> None:
        """Replace the hash of a password by a better one of the same password; does nothing where it has been changed
        since."""
        with self._session.write() as tx:
            tx.run("update users set password = ? where name = ? and password = ?", (after, name, before))

    # --- tokens ---------------------------------------------------------------------------

    def tokens(self, owner: str | None = None) -> Sequence[Token]:
        """Return the tokens by owner and name, with those that became void not long ago; of one owner (empty: of
        machines)."""
        with self._session.look() as tx:
            found = tx.all(
                f"select {_TOKEN} from tokens where (cast(? as text) is null or owner = ?) "
                "order by owner, name, created_us, id",
                (owner, owner),
            )
        return [_token(row) for row in found]

    def token(self, token_id: str) -> Token:
        """Return one token. Raises NoSuch."""
        with self._session.look() as tx:
            return _require_token(tx, token_id)

    def make_token(self, token: Token, digest: str, actor: Actor, *, now_us: int) -> Token:
        """Store a new token. Raises NoSuch (the owner) and Refused (the owner is disabled, or has a token of that
        name)."""
        owner = token.owner or ""
        with self._session.write() as tx:
            if token.owner is not None and require(tx, token.owner).disabled:
                raise Refused(
                    f"{token.owner} is disabled; 'spinney user enable {token.owner}' lets that user in again"
                )
            tx.run(
                "update tokens set revoked_us = expires_us where owner = ? and name = ? and revoked_us is null "
                "and expires_us <= ?",
                (owner, token.name, now_us),
            )
            same = "select 1 from tokens where owner = ? and name = ? and revoked_us is null"
            if tx.value(same, (owner, token.name)) is not None:
                raise Refused(
                    f"there is a token {token.name!r} already; revoke it with 'spinney token revoke {token.name}"
                    f"{f' --user {owner}' if owner else ''}', or choose another name"
                )
            tx.run(
                "insert into tokens (id, owner, name, rights, digest, created_us, by, expires_us) "
                "values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    token.id,
                    owner,
                    token.name,
                    rights_text(token.rights),
                    digest,
                    now_us,
                    actor.by,
                    token.expires_us,
                ),
            )
            what = {
                "token": token.name,
                "id": token.id,
                "owner": token.owner,
                "rights": token.rights,
                "expires_us": token.expires_us,
            }
            note(tx, now_us, actor, "token make", what, 1)
            return _require_token(tx, token.id)

    def revoke(self, token_id: str, actor: Actor, *, now_us: int) -> Token:
        """Revoke a token for ever. Raises NoSuch."""
        with self._session.write() as tx:
            before = _require_token(tx, token_id)
            if before.revoked_us is not None:
                return before
            tx.run("update tokens set revoked_us = ? where id = ?", (now_us, token_id))
            what = {"token": before.name, "id": token_id, "owner": before.owner}
            note(tx, now_us, actor, "token revoke", what, 1)
            return _require_token(tx, token_id)

    def identity_of_token(self, token_id: str, digest: str, *, now_us: int) -> Identity | None:
        """Return whose secret this is, with the rights in force; None where the token is unknown or void. Notes, to the
        minute, that the token was used; a power failure may undo that."""
        with self._session.look() as tx:
            row = tx.one(f"select {_TOKEN}, digest from tokens where id = ?", (token_id,))
            # Compared also where there is none, so that the time does not tell which ids there are.
            fits = hmac.compare_digest(digest, "" if row is None else row[-1])
            if row is None or not fits:
                return None
            token = _token(row)
            owner = None if token.owner is None else _find(tx, token.owner)
        if not token.good(now_us) or (token.owner is not None and (owner is None or owner.disabled)):
            return None
        if token.used_us is None or now_us - token.used_us >= SEEN_EVERY_US:
            with self._session.write(durable=False) as tx:
                tx.run("update tokens set used_us = ? where id = ?", (now_us, token_id))
        rights = token.rights if owner is None else token.rights.narrowed(owner.rights)
        return Identity(name=token.acts_as, rights=rights, token=token)


# --- within a transaction ---------------------------------------------------------------------


def any_user(tx: Tx) -> bool:
    """Whether anybody has been made."""
    return tx.value("select 1 from users limit 1") is not None


def require(tx: Tx, name: str) -> User:
    """The user of that name. Raises NoSuch."""
    found = _find(tx, name)
    if found is None:
        known = [known for (known,) in tx.all("select name from users")]
        raise NoSuch(
            f"there is no user {name!r}{did_you_mean(name, known)}; 'spinney user list' shows those there are"
        )
    return found


def add(tx: Tx, name: str, rights: Rights, password: str | None, actor: Actor, now_us: int) -> User:
    """Make a user. Raises Refused where there is one."""
    if _find(tx, name) is not None:
        raise Refused(
            f"there is a user {name!r} already; 'spinney user set {name}' changes that one's rights"
        )
    tx.run(
        "insert into users (name, rights, password, password_us, created_us, by) values (?, ?, ?, ?, ?, ?)",
        (name, rights_text(rights), password, None if password is None else now_us, now_us, actor.by),
    )
    note(tx, now_us, actor, "user add", {"user": name, "rights": rights, "password": password is not None}, 1)
    return require(tx, name)


def set_password(tx: Tx, name: str, password: str | None, actor: Actor, now_us: int) -> User:
    """Whoever was let in by the one before is let in no more."""
    require(tx, name)
    _shut_out(tx, name)
    when = None if password is None else now_us
    tx.run("update users set password = ?, password_us = ? where name = ?", (password, when, name))
    note(tx, now_us, actor, "user password", {"user": name, "password": password is not None}, 1)
    return require(tx, name)


def _shut_out(tx: Tx, name: str) -> None:
    tx.run("delete from sessions where user_name = ?", (name,))
    tx.run("delete from invites where user_name = ?", (name,))


def _rules_all(rights: Rights) -> bool:
    return rights.permits(Role.ADMIN) and rights.everywhere


def _require_another_admin(tx: Tx, user: User) -> None:
    """Raise Refused when this is the only one who could make another."""
    if user.disabled or not _rules_all(user.rights):
        return
    others = tx.all("select rights from users where name <> ? and disabled = 0", (user.name,))
    if not any(_rules_all(rights_in(text)) for (text,) in others):
        raise Refused(
            f"{user.name} is the only admin without limits; make another first, with 'spinney user add NAME --role "
            f"admin' or 'spinney user set NAME --role admin'"
        )


def _find(tx: Tx, name: str) -> User | None:
    row = tx.one(f"select {_USER} from users where name = ?", (name,))
    return None if row is None else _user(row)


def _user(row: Sequence[Any]) -> User:
    name, rights, created_us, by, disabled, password_us = row[:6]
    return User(
        name=name,
        rights=rights_in(rights),
        created_us=created_us,
        by=by,
        disabled=bool(disabled),
        password_us=password_us,
    )


def _require_token(tx: Tx, token_id: str) -> Token:
    row = tx.one(f"select {_TOKEN} from tokens where id = ?", (token_id,))
    if row is None:
        raise NoSuch(
            f"there is no token with the id {token_id!r:.60}; 'spinney token list' shows those there are"
        )
    return _token(row)


def _token(row: Sequence[Any]) -> Token:
    token_id, name, owner, rights, created_us, by, expires_us, revoked_us, used_us = row[:9]
    return Token(
        id=token_id,
        name=name,
        owner=owner or None,
        rights=rights_in(rights),
        created_us=created_us,
        by=by,
        expires_us=expires_us,
        revoked_us=revoked_us,
        used_us=used_us,
    )
