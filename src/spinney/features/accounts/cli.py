"""The commands ``user`` and ``token``: the accounts of a server, and what each may do."""

import getpass
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.errors import UsageError
from spinney.model.values import durations
from spinney.terminal import completion, display, rights
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_commands
from spinney.terminal.rights import (
    CollectionsOption,
    ExternalOption,
    LocksOption,
    PriorityOption,
    QueuesOption,
    RoleOption,
    SharesOption,
)

if TYPE_CHECKING:
    from spinney.model.access import Rights
    from spinney.model.rights.accounts import Token, User

NewNameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The user's name, for example ann or ann@example.org.", show_default=False
    ),
]
UserArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The user's name.", show_default=False, autocompletion=completion.users
    ),
]
TokenArgument = Annotated[str, typer.Argument(metavar="NAME", help="The token's name.", show_default=False)]
OwnerOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        show_default=False,
        autocompletion=completion.users,
        help="The user the token acts for, within that user's rights (default: none, a machine token).",
    ),
]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="The reason, recorded in the audit log.", show_default=False)
]
NoPasswordOption = Annotated[
    bool,
    typer.Option(
        "--no-password",
        help="Set no password: the user signs in through a proxy, an identity provider or a link ('user link').",
    ),
]
StdinOption = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

_HELP = {"help_option_names": ["-h", "--help"]}
user_group = typer.Typer(
    help="Manage the users of a server: roles, limits, passwords.",
    no_args_is_help=True,
    context_settings=_HELP,
)
token_group = typer.Typer(
    help="Create, list and revoke API tokens.", no_args_is_help=True, context_settings=_HELP
)


def add_to(app: typer.Typer) -> None:
    for name, of_users in (
        ("add", add),
        ("list", list_users),
        ("show", show),
        ("set", change),
        ("disable", disable),
        ("enable", enable),
        ("delete", delete),
        ("password", password),
        ("link", link),
    ):
        user_group.command(name)(of_users)
    for name, of_tokens in (("make", make), ("list", list_tokens), ("revoke", revoke)):
        token_group.command(name)(of_tokens)
    app.add_typer(user_group, name="user")
    app.add_typer(token_group, name="token")


# --- users ------------------------------------------------------------------------------------


