"""Rights in forms and in words: what pages of users and tokens have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import UsageError
from spinney.model.values.hints import listed
from spinney.web.pages.forms import FormFields, listed_in_words

LISTS = ("collections", "queues", "shares", "locks")
"""Limits that are lists; one that is not chosen limits nothing."""
_FIRST, _LAST = 0, 99


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """A secret, on the page that makes it: nobody can show it again."""

    title: str
    about: str
    secret: str
    back: str
    label: str
    example: str = ""
    """How it is used."""


def rights_of(form: FormFields) -> Rights:
    """What a form gives somebody. Raises UsageError, BadName for what cannot be meant."""
    role = form.text("role")
    if role not in list(Role):
        raise UsageError(f"there is no role {role[:40]!r}; use one of: {listed(Role)}")
    limits = {name: _limit(form, name) for name in LISTS}
    first, last = form.whole("first", "priority"), form.whole("last", "priority")
    priorities = None
    if first is not None or last is not None:
        priorities = (_FIRST if first is None else first, _LAST if last is None else last)
    return Rights(
        role=Role(role),
        within=AccessScope(collections=limits["collections"], queues=limits["queues"]),
        shares=limits["shares"],
        priorities=priorities,
        locks=limits["locks"],
        external=form.lines("external"),
    )


def rights_if_said(form: FormFields) -> Rights | None:
    """The same; None where nothing is said. Raises also where limits stand there without a role: they must not be
    passed over."""
    if form.text("role"):
        return rights_of(form)
    limits = ("first", "last", "external", *LISTS, *(f"{name}_limited" for name in LISTS))
    if any(form.text(name) for name in limits):
        raise UsageError("limits need a role; choose a role, or leave the limits out")
    return None


def _limit(form: FormFields, name: str) -> tuple[str, ...] | None:
    found = form.lines(name)
    # A limit that is chosen and names nothing leaves nothing: it must not turn into none.
    return found if found or form.text(f"{name}_limited") else None


def fields_of(rights: Rights) -> Mapping[str, str]:
    """The same form, filled."""
    lists = {
        "collections": rights.within.collections,
        "queues": rights.within.queues,
        "shares": rights.shares,
        "locks": rights.locks,
    }
    found = {name: "\n".join(names or ()) for name, names in lists.items()}
    found |= {f"{name}_limited": "1" for name, names in lists.items() if names is not None}
    if rights.priorities is not None:
        found |= {"first": str(rights.priorities[0]), "last": str(rights.priorities[1])}
    return {"role": str(rights.role), "external": "\n".join(rights.external)} | found


def limits_in_words(rights: Rights) -> str:
    """``only collections maps, photos; priorities 40 to 60``; empty: no limit."""
    said = [
        f"only {kind} {listed_in_words(names) or 'none'}"
        for kind, names in (
            ("collections", rights.within.collections),
            ("queues", rights.within.queues),
            ("shares", rights.shares),
            ("locks", rights.locks),
        )
        if names is not None
    ]
    if rights.priorities is not None:
        said.append(f"priorities {rights.priorities[0]} to {rights.priorities[1]}")
    if rights.external:
        types = "all types" if "*" in rights.external else listed_in_words(rights.external)
        said.append(f"external stages of {types}")
    return "; ".join(said)
