"""The commands ``user`` and ``token``: the accounts of a server, and what each may do.

A password is typed at the terminal or read from standard input, and is never an argument, which other users of the host
could see. The password of an existing user is changed on a store alone; through a server a link lets the user set one.
The secret of a token is printed once, by the command that creates it.
"""

import getpass
import sys
from typing import Annotated, Any

import typer

from spinney.commands import LocalPerformer, Performs
from spinney.features.accounts.commands import (
    AddUser,
    ChangeUser,
    DeleteUser,
    ListSessions,
    ListTokens,
    ListUsers,
    MakeLink,
    MakeToken,
    PasswordLink,
    RevokeToken,
    ShowUser,
    find_token,
    set_password,
)
from spinney.features.accounts.rights_options import RightsOptions, limits_text
from spinney.model.access import Rights
from spinney.model.errors import UsageError
from spinney.model.rights.accounts import Token, User
from spinney.model.values import durations
from spinney.terminal import completion
from spinney.terminal.commands import Shown, command, list_command, steps
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_commands, perform
from spinney.terminal.options.arguments import (
    ByOption,
    JsonOption,
    ReasonOption,
    StoreOption,
    YesOption,
    argument,
    command_group,
    option,
)
from spinney.terminal.options.option_groups import with_option_groups
from spinney.terminal.output import display

USER = argument("NAME", complete=completion.users)
NoPasswordOption = Annotated[
    bool,
    typer.Option(
        "--no-password",
        help="Set no password: the user signs in through a proxy, an identity provider or a link ('user link').",
    ),
]
StdinOption = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]

app = typer.Typer()
user_group = command_group(app, "user")
token_group = command_group(app, "token")


def _rights_text(rights: Rights) -> str:
    """Return a role with its limits on one line."""
    limits = limits_text(rights)
    return f"{rights.role}{f', {limits}' if limits else ''}"


def _sign_in_method(user: User) -> str:
    """Return how the user signs in, for a table."""
    if user.disabled:
        return "disabled"
    return "by password" if user.password_us is not None else "without a password"


def _token_state(token: Token) -> str:
    """Return whether a token is valid and until when, or since when it is not."""
    if token.revoked_us is not None:
        return f"revoked {display.format_time(token.revoked_us)}"
    if token.expires_us is None:
        return "valid"
    return f"{'valid until' if token.good(now_us()) else 'expired'} {display.format_time(token.expires_us)}"


def _new_password(*, no_password: bool, from_stdin: bool) -> str | None:
    """Return the new password, from standard input or typed twice at the terminal; None with
    ``--no-password``. Raises UsageError when there is no terminal, or the two differ."""
    if no_password and from_stdin:
        raise UsageError("--no-password and --password-stdin exclude each other; leave one out")
    if no_password:
        return None
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for a password; add --password-stdin or --no-password")
    first = getpass.getpass("New password: ")
    if getpass.getpass("Repeat the password: ") != first:
        raise UsageError("the two passwords differ; nothing was changed, so try again")
    return first


# --- users ------------------------------------------------------------------------------------