def add(
    name: NewNameArgument,
    role: RoleOption = None,
    collections: CollectionsOption = None,
    queues: QueuesOption = None,
    shares: SharesOption = None,
    priority: PriorityOption = None,
    locks: LocksOption = None,
    external: ExternalOption = None,
    no_password: NoPasswordOption = False,
    password_stdin: StdinOption = False,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Create a user. Without limits the user has access to all jobs."""
    from spinney.features.accounts.commands import AddUser

    asked = rights.from_options(
        None,
        role=role or "",
        collections=collections,
        queues=queues,
        shares=shares,
        priority=priority,
        locks=locks,
        external=external,
    )
    assert asked is not None
    secret = _new_password(no_password=no_password, from_stdin=password_stdin)
    with open_commands(store, by) as performer:
        made = performer.do(AddUser(name=name, rights=asked, password=secret, reason=reason))
    typer.echo(f"user {made.name}: {_rights_text(made.rights)}")


def list_users(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the users, by name."""
    from spinney.features.accounts.commands import ListUsers

    with open_commands(store) as performer:
        found = performer.do(ListUsers()).items
    if json:
        display.print_json_lines(found)
        return
    rows = [
        (
            u.name,
            u.rights.role,
            rights.limits_text(u.rights),
            _sign_in_method(u),
            display.format_time(u.created_us),
        )
        for u in found
    ]
    display.print_table(("USER", "ROLE", "LIMITS", "SIGN-IN", "CREATED"), rows)


def show(name: UserArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show a user with the user's tokens and sessions."""
    from spinney.features.accounts.commands import ListSessions, ListTokens, ShowUser

    with open_commands(store) as performer:
        found = performer.do(ShowUser(name=name))
        tokens = performer.do(ListTokens(owner=name)).items
        sessions = performer.do(ListSessions(name=name)).items
    if json:
        display.print_json({"user": found, "tokens": tokens, "sessions": sessions})
        return
    out = display.console()
    for what, told in (
        ("user", found.name),
        ("role", found.rights.role),
        ("limits", rights.limits_text(found.rights) or "none"),
        ("sign-in", _sign_in_method(found)),
        ("created", f"{display.format_time(found.created_us)} by {found.by}"),
    ):
        out.print(f"{what:<9} {display.safe(told)}")
    for token in tokens:
        out.print(f"{'token':<9} {display.safe(token.name)} ({_token_state(token)})")
    for session in sessions:
        where = display.safe(session.address or "this host")
        out.print(f"{'session':<9} from {where}, seen {display.format_time(session.seen_us)}")


def change(
    name: UserArgument,
    role: RoleOption = None,
    collections: CollectionsOption = None,
    queues: QueuesOption = None,
    shares: SharesOption = None,
    priority: PriorityOption = None,
    locks: LocksOption = None,
    external: ExternalOption = None,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Change a user's role or limits, from the next request on. Options that are left out change nothing."""
    from spinney.features.accounts.commands import ChangeUser, ShowUser

    with open_commands(store, by) as performer:
        before = performer.do(ShowUser(name=name)).rights
        asked = (
            rights.from_options(
                before,
                role=role,
                collections=collections,
                queues=queues,
                shares=shares,
                priority=priority,
                locks=locks,
                external=external,
            )
            or before
        )
        if asked == before:
            raise UsageError(
                "the command names no change; add one, for example --role operator or --collection alpha"
            )
        made = performer.do(ChangeUser(name=name, rights=asked, reason=reason))
    typer.echo(f"user {made.name}: {_rights_text(made.rights)}")


def disable(
    name: UserArgument, reason: ReasonOption = None, by: ByOption = None, store: StoreOption = None
) -> None:
    """Disable a user: sessions end, and the user's tokens are refused."""
    from spinney.features.accounts.commands import ChangeUser

    with open_commands(store, by) as performer:
        performer.do(ChangeUser(name=name, disabled=True, reason=reason))
    typer.echo(f"user {name} is disabled")


def enable(
    name: UserArgument, reason: ReasonOption = None, by: ByOption = None, store: StoreOption = None
) -> None:
    """Enable a disabled user."""
    from spinney.features.accounts.commands import ChangeUser

    with open_commands(store, by) as performer:
        performer.do(ChangeUser(name=name, disabled=False, reason=reason))
    typer.echo(f"user {name} is enabled")


def delete(
    name: UserArgument,
    yes: YesOption = False,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete a user and revoke the user's tokens. Jobs and the audit log keep the name."""
    from spinney.features.accounts.commands import DeleteUser, ShowUser

    with open_commands(store, by) as performer:
        performer.do(ShowUser(name=name))
        require_yes(f"Delete user {display.safe(name)} and revoke all tokens of that name?", yes=yes)
        performer.do(DeleteUser(name=name, reason=reason))
    typer.echo(f"user {name} is deleted")


def password(
    name: UserArgument,
    no_password: NoPasswordOption = False,
    password_stdin: StdinOption = False,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Set a user's password and end all of the user's sessions."""
    from spinney.commands import LocalPerformer
    from spinney.features.accounts.commands import ShowUser, set_password

    with open_commands(store, by) as performer:
        if not isinstance(performer, LocalPerformer):
            raise UsageError(
                f"a server cannot set another user's password; 'spinney user link {name}' creates a link to set it"
            )
        performer.do(ShowUser(name=name))
        secret = _new_password(no_password=no_password, from_stdin=password_stdin)
        set_password(performer, name, secret, reason=reason)
    typer.echo(f"user {name} has {'no password any more' if no_password else 'a new password'}")


def link(name: UserArgument, by: ByOption = None, store: StoreOption = None) -> None:
    """Print a link with which the user sets a password, once and within a day. Append it to the server's address."""
    from spinney.features.accounts.commands import MakeLink

    with open_commands(store, by) as performer:
        made = performer.do(MakeLink(name=name))
    typer.echo(made.path)
    typer.echo(f"valid once, until {display.format_time(made.ends_us)}", err=True)


# --- tokens -----------------------------------------------------------------------------------


def make(
    name: TokenArgument,
    user: OwnerOption = None,
    role: RoleOption = None,
    collections: CollectionsOption = None,
    queues: QueuesOption = None,
    shares: SharesOption = None,
    priority: PriorityOption = None,
    locks: LocksOption = None,
    external: ExternalOption = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long the token is valid, for example 30d (default: for ever).",
            show_default=False,
        ),
    ] = None,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Create a token and print its secret, which is shown only once.

    A user's token (--user) has the user's rights, unless options restrict it. A machine token has rights of its own
    (--role) and acts under the name token:NAME."""
    from spinney.features.accounts.commands import MakeToken, ShowUser

    with open_commands(store, by) as performer:
        before = None if user is None else performer.do(ShowUser(name=user)).rights
        asked = rights.from_options(
            before,
            role=role,
            collections=collections,
            queues=queues,
            shares=shares,
            priority=priority,
            locks=locks,
            external=external,
        )
        expires_us = None if expires is None else now_us() + round(durations.seconds(expires) * 1e6)
        made = performer.do(MakeToken(name=name, owner=user, rights=asked, expires=expires_us, reason=reason))
    typer.echo(made.secret)
    end = "" if expires_us is None else f", valid until {display.format_time(expires_us)}"
    typer.echo(
        f"token {name} of {made.token.acts_as}: {_rights_text(made.token.rights)}{end}; the secret is shown only once",
        err=True,
    )


def list_tokens(
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME",
            help="Only tokens of this user.",
            show_default=False,
            autocompletion=completion.users,
        ),
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the tokens with their rights, their state and when each was last used, machine tokens first."""
    from spinney.features.accounts.commands import ListTokens

    with open_commands(store) as performer:
        found = performer.do(ListTokens(owner=user)).items
    if json:
        display.print_json_lines(found)
        return
    rows = [
        (
            t.name,
            t.owner or "(a machine)",
            t.rights.role,
            rights.limits_text(t.rights),
            _token_state(t),
            display.format_time(t.used_us) or "never",
        )
        for t in found
    ]
    display.print_table(("TOKEN", "USER", "ROLE", "LIMITS", "STATE", "LAST USED"), rows)


def revoke(
    name: TokenArgument,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME",
            help="The user the token belongs to (default: none, a machine token).",
            show_default=False,
            autocompletion=completion.users,
        ),
    ] = None,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Revoke a token for good."""
    from spinney.features.accounts.commands import RevokeToken, find_token

    with open_commands(store, by) as performer:
        found = find_token(performer, name, user)
        performer.do(RevokeToken(token=found.id, reason=reason))
    typer.echo(f"token {name} of {found.acts_as} is revoked")


# --- words ------------------------------------------------------------------------------------


def _new_password(*, no_password: bool, from_stdin: bool) -> str | None:
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


def _rights_text(found: "Rights") -> str:
    limits = rights.limits_text(found)
    return f"{found.role}{f', {limits}' if limits else ''}"


def _sign_in_method(found: "User") -> str:
    if found.disabled:
        return "disabled"
    return "by password" if found.password_us is not None else "without a password"


def _token_state(token: "Token") -> str:
    if token.revoked_us is not None:
        return f"revoked {display.format_time(token.revoked_us)}"
    if token.expires_us is None:
        return "valid"
    return f"{'valid until' if token.good(now_us()) else 'expired'} {display.format_time(token.expires_us)}"
