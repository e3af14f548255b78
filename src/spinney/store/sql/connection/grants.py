"""The rights of database roles in a schema of a PostgreSQL database. Its owner creates and alters the store.

Other roles (of nodes, submitters, operators) may read and write the rows of the store's tables, and create, alter or
own nothing. ``meta`` and ``alembic_version`` they may only read, and to the audit they may only add.

So somebody who gets hold of a node's password cannot rewrite the audit or change the schema, but can still write any
job. Rights of this kind exist on a server only: whoever may write a SQLite file may do everything with it.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from spinney.model.errors import StoreUnusable, UsageError

_MAINTAIN = 170000
"""The first server version with a right to vacuum tables of another role."""


def grants(schema: str, roles: Sequence[str], server_version: int) -> list[str]:
    """Return the statements that give these roles all that a node, a submitter or an operator needs. They
    cover tables that a later ``spinney init`` of the same role creates, and may be run again. Since
    PostgreSQL 17 a role may vacuum tables that it does not own, if it has the right to
    (``vacuum_schedule``)."""
    place = _quoted(schema)
    statements = []
    for role in map(_quoted, roles):
        statements += [
            f"grant usage on schema {place} to {role}",
            f"grant select, insert, update, delete on all tables in schema {place} to {role}",
            f"revoke insert, update, delete on {place}.alembic_version, {place}.meta from {role}",
            f"revoke update, delete on {place}.audit from {role}",
            f"alter default privileges in schema {place} grant select, insert, update, delete on tables to {role}",
        ]
        if server_version >= _MAINTAIN:
            statements.append(f"grant maintain on {place}.ready, {place}.leases to {role}")
    return statements


def require_roles(connection: "psycopg.Connection[Any]", roles: Sequence[str]) -> None:
    """Raise UsageError for a role that does not exist."""
    for role in roles:
        if connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone() is None:
            raise UsageError(
                f"there is no role {role!r} in this database; make it with 'create role {role} login'"
            )


def require_owner(connection: "psycopg.Connection[Any]", name: str, schema: str) -> None:
    """Raise StoreUnusable, which names the owner, unless this role may create or alter the store.

    Looked up before anything is tried: the server's own message would name a table and no remedy. The owner
    is that of ``alembic_version``, the first table of every store; a role that is a member of the owner may
    alter it, too."""
    user, database, may_create, owner, owns = (
        connection.execute(
            "select current_user::text, current_database()::text, "
            "case when s.oid is null then has_database_privilege(current_database(), 'create') "
            "else has_schema_privilege(s.oid, 'create') end, "
            "pg_get_userbyid(t.relowner)::text, pg_has_role(t.relowner, 'usage') "
            "from (select 1) one left join pg_namespace s on s.nspname = %s "
            "left join pg_class t on t.relnamespace = s.oid and t.relname = 'alembic_version'",
            (schema,),
        ).fetchone()
        or (None,) * 5
    )
    if owner is not None and not owns:
        raise StoreUnusable(
            f"{name} belongs to the role {owner}, and {user} may only work with it; run 'spinney init' as {owner}, or "
            f"have a DBA run what 'spinney init --sql' prints"
        )
    if not may_create:
        raise StoreUnusable(
            f"{user} may not make a store in {name}; have a DBA run 'create schema {_quoted(schema)} authorization "
            f"{_quoted(user)}' in the database {database}, or what 'spinney init --sql' prints"
        )


def _quoted(name: Any) -> str:
    return sql.Identifier(str(name)).as_string(None)
