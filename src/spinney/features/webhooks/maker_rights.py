"""The rights with which webhooks, schedules and inboxes act: those that their maker has at that moment.

A webhook reports jobs, and a schedule or an inbox submits jobs, long after a user made it. So the JSON in ``spec`` of
its row has an entry ``maker``, the account of that user, whose rights are looked up each time. The entry is ``null``,
which means all rights, if the maker has no account in the store: an operator on a host with the store, an application
that declares the schedule, or a user whom the server's configuration admits (``peers``, ``trusted_role``).

A user who was created after another one of the same name was deleted is not the maker: ``since_us`` tells them apart.
Rows of older versions have no entry; there the current user of that name counts as the maker.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.rights.accounts import TOKEN_NAME, rights_in
from spinney.model.rights.actor import Actor
from spinney.model.rights.submit_rights import beyond_limit, may_submit
from spinney.model.settings.schedules import Schedule
from spinney.model.types import TypeSpec, passed_queues
from spinney.model.values.unreadable import json_value
from spinney.store.sql.connection.database import Tx

KEY = "maker"
"""The entry of ``spec`` that names the maker."""
_ADVICE = "the user who resumes it becomes its maker"
"""The end of each message: a resume makes the caller the maker."""


def new_entry(tx: Tx, actor: Actor) -> Mapping[str, Any]:
    """Return the entry, to be merged into a ``spec``, that names this actor as the maker."""
    if actor.account is None:
        return {KEY: None}
    # None for a token, and for a user who has just been deleted: no later user of that name has this creation time.
    since_us = tx.value("select created_us from users where name = ?", (actor.account,))
    return {KEY: {"name": actor.account, "since_us": since_us}}


def entry_in(spec: str) -> Mapping[str, Any]:
    """Return the entry of a ``spec``, to be merged into another one; empty in rows of older versions."""
    value = json_value(spec, "the spec of a webhook, schedule or inbox")
    return {KEY: value[KEY]} if isinstance(value, dict) and KEY in value else {}


def spec_text(settings: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Return the ``spec`` of a row: the JSON of its settings, and the entry that names the maker."""
    return orjson.dumps({**settings, **entry}).decode()


def operator_rights(tx: Tx, spec: str, by: str, action: str, now_us: int) -> Rights | str:
    """Return the maker's current rights, or the reason why the maker may not do this ``action`` any more, for want of
    the role of an operator.

    ``spec``: the JSON of the row. ``by``: the name that counts as the maker's where ``spec`` has no entry. A maker
    without an account has all rights.
    """
    entry = entry_in(spec)
    maker = entry.get(KEY, {"name": by, "since_us": None})
    if maker is None:
        return ALL_RIGHTS
    name = maker["name"]
    if name.startswith(TOKEN_NAME):
        rights = _token_rights(tx, name, now_us)
    else:
        rights = _user_rights(tx, name, maker["since_us"], older_version=not entry)
    if isinstance(rights, str):
        return f"its maker {name} {rights} and may not {action}; {_ADVICE}"
    if not rights.permits(Role.OPERATOR):
        return f"its maker {name} is only a {rights.role} now and may not {action}; {_ADVICE}"
    return rights


def schedule_fault(
    tx: Tx, schedule: Schedule, spec: str, types: Mapping[str, TypeSpec], now_us: int
) -> str | None:
    """Return why the maker of a schedule may not submit its jobs any more; None while the maker may.

    The reason names everything that is out of reach, not only the first. A declared schedule belongs to
    its application and is always allowed. A type that does not exist is no fault here: submitting reports
    that.
    """
    if schedule.declared:
        return None
    rights = operator_rights(tx, spec, schedule.by, "make schedules", now_us)
    if isinstance(rights, str):
        return rights
    type_ = types.get(schedule.type)
    if type_ is not None and rights is not ALL_RIGHTS:  # the maker has an account
        if not may_submit(type_, rights):
            return f"its maker {schedule.by} may not submit {type_.name!r} jobs; {_ADVICE}"
        # What the parameters name, where the type limits that: a collection, queue, share or submitter.
        beyond = beyond_limit(type_, schedule.params, rights, schedule.by)
        if beyond is not None:
            return (
                f"its maker {schedule.by} may no longer name the {beyond.limit} that parameter {beyond.parameter!r} "
                f"names; {_ADVICE}"
            )
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
    if not out_of_reach:
        return None
    return f"its maker {schedule.by} may no longer submit to {', '.join(out_of_reach)}; {_ADVICE}"


def _user_rights(tx: Tx, name: str, since_us: int | None, *, older_version: bool) -> Rights | str:
    """Return the user's rights, or the end of the sentence "its maker NAME …" that says why there are
    none.

    ``older_version``: the row has no entry, so a user that does not exist may be an operator on a host,
    who never had an account.
    """
    row = tx.one("select rights, disabled, created_us from users where name = ?", (name,))
    if row is None and older_version:
        return ALL_RIGHTS
    if row is None or (not older_version and row[2] != since_us):
        return "was deleted"
    return "is disabled" if row[1] else rights_in(row[0])


def _token_rights(tx: Tx, name: str, now_us: int) -> Rights | str:
    """Return the rights of a machine's token, or the end of the same sentence."""
    text = tx.value(
        "select rights from tokens where owner = '' and name = ? and revoked_us is null "
        "and (expires_us is null or expires_us > ?)",
        (name.removeprefix(TOKEN_NAME), now_us),
    )
    return "is revoked or has expired" if text is None else rights_in(text)
