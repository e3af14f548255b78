"""Users, their sessions, and tokens. Secrets are in the answer that made them, once."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from spinney.commands.fields import Word
from spinney.control import Control
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.rights.accounts import PASSWORD_MAX, PASSWORD_MIN, Session, Token, User
from spinney.model.values.lists import All
from spinney.schemas import EndedSessions
from spinney.web.api.json_routes import routes, told
from spinney.web.api.request_types import Moment, NamePath, ReasonRequest, RequestModel
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("accounts")
PROBLEMS = documented(404, 409, 415)
NO_STORE = {"Cache-Control": "no-store"}
Names = Annotated[list[Word], Field(max_length=1_000)]
Number = Annotated[int, Field(ge=0, le=99)]
Password = Annotated[str, Field(min_length=PASSWORD_MIN, max_length=PASSWORD_MAX)]
Why = Annotated[Word | None, Query(description="Why; kept in the audit.")]
TokenId = Annotated[
    str, Path(alias="token", pattern=r"^[0-9a-f]{1,64}$", description="Its id, not its secret.")
]


class RightsRequest(RequestModel):
    """What somebody is to be allowed."""

    role: Annotated[Role, Field(strict=False)] = Field(examples=["operator"])
    collections: Names | None = Field(
        default=None, description="Only jobs of these collections; null: of all."
    )
    queues: Names | None = Field(default=None, description="Only jobs in these queues; null: in all.")
    shares: Names | None = Field(
        default=None, description="Shares that may be named; `lab:*`: all that begin so; null: any."
    )
    priorities: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="The first and the last priority that may be given; null: any.",
        examples=[[40, 60]],
    )
    locks: Names | None = Field(
        default=None, description="Locks that may be freed or given a capacity; null: any."
    )
    external: Names = Field(
        default=[], description="Job types whose external stages may be claimed; `*`: of all."
    )

    def rights(self) -> Rights:
        """Raises UsageError, BadName for what cannot be meant."""
        return Rights(
            role=self.role,
            within=AccessScope(collections=_tuple(self.collections), queues=_tuple(self.queues)),
            shares=_tuple(self.shares),
            priorities=None if self.priorities is None else (self.priorities[0], self.priorities[1]),
            locks=_tuple(self.locks),
            external=tuple(self.external),
        )


class UserRequest(ReasonRequest):
    """Somebody who is to be let in."""

    name: Word
    rights: RightsRequest
    password: Password | None = Field(
        default=None,
        description="null: a link sets one (`POST /users/NAME/link`), or a proxy says who it is.",
    )


class UserChangeRequest(ReasonRequest):
    """What is to be otherwise; what is left out stays."""

    rights: RightsRequest | None = None
    disabled: bool | None = Field(default=None, description="Let nobody in by this name.")


class PasswordChangeRequest(RequestModel):
    """One's own."""

    before: Annotated[str, Field(max_length=PASSWORD_MAX)] = Field(description="The one that there is.")
    after: Password


class TokenRequest(ReasonRequest):
    """A token that is to be made."""

    name: Word
    owner: Word | None = Field(
        default=None,
        description="In whose name it acts; null: a machine's, in its own name, which takes an admin.",
    )
    rights: RightsRequest | None = Field(default=None, description="Left out: the owner's.")
    expires: Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedToken:
    """A token, with its secret, which nobody can show again."""

    token: Token
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLink:
    """A one-time link that sets a user's password."""

    path: str
    """On this server."""
    secret: str
    ends_us: int


@router.get("/users", summary="List users")
async def list_users(context: Authenticated) -> All[User]:
    """By name."""
    return await context.run(lambda control: All(items=control.accounts.users()))


@router.post("/users", summary="Make a user", status_code=201, responses=PROBLEMS)
async def add_user(asked: UserRequest, context: Authenticated) -> User:
    """Nobody gives rights beyond his own."""

    def call(control: Control) -> User:
        return control.accounts.add(asked.name, asked.rights.rights(), asked.password, reason=asked.reason)

    return await context.run(call)


