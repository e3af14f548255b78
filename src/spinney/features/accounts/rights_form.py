"""Rights in the forms and tables of the pages of users and tokens.

A form has a text area for each limit, with one name on a line, and a box beside it. The box tells a limit
that allows nothing from no limit, which an empty text area cannot.
"""

from collections.abc import Mapping

from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import UsageError
from spinney.model.values.hints import first_of, listed
from spinney.web.pages.forms import FormFields

LISTS = ("collections", "queues", "shares", "locks")
"""The fields of limits that are lists of names. A limit whose box is not ticked does not limit anything."""
_FIRST, _LAST = 0, 99


def rights_of(form: FormFields) -> Rights:
    """Return the rights that a form describes. Raises UsageError, BadName for invalid ones."""
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


def rights_if_entered(form: FormFields) -> Rights | None:
    """Return the rights that a form describes; None when it names neither a role nor limits. Raises
    UsageError for limits without a role, which must not be ignored."""
    if form.text("role"):
        return rights_of(form)
    limits = ("first", "last", "external", *LISTS, *(f"{name}_limited" for name in LISTS))
    if any(form.text(name) for name in limits):
        raise UsageError("limits need a role; choose a role, or leave the limits out")
    return None


def _limit(form: FormFields, name: str) -> tuple[str, ...] | None:
    names = form.lines(name)
    # A limit that is chosen and names nothing allows nothing: it must not become no limit.
    return names if names or form.text(f"{name}_limited") else None


def fields_of(rights: Rights) -> Mapping[str, str]:
    """Return the values of the form's fields that describe these rights, the reverse of ``rights_of``."""
    fields = {"role": str(rights.role), "external": "\n".join(rights.external)}
    for name, names in rights.name_limits.items():
        fields[name] = "\n".join(names or ())
        if names is not None:
            fields[f"{name}_limited"] = "1"
    if rights.priorities is not None:
        fields |= {"first": str(rights.priorities[0]), "last": str(rights.priorities[1])}
    return fields


def limits_in_words(rights: Rights) -> str:
    """Return the limits in words: ``only collections maps, photos; priorities 40 to 60``; empty without limits."""
    parts = [
        f"only {kind} {first_of(names) or 'none'}"
        for kind, names in rights.name_limits.items()
        if names is not None
    ]
    if rights.priorities is not None:
        parts.append(f"priorities {rights.priorities[0]} to {rights.priorities[1]}")
    if rights.external:
        types = "all types" if "*" in rights.external else first_of(rights.external)
        parts.append(f"external stages of {types}")
    return "; ".join(parts)