@user_group.command()
@with_option_groups
def add(
    name: Annotated[str, argument("NAME", "The user's name, for example ann or ann@example.org.")],
    *,
    rights: RightsOptions,
    no_password: NoPasswordOption = False,
    password_stdin: StdinOption = False,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Create a user. Without limits the user has access to all jobs."""
    new_rights = rights.applied_to(None)
    secret = _new_password(no_password=no_password, from_stdin=password_stdin)
    user = perform(AddUser(name=name, rights=new_rights, password=secret, reason=reason), store, by)
    display.print_result(user, f"user {user.name}: {_rights_text(user.rights)}", json=json)


list_command(
    user_group,
    ListUsers,
    "list",
    "List the users, by name.",
    {
        "USER": lambda user: user.name,
        "ROLE": lambda user: user.rights.role,
        "LIMITS": lambda user: limits_text(user.rights),
        "SIGN-IN": _sign_in_method,
        "CREATED": lambda user: display.format_time(user.created_us),
    },
    empty="there are no users; 'spinney user add NAME --role admin' makes the first",
)


@steps(user_group, ShowUser, "show", name=USER)
def show(query: ShowUser, performer: Performs) -> Shown:
    """Show a user with the user's tokens and sessions."""
    user = performer.do(query)
    tokens = performer.do(ListTokens(owner=query.name)).items
    sessions = performer.do(ListSessions(name=query.name)).items
    facts = [
        ("user", user.name),
        ("role", user.rights.role),
        ("limits", limits_text(user.rights) or "none"),
        ("sign-in", _sign_in_method(user)),
        ("created", f"{display.format_time(user.created_us)} by {user.by}"),
    ]
    facts += [("token", f"{token.name} ({_token_state(token)})") for token in tokens]
    facts += [
        ("session", f"from {session.address or 'this host'}, seen {display.format_time(session.seen_us)}")
        for session in sessions
    ]
    return Shown({"user": user, "tokens": tokens, "sessions": sessions}, facts)


@steps(user_group, ChangeUser, "set", others=False, name=USER)
def change(request: ChangeUser, performer: Performs, *, rights: RightsOptions) -> Shown:
    """Change a user's role or limits, from the next request on. Options that are left out change nothing."""
    before = performer.do(ShowUser(name=request.name)).rights
    after = rights.applied_to(before)
    if after == before:
        raise UsageError(
            "the command names no change; add one, for example --role operator or --collection alpha"
        )
    user = performer.do(ChangeUser(name=request.name, rights=after, reason=request.reason))
    return Shown(user, f"user {user.name}: {_rights_text(user.rights)}")


@command(user_group, ChangeUser, "disable", others=False, name=USER, disabled=True)
def disabled_text(user: User) -> str:
    """Disable a user: sessions end, and the user's tokens are refused."""
    return f"user {user.name} is disabled"


@command(user_group, ChangeUser, "enable", others=False, name=USER, disabled=False)
def enabled_text(user: User) -> str:
    """Enable a disabled user."""
    return f"user {user.name} is enabled"


@steps(user_group, DeleteUser, "delete", name=USER)
def delete(deletion: DeleteUser, performer: Performs, *, yes: YesOption = False) -> Shown:
    """Delete a user and revoke the user's tokens. Jobs and the audit log keep the name."""
    name = deletion.name
    performer.do(ShowUser(name=name))
    require_yes(f"Delete user {display.safe(name)} and revoke all tokens of that name?", yes=yes)
    performer.do(deletion)
    return Shown({"deleted": name}, f"user {name} is deleted")


@user_group.command()
def password(
    name: Annotated[str, argument("NAME", "The user's name.", completion.users)],
    no_password: NoPasswordOption = False,
    password_stdin: StdinOption = False,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Set a user's password and end all of the user's sessions."""
    with open_commands(store, by) as performer:
        if not isinstance(performer, LocalPerformer):
            raise UsageError(
                f"a server cannot set another user's password; 'spinney user link {name}' creates a link to set it"
            )
        performer.do(ShowUser(name=name))
        secret = _new_password(no_password=no_password, from_stdin=password_stdin)
        user = set_password(performer, name, secret, reason=reason)
    sentence = f"user {name} has {'no password any more' if no_password else 'a new password'}"
    display.print_result(user, sentence, json=json)


@command(user_group, MakeLink, "link", name=USER)
def print_link(link: PasswordLink, *, json: JsonOption = False) -> None:
    """Print a link with which the user sets a password, once and within a day. Append it to the server's address."""
    if json:
        display.print_json(link)
        return
    typer.echo(link.path)
    typer.echo(f"valid once, until {display.format_time(link.ends_us)}", err=True)


# --- tokens -----------------------------------------------------------------------------------


def _owner(help_: str) -> Any:
    return option("--user", metavar="NAME", help_=help_, complete=completion.users)


@steps(
    token_group,
    MakeToken,
    "make",
    others=False,
    name=argument("NAME"),
    owner=_owner("The user the token acts for, within that user's rights (default: none, a machine token)."),
)
def make(
    request: MakeToken,
    performer: Performs,
    *,
    rights: RightsOptions,
    expires: Annotated[
        str | None,
        option(metavar="TIME", help_="How long the token is valid, for example 30d (default: for ever)."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Create a token and print its secret, which is shown only once.

    A user's token (--user) has the user's rights, unless options restrict it. A machine token has rights of its own
    (--role) and acts under the name token:NAME."""
    owner_rights = None if request.owner is None else performer.do(ShowUser(name=request.owner)).rights
    token_rights = rights.applied_to(owner_rights) if owner_rights or rights.any_given else None
    expires_us = None if expires is None else now_us() + round(durations.seconds(expires, "--expires") * 1e6)
    created = performer.do(MakeToken(**{**dict(request), "rights": token_rights, "expires": expires_us}))
    if json:
        display.print_json(created)
        return
    token = created.token
    end = "" if expires_us is None else f", valid until {display.format_time(expires_us)}"
    typer.echo(created.secret)
    typer.echo(
        f"token {token.name} of {token.acts_as}: {_rights_text(token.rights)}{end}; the secret is shown only once",
        err=True,
    )


list_command(
    token_group,
    ListTokens,
    "list",
    "List the tokens with their rights, their state and when each was last used, machine tokens first.",
    {
        "TOKEN": lambda token: token.name,
        "USER": lambda token: token.owner or "(a machine)",
        "ROLE": lambda token: token.rights.role,
        "LIMITS": lambda token: limits_text(token.rights),
        "STATE": _token_state,
        "LAST USED": lambda token: display.format_time(token.used_us) or "never",
    },
    empty="there are no tokens; 'spinney token make NAME' makes one",
    owner=_owner("Only tokens of this user."),
)


@token_group.command()
def revoke(
    name: Annotated[str, argument("NAME", "The token's name.")],
    user: Annotated[
        str | None, _owner("The user the token belongs to (default: none, a machine token).")
    ] = None,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Revoke a token for good."""
    with open_commands(store, by) as performer:
        token = find_token(performer, name, user)
        revoked = performer.do(RevokeToken(token=token.id, reason=reason))
    display.print_result(revoked, f"token {name} of {token.acts_as} is revoked", json=json)