@router.get("/users/{name}", summary="Show a user", responses=documented(404))
async def show_user(name: NamePath, context: Authenticated) -> User:
    """Anybody may look at himself."""
    return await context.run(lambda control: control.accounts.user(name))


@router.patch("/users/{name}", summary="Change a user", responses=PROBLEMS)
async def change_user(name: NamePath, asked: UserChangeRequest, context: Authenticated) -> User:
    """Other rights, or shut out. Sessions and tokens of who is disabled are void."""

    def call(control: Control) -> User:
        accounts = control.accounts
        if asked.rights is not None:
            accounts.change(name, asked.rights.rights(), reason=asked.reason)
        if asked.disabled is not None:
            accounts.disable(name, disabled=asked.disabled, reason=asked.reason)
        return accounts.user(name)

    return await context.run(call)


@router.delete("/users/{name}", summary="Delete a user", status_code=204, responses=documented(404, 409))
async def delete_user(name: NamePath, context: Authenticated, reason: Why = None) -> None:
    """For good; tokens are revoked, sessions end."""
    await context.run(lambda control: control.accounts.delete(name, reason=reason))


@router.post(
    "/users/{name}/link", summary="Make a link that sets a password", status_code=201, responses=PROBLEMS
)
async def make_link(name: NamePath, context: Authenticated) -> PasswordLink:
    """Good once, for a day; the one before is void."""

    def call(control: Control) -> PasswordLink:
        secret, link = control.accounts.invite(name)
        return PasswordLink(path=f"/welcome?link={secret}", secret=secret, ends_us=link.ends_us)

    return told(await context.run(call), 201, headers=NO_STORE)


@router.get("/users/{name}/sessions", summary="List the sessions of a user", responses=documented(404))
async def list_sessions(name: NamePath, context: Authenticated) -> All[Session]:
    """Oldest first."""
    return await context.run(lambda control: All(items=control.accounts.sessions(name)))


@router.delete("/users/{name}/sessions", summary="End all sessions of a user", responses=documented(404))
async def end_sessions(name: NamePath, context: Authenticated, reason: Why = None) -> EndedSessions:
    """He has to sign in again."""
    return await context.run(
        lambda control: EndedSessions(ended=control.accounts.end_sessions(name, reason=reason))
    )


@router.post("/me/password", summary="Change your password", responses=PROBLEMS)
async def change_password(asked: PasswordChangeRequest, context: Authenticated) -> User:
    """Ends all your sessions."""
    return await context.run(lambda control: control.accounts.change_password(asked.before, asked.after))


@router.get("/tokens", summary="List tokens", responses=documented(404))
async def list_tokens(
    context: Authenticated, owner: Annotated[Word | None, Query(description="Only of this user.")] = None
) -> All[Token]:
    """Without their secrets, which nobody has. Who is no admin sees his own."""
    return await context.run(lambda control: All(items=control.accounts.tokens(owner)))


@router.post("/tokens", summary="Make a token", status_code=201, responses=PROBLEMS)
async def make_token(asked: TokenRequest, context: Authenticated) -> CreatedToken:
    """The secret is in this answer alone: keep it. It never allows more than its owner may."""

    def call(control: Control) -> CreatedToken:
        made = control.accounts.make_token(
            asked.name,
            owner=asked.owner,
            rights=None if asked.rights is None else asked.rights.rights(),
            expires_us=asked.expires,
            reason=asked.reason,
        )
        return CreatedToken(token=made.token, secret=made.secret)

    return told(await context.run(call), 201, headers=NO_STORE)


@router.delete("/tokens/{token}", summary="Revoke a token", responses=documented(404, 409))
async def revoke_token(token: TokenId, context: Authenticated, reason: Why = None) -> Token:
    """For good."""
    return await context.run(lambda control: control.accounts.revoke_token(token, reason=reason))


def _tuple(given: list[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)
