"""Users and tokens: rows of ``users`` and ``tokens``.

Other tables do not depend on their names: what a deleted user did keeps the name, and a new user of the same
name has none of the old one's tokens (they are revoked), sessions or links.

Rights are stored with the user and with the token, and combined when a token is used (``identity_of_token``):
so fewer rights of a user take effect on all of the user's tokens at once, and no row needs to be changed for
that.
"""

import hmac
from collections.abc import Sequence

from spinney.model.access import Rights, Role
from spinney.model.errors import BadLogin, NoSuch, Refused
from spinney.model.rights.accounts import Identity, Token, User, rights_in, rights_text
from spinney.model.rights.actor import Actor
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import RowMap, insert, unknown_name
from spinney.store.sql.session import SqlPart

SEEN_EVERY_US = 60_000_000
"""How exactly the last use of a token or session is recorded, in microseconds: one write a minute, whatever
the traffic."""
_USERS = RowMap(User, "users", decode={"rights": rights_in})
_TOKENS = RowMap(Token, "tokens", decode={"rights": rights_in, "owner": lambda owner: owner or None})
"""How rows of ``tokens`` become ``Token``. The owner of a machine's token is stored as an empty text."""


class SqlAccounts(SqlPart):
    """Users and tokens.

    The caller has checked names and rights; passwords come as hashes, secrets as digests
    (``spinney.model.rights.accounts``). A call that changes nothing is not in the audit, and no secret ever
    is. Whether an admin remains is checked here, in the transaction that makes the change, since two admins
    may remove each other.
    """

    # --- users ----------------------------------------------------------------------------

    def users(self) -> Sequence[User]:
        """Return all users, ordered by name, also the disabled ones."""
        with self._session.look() as tx:
            return _USERS.all(tx, "order by name")

    def user(self, name: str) -> User:
        """Return the user of this name, disabled or not. Raises NoSuch."""
        with self._session.look() as tx:
            return require(tx, name)

    def any_user(self) -> bool:
        """Return whether there is any user, disabled ones included."""
        with self._session.look() as tx:
            return any_user(tx)

    def add(self, name: str, rights: Rights, password: str | None, actor: Actor, *, now_us: int) -> User:
        """Create a user, and return it. Without a password a link, a proxy or an identity provider has to let
        the user in. Raises Refused when the name is taken."""
        with self._session.write() as tx:
            return add(tx, name, rights, password, actor, now_us)

    def change(self, name: str, rights: Rights, actor: Actor, *, now_us: int) -> User:
        """Change the rights of a user, and of the user's tokens, from the next request on. Return the user as
        it is then.

        Raises NoSuch, and Refused when no other enabled admin without limits would be left.
        """
        with self._session.write() as tx:
            before = require(tx, name)
            if before.rights == rights:
                return before
            if not _is_full_admin(rights):
                _require_another_admin(tx, before)
            tx.run("update users set rights = ? where name = ?", (rights_text(rights), name))
            note(tx, now_us, actor, "user change", {"user": name, "rights": rights}, 1)
            return require(tx, name)

    def disable(self, name: str, actor: Actor, *, disabled: bool, now_us: int) -> User:
        """Disable a user, or enable it again, and return the user as it is then.

        Disabling ends the sessions and voids the links, which enabling does not bring back; tokens are
        refused meanwhile, and work again when the user is enabled. Raises NoSuch, and Refused when no other
        enabled admin without limits would be left.
        """
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
        """Delete a user with sessions, links and saved filters, and revoke the user's tokens, whose rows stay
        for a while. Raises NoSuch, and Refused when no other enabled admin without limits would be left."""
        with self._session.write() as tx:
            _require_another_admin(tx, require(tx, name))
            _shut_out(tx, name)
            tx.run("update tokens set revoked_us = ? where owner = ? and revoked_us is null", (now_us, name))
            revoked = tx.changed()
            tx.run("delete from users where name = ?", (name,))
            tx.run("delete from saved_filters where owner = ?", (name,))
            note(tx, now_us, actor, "user delete", {"user": name, "tokens": revoked}, 1)

    # --- passwords ------------------------------------------------------------------------

    def password(self, name: str) -> tuple[User, str | None] | None:
        """Return a user, disabled or not, with the hash of the password (None: it has none); None where there
        is no such user."""
        with self._session.look() as tx:
            row = tx.one(f"select {_USERS.columns}, password from users where name = ?", (name,))
        return None if row is None else (_USERS.read(row), row[-1])

    def set_password(
        self, name: str, password: str | None, actor: Actor, *, proof: str | None = None, now_us: int
    ) -> User:
        """Set another password (None: none), end the sessions and void the links. Return the user.

        ``proof``: the hash that was verified before this transaction began; the password must still be that
        one. Raises NoSuch, and BadLogin when it was changed meanwhile.
        """
        with self._session.write() as tx:
            if proof is not None and tx.value("select password from users where name = ?", (name,)) != proof:
                raise BadLogin("the password was changed meanwhile; log in with the new one")
            return set_password(tx, name, password, actor, now_us)

    def rehash(self, name: str, before: str, after: str) -> None:
        """Replace the hash of a password by a better one of the same password, for example one that takes
        longer to compute. It does nothing where the password has been changed since, and is not in the
        audit."""
        with self._session.write() as tx:
            tx.run("update users set password = ? where name = ? and password = ?", (after, name, before))

    # --- tokens ---------------------------------------------------------------------------

    def tokens(self, owner: str | None = None) -> Sequence[Token]:
        """Return the tokens ordered by owner and name, with those that were revoked or expired not long ago.

        ``owner``: only those of this user; an empty text: only those of machines; None: all.
        """
        with self._session.look() as tx:
            return _TOKENS.all(
                tx,
                "where (cast(? as text) is null or owner = ?) order by owner, name, created_us, id",
                (owner, owner),
            )

    def token(self, token_id: str) -> Token:
        """Return the token of this id, valid or not; its secret is not stored. Raises NoSuch."""
        with self._session.look() as tx:
            return _require_token(tx, token_id)

    def make_token(self, token: Token, digest: str, actor: Actor, *, now_us: int) -> Token:
        """Store a new token, and return it as stored.

        A token of the same name and owner that has expired gives up its name. Raises NoSuch for the owner,
        and Refused when the owner is disabled or has a token of that name in force.
        """
        owner = token.owner or ""
        with self._session.write() as tx:
            if token.owner is not None:
                require_enabled(tx, token.owner)
            tx.run(
                "update tokens set revoked_us = expires_us where owner = ? and name = ? and revoked_us is null "
                "and expires_us <= ?",
                (owner, token.name, now_us),
            )
            same = "select 1 from tokens where owner = ? and name = ? and revoked_us is null"
            if tx.exists(same, (owner, token.name)):
                raise Refused(
                    f"there is a token {token.name!r} already; revoke it with 'spinney token revoke {token.name}"
                    f"{f' --user {owner}' if owner else ''}', or choose another name"
                )
            values = {"id": token.id, "owner": owner, "rights": token.rights, "expires_us": token.expires_us}
            stored = {
                "rights": rights_text(token.rights),
                "digest": digest,
                "created_us": now_us,
                "by": actor.by,
            }
            insert(tx, "tokens", {**values, **stored, "name": token.name})
            note(tx, now_us, actor, "token make", {**values, "owner": token.owner, "token": token.name}, 1)
            return _require_token(tx, token.id)

    def revoke(self, token_id: str, actor: Actor, *, now_us: int) -> Token:
        """Revoke a token for ever, and return it. A token that is revoked already stays as it is. Raises
        NoSuch."""
        with self._session.write() as tx:
            before = _require_token(tx, token_id)
            if before.revoked_us is not None:
                return before
            tx.run("update tokens set revoked_us = ? where id = ?", (now_us, token_id))
            details = {"token": before.name, "id": token_id, "owner": before.owner}
            note(tx, now_us, actor, "token revoke", details, 1)
            return _require_token(tx, token_id)

    def identity_of_token(self, token_id: str, digest: str, *, now_us: int) -> Identity | None:
        """Return the identity that this secret proves, with the rights in force: those that both the token and its
        owner have.

        None where the token is unknown, revoked or expired, or its owner is deleted or disabled. The use of
        the token is noted to the minute, without waiting for the disk, so that a power failure may undo that.
        """
        with self._session.look() as tx:
            row = tx.one(f"select {_TOKENS.columns}, digest from tokens where id = ?", (token_id,))
            # Compared also without a row, so that the time does not reveal which ids exist.
            fits = hmac.compare_digest(digest, "" if row is None else row[-1])
            if row is None or not fits:
                return None
            token = _TOKENS.read(row)
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
    """Return whether there is any user, disabled ones included. While there is none, a link may create the
    first admin."""
    return tx.exists("select 1 from users limit 1")


