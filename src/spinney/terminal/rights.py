"""Options for roles and limits, and how tables show them."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import UsageError
from spinney.terminal import completion

ANY = "*"
"""As a value of a limit: none."""
Some = list[str] | None


def _limit(name: str, what: str, complete: Any = None) -> Any:
    return typer.Option(
        f"--{name}",
        metavar=name.upper(),
        help=f"{what}; may be repeated; '*' (in quotes) for all.",
        show_default=False,
        autocompletion=complete,
    )


def _roles(incomplete: str) -> list[str]:
    return [role.value for role in Role if role.value.startswith(incomplete)]


RoleOption = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        show_default=False,
        autocompletion=_roles,
        help="viewer, submitter, operator or admin; each includes the rights of those before it.",
    ),
]
CollectionsOption = Annotated[
    Some, _limit("collection", "Access only to jobs of this collection", completion.collections)
]
QueuesOption = Annotated[Some, _limit("queue", "Access only to jobs in this queue", completion.queues)]
SharesOption = Annotated[
    Some, _limit("share", "Submit only with this share, or with those that begin so: 'lab:*'")
]
PriorityOption = Annotated[
    str | None,
    typer.Option(
        "--priority",
        metavar="A..B",
        show_default=False,
        help="Set only priorities from A (first) to B (last), for example 40..60; '*' for any.",
    ),
]
LocksOption = Annotated[
    Some,
    _limit("lock", "Free this lock or set its capacity, or those that begin so: 'disk:*'", completion.locks),
]
ExternalOption = Annotated[
    Some,
    typer.Option(
        "--external",
        metavar="TYPE",
        show_default=False,
        autocompletion=completion.types,
        help="Claim external stages of this job type; may be repeated; '*' for all, 'none' for none.",
    ),
]


def from_options(
    before: Rights | None,
    *,
    role: str | None,
    collections: Some,
    queues: Some,
    shares: Some,
    priority: str | None,
    locks: Some,
    external: Some,
) -> Rights | None:
    """``before`` with what is given in its place; None: nothing is given, and there was nothing. Raises UsageError."""
    given = (role, collections, queues, shares, priority, locks, external)
    if before is None and all(value is None for value in given):
        return None
    rights = before if role is None and before is not None else _of_role(before, role)
    within = rights.within
    return replace(
        rights,
        within=AccessScope(
            collections=_kept(within.collections, collections), queues=_kept(within.queues, queues)
        ),
        shares=_kept(rights.shares, shares),
        priorities=rights.priorities if priority is None else _priorities(priority),
        locks=_kept(rights.locks, locks),
        external=rights.external if external is None else tuple(name for name in external if name != "none"),
    )


def limits_text(rights: Rights) -> str:
    """The limits on one line; empty: there are none."""
    said = [
        f"{name} {' '.join(values) or 'none'}"
        for name, values in (
            ("collections", rights.within.collections),
            ("queues", rights.within.queues),
            ("shares", rights.shares),
            ("locks", rights.locks),
            ("external", rights.external or None),
        )
        if values is not None
    ]
    if rights.priorities is not None:
        said.append(f"priorities {rights.priorities[0]}..{rights.priorities[1]}")
    return ", ".join(said)


def _of_role(before: Rights | None, role: str | None) -> Rights:
    if role not in list(Role):
        said = "say which" if not role else f"{role!r:.60} is none"
        raise UsageError(f"a role is {', '.join(Role)}: {said}, as --role submitter")
    return Rights(role=Role(role)) if before is None else replace(before, role=Role(role))


def _kept(before: tuple[str, ...] | None, given: Some) -> tuple[str, ...] | None:
    if given is None:
        return before
    return None if ANY in given else tuple(dict.fromkeys(given))


def _priorities(text: str) -> tuple[int, int] | None:
    if text == ANY:
        return None
    first, dots, last = text.partition("..")
    numbers = [
        part
        for part in (first, last if dots else first)
        if part.isascii() and part.isdigit() and len(part) < 3
    ]
    if len(numbers) != 2:
        raise UsageError(
            f"--priority {text!r:.60} is not a range of priorities; write 40..60, or '*' for any"
        )
    return int(numbers[0]), int(numbers[1])
