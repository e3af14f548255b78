"""With whose rights something goes on being done long after somebody asked for it: a webhook is told, a schedule makes
jobs.

Beside what it is to do, the row's ``spec`` keeps under ``maker`` the account that made it, and its rights are asked
each time. Without an account (``null``) it has all rights: it was made on a host that has the store, declared by an
application, or made by somebody whom the server's configuration lets in (``peers``, ``trusted_role``), for whom that
file speaks. A user who was made anew under the name of a deleted one is somebody else. In rows of older versions,
which have no ``maker``, a name counts as the user who has it now.
"""

from collections.abc import Mapping
from typing import Any

from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.errors import Forbidden
from spinney.model.rights.accounts import TOKEN_NAME, rights_in
from spinney.model.rights.operators import Actor
from spinney.model.rights.submit_rights import beyond_limit, may_submit
from spinney.model.settings.schedules import Schedule
from spinney.model.types import TypeSpec, passed_queues
from spinney.model.values.unreadable import json_value
from spinney.store.sql.connection.database import Tx

KEY = "maker"
_WAY_OUT = "whoever resumes it answers for it from then on"


def of(tx: Tx, actor: Actor) -> Mapping[str, Any] | None:
    """Return what ``spec`` keeps of who makes something now."""
    if actor.account is None:
        return None
    # Null for a token, and for a user who was deleted at this moment: there is nobody then whose rights it has.
    since_us = tx.value("select created_us from users where name = ?", (actor.account,))
    return {"name": actor.account, "since_us": since_us}


def read(spec: str) -> Mapping[str, Any]:
    """Return ``maker`` of a row's spec as a mapping to put into another one; empty: it has none."""
    value = json_value(spec, "what was made")
    return {KEY: value[KEY]} if isinstance(value, dict) and KEY in value else {}


def require(tx: Tx, spec: str, by: str, what: str, now_us: int) -> Rights:
    """Return what the maker may now. Raises Forbidden unless that is an operator's work. ``what`` ends "may not …"."""
    kept = read(spec)
    maker = kept.get(KEY, {"name": by, "since_us": None})
    if maker is None:
        return ALL_RIGHTS
    name = maker["name"]
    if name.startswith(TOKEN_NAME):
        rights = _token_rights(tx, name, now_us)
    else:
        rights = _user_rights(tx, name, maker["since_us"], older_version=not kept)
    if isinstance(rights, str):
        raise Forbidden(f"its maker {name} {rights} and may not {what}; {_WAY_OUT}")
    if not rights.permits(Role.OPERATOR):
        raise Forbidden(f"its maker {name} is only a {rights.role} now and may not {what}; {_WAY_OUT}")
    return rights


def require_schedule(
    tx: Tx, schedule: Schedule, spec: str, types: Mapping[str, TypeSpec], now_us: int
) -> None:
    """Raise Forbidden unless the maker of a schedule may submit its jobs now."""
    if schedule.declared:
        return
    rights = require(tx, spec, schedule.by, "make schedules", now_us)
    type_ = types.get(schedule.type)
    if type_ is not None and rights is not ALL_RIGHTS:  # of an account
        _require_type(type_, schedule, rights)
    within, options = rights.within, schedule.options
    out_of_reach = []
    if within.collections is not None and options.get("collection") not in within.collections:
        out_of_reach.append(
            f"collection {options['collection']!r}" if options.get("collection") else "no collection"
        )
    if within.queues is not None and type_ is not None:
        queues = passed_queues(type_, options.get("queue")) - set(within.queues)
        out_of_reach += [f"queue {queue!r}" for queue in sorted(queues)]
    if options.get("priority") is not None and not rights.gives_priority(options["priority"]):
        out_of_reach.append(f"priority {options['priority']}")
    if options.get("share") is not None and not rights.names_share(options["share"]):
        out_of_reach.append(f"share {options['share']!r}")
    if out_of_reach:
        raise Forbidden(
            f"its maker {schedule.by} may no longer submit to {', '.join(out_of_reach)}; {_WAY_OUT}"
        )


def _require_type(type_: TypeSpec, schedule: Schedule, rights: Rights) -> None:
    """Raise Forbidden unless a schedule of an account may make jobs of this type with its parameters. (One that was
    made on a host that has the store may; so may what an application declares.)"""
    if not may_submit(type_, rights):
        raise Forbidden(f"its maker {schedule.by} may not submit {type_.name!r} jobs; {_WAY_OUT}")
    beyond = beyond_limit(type_, schedule.params, rights, schedule.by)
    if beyond is not None:
        raise Forbidden(
            f"its maker {schedule.by} may no longer name the {beyond.limit} that parameter {beyond.parameter!r} names; "
            f"{_WAY_OUT}"
        )


def _user_rights(tx: Tx, name: str, since_us: int | None, *, older_version: bool) -> Rights | str:
    """The user's rights, or why there are none."""
    row = tx.one("select rights, disabled, created_us from users where name = ?", (name,))
    if row is None and older_version:
        return ALL_RIGHTS
    if row is None or (not older_version and row[2] != since_us):
        return "was deleted"
    return "is disabled" if row[1] else rights_in(row[0])


def _token_rights(tx: Tx, name: str, now_us: int) -> Rights | str:
    text = tx.value(
        "select rights from tokens where owner = '' and name = ? and revoked_us is null "
        "and (expires_us is null or expires_us > ?)",
        (name.removeprefix(TOKEN_NAME), now_us),
    )
    return "is revoked or has expired" if text is None else rights_in(text)