def require(tx: Tx, name: str) -> User:
    """Return the user of that name. Raises NoSuch, with the name that was probably meant."""
    user = _find(tx, name)
    if user is None:
        raise unknown_name(tx, "users", "user", name)
    return user


def require_enabled(tx: Tx, name: str) -> None:
    """Raise NoSuch unless there is a user of that name, and Refused when the user is disabled."""
    if require(tx, name).disabled:
        raise Refused(f"{name} is disabled; 'spinney user enable {name}' lets that user in again")


def add(tx: Tx, name: str, rights: Rights, password: str | None, actor: Actor, now_us: int) -> User:
    """Create a user, and note it in the audit. Raises Refused when the name is taken."""
    if _find(tx, name) is not None:
        raise Refused(
            f"there is a user {name!r} already; 'spinney user set {name}' changes that one's rights"
        )
    values = {
        "name": name,
        "rights": rights_text(rights),
        "password": password,
        "password_us": None if password is None else now_us,
        "created_us": now_us,
        "by": actor.by,
    }
    insert(tx, "users", values)
    note(tx, now_us, actor, "user add", {"user": name, "rights": rights, "password": password is not None}, 1)
    return require(tx, name)


def set_password(tx: Tx, name: str, password: str | None, actor: Actor, now_us: int) -> User:
    """Set a user's password, and end the sessions and links of the one before. Raises NoSuch."""
    require(tx, name)
    _shut_out(tx, name)
    when = None if password is None else now_us
    tx.run("update users set password = ?, password_us = ? where name = ?", (password, when, name))
    note(tx, now_us, actor, "user password", {"user": name, "password": password is not None}, 1)
    return require(tx, name)


