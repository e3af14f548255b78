"""The options of ``user`` and ``token`` for a role and its limits, and how their tables show them."""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import UsageError
from spinney.model.values.texts import whole_number
from spinney.terminal import completion
from spinney.terminal.options.arguments import option

ANY = "*"
"""The value of an option that removes a limit: without limits everything is allowed."""
NONE = "none"
"""The value by which ``--external`` removes all job types: without any, no external stage may be claimed."""
Names = list[str] | None


def _limit(name: str, description: str, complete: Any = None) -> Any:
    help_ = f"{description}; may be repeated; '*' (in quotes) for all."
    return option(f"--{name}", metavar=name.upper(), help_=help_, complete=complete)


@dataclass(frozen=True, kw_only=True)
class RightsOptions:
    """A role and its limits, as options of a command. An option that is not used is None, and changes
    nothing."""

    role: Annotated[
        Role | None,
        option(
            metavar="ROLE",
            help_="viewer, submitter, operator or admin; each includes the rights of those before it.",
        ),
    ] = None
    collections: Annotated[
        Names, _limit("collection", "Access only to jobs of this collection", completion.collections)
    ] = None
    queues: Annotated[Names, _limit("queue", "Access only to jobs in this queue", completion.queues)] = None
    shares: Annotated[
        Names, _limit("share", "Submit only with this share, or with those that begin so: 'lab:*'")
    ] = None
    priority: Annotated[
        str | None,
        option(
            "--priority",
            metavar="A..B",
            help_="Set only priorities from A (first) to B (last), for example 40..60; '*' for any.",
        ),
    ] = None
    locks: Annotated[
        Names,
        _limit(
            "lock", "Free this lock or set its capacity, or those that begin so: 'disk:*'", completion.locks
        ),
    ] = None
    external: Annotated[
        Names,
        option(
            "--external",
            metavar="TYPE",
            complete=completion.types,
            help_="Claim external stages of this job type; may be repeated; '*' for all, 'none' for none.",
        ),
    ] = None

    @property
    def any_given(self) -> bool:
        """Return whether at least one of the options is used."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    def applied_to(self, before: Rights | None) -> Rights:
        """Return these rights with every option that is used in place of their own value.

        ``before`` None: there are none yet, so that the role must be named. Raises UsageError without it, and for a
        range that does not exist.
        """
        role = before.role if self.role is None and before is not None else self.role
        if role is None:
            raise UsageError(f"the role is missing; add --role with one of {', '.join(Role)}")
        before = Rights(role=role) if before is None else replace(before, role=role)
        within, external = before.within, self.external
        return replace(
            before,
            within=AccessScope(
                collections=_names(within.collections, self.collections),
                queues=_names(within.queues, self.queues),
            ),
            shares=_names(before.shares, self.shares),
            priorities=before.priorities if self.priority is None else _priorities(self.priority),
            locks=_names(before.locks, self.locks),
            external=before.external if external is None else tuple(n for n in external if n != NONE),
        )


def limits_text(rights: Rights) -> str:
    """Return the limits on one line; empty when there are none."""
    parts = [
        f"{name} {' '.join(values) or NONE}"
        for name, values in {**rights.name_limits, "external": rights.external or None}.items()
        if values is not None
    ]
    if rights.priorities is not None:
        parts.append(f"priorities {rights.priorities[0]}..{rights.priorities[1]}")
    return ", ".join(parts)


def _names(before: tuple[str, ...] | None, names: Names) -> tuple[str, ...] | None:
    """Return the names of a limit: as before without the option, None (no limit) for ``*``, else those of the
    option, each once."""
    if names is None:
        return before
    return None if ANY in names else tuple(dict.fromkeys(names))


def _priorities(text: str) -> tuple[int, int] | None:
    """Return the range that a text such as ``40..60`` or ``50`` means; None for ``*``. Raises UsageError for
    other texts."""
    if text == ANY:
        return None
    first, dots, last = text.partition("..")
    lowest, highest = whole_number(first, digits=2), whole_number(last if dots else first, digits=2)
    if lowest is None or highest is None:
        raise UsageError(
            f"--priority {text!r:.60} is not a range of priorities; write 40..60, or '*' for any"
        )
    return lowest, highest
