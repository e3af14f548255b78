"""The counterparts of the services of ``Control`` by which operators set things; see the docstrings there."""

from collections.abc import Sequence

from spinney.cli.remote.client import RetryingClient
from spinney.model.access import Rights
from spinney.model.errors import NoSuch, UsageError
from spinney.model.rights.accounts import Link, NewToken, Session, Token, User
from spinney.model.values.hints import did_you_mean

_PAGE = 1_000


def _not_through_server(what: str, instead: str) -> UsageError:
    return UsageError(f"no server {what}; {instead}")


class _Service:
    def __init__(self, client: RetryingClient) -> None:
        self._client = client


class Accounts(_Service):
    def users(self) -> Sequence[User]:
        return self._client.users().items

    def user(self, name: str) -> User:
        return self._client.user(name)

    def add(self, name: str, rights: Rights, password: str | None, *, reason: str | None = None) -> User:
        return self._client.add_user(name, rights, password=password, reason=reason)

    def change(self, name: str, rights: Rights, *, reason: str | None = None) -> User:
        return self._client.change_user(name, rights=rights, reason=reason)

    def disable(self, name: str, *, disabled: bool = True, reason: str | None = None) -> User:
        return self._client.change_user(name, disabled=disabled, reason=reason)

    def delete(self, name: str, *, reason: str | None = None) -> None:
        self._client.delete_user(name, reason=reason)

    def set_password(self, name: str, password: str | None, *, reason: str | None = None) -> User:
        raise _not_through_server(
            "sets another's password", f"'spinney user link {name}' makes a link with which {name} does"
        )

    def invite(self, name: str) -> tuple[str, Link]:
        made = self._client.make_link(name)
        return made.secret, Link(user=name, ends_us=made.ends_us)

    def sessions(self, name: str) -> Sequence[Session]:
        return self._client.sessions(name).items

    def tokens(self, owner: str | None = None) -> Sequence[Token]:
        return self._client.tokens(owner=owner).items

    def make_token(
        self,
        name: str,
        *,
        owner: str | None,
        rights: Rights | None = None,
        expires_us: int | None = None,
        reason: str | None = None,
    ) -> NewToken:
        made = self._client.make_token(name, owner=owner, rights=rights, expires=expires_us, reason=reason)
        return NewToken(token=made.token, secret=made.secret)

    def find_token(self, name: str, owner: str | None) -> Token:
        own = {t.name: t for t in self.tokens(owner) if t.revoked_us is None and t.owner == owner}
        if name not in own:
            whose = f"{owner} has no" if owner else "there is no"
            raise NoSuch(
                f"{whose} token {name!r:.120}{did_you_mean(name, own)}; 'spinney token list' shows those there are"
            )
        return own[name]

    def revoke_token(self, token_id: str, *, reason: str | None = None) -> Token:
        return self._client.revoke_token(token_id, reason=reason)