def _shut_out(tx: Tx, name: str) -> None:
    """End the sessions of a user, and void the links that would set a password."""
    tx.run("delete from sessions where user_name = ?", (name,))
    tx.run("delete from invites where user_name = ?", (name,))


def _is_full_admin(rights: Rights) -> bool:
    """Return whether these rights include creating another admin without limits."""
    return rights.permits(Role.ADMIN) and rights.everywhere


def _require_another_admin(tx: Tx, user: User) -> None:
    """Raise Refused when this user is the only one who could create another admin without limits."""
    if user.disabled or not _is_full_admin(user.rights):
        return
    others = tx.column("select rights from users where name <> ? and disabled = 0", (user.name,))
    if not any(_is_full_admin(rights_in(text)) for text in others):
        raise Refused(
            f"{user.name} is the only admin without limits; make another first, with 'spinney user add NAME --role "
            f"admin' or 'spinney user set NAME --role admin'"
        )


def _find(tx: Tx, name: str) -> User | None:
    return _USERS.one(tx, "where name = ?", (name,))


def _require_token(tx: Tx, token_id: str) -> Token:
    """Return the token of this id. Raises NoSuch."""
    token = _TOKENS.one(tx, "where id = ?", (token_id,))
    if token is None:
        raise NoSuch(f"there is no token with the id {token_id!r:.60}; 'spinney token list' lists them all")
    return token
