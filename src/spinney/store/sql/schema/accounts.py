"""The tables of users, tokens and sign-ins, and of the idempotency keys of their requests.

Columns that end in ``_us`` are times in microseconds since 1970 UTC (``Id`` is a 64-bit integer). Secrets are kept as
digests only, except the keys with which servers sign.
"""

from sqlalchemy import Column, Index, Integer, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, table, where

users = table(
    "users",
    Column("name", Chars, primary_key=True),
    Column("rights", Chars, nullable=False),
    Column("password", Chars),
    Column("password_us", Id),
    Column("created_us", Id, nullable=False),
    Column("by", Chars, nullable=False),
    Column("disabled", Flag, nullable=False, server_default=text("0")),
)
"""The users that operators created. ``rights``: ``model.access.Rights`` as JSON. ``password``: the argon2 hash of the
password; null: the user cannot sign in with a password. ``password_us``: when it was set. ``by``: who created the
user."""

tokens = table(
    "tokens",
    Column("id", Chars, primary_key=True),
    Column("owner", Chars, nullable=False),
    Column("name", Chars, nullable=False),
    Column("rights", Chars, nullable=False),
    Column("digest", Chars, nullable=False),
    Column("created_us", Id, nullable=False),
    Column("by", Chars, nullable=False),
    Column("expires_us", Id),
    Column("revoked_us", Id),
    Column("used_us", Id),
    Index("tokens_by_name", "owner", "name", unique=True, **where("revoked_us is null")),
    Index("tokens_by_expiry", "expires_us", **where("expires_us is not null")),
    Index("tokens_by_revocation", "revoked_us", **where("revoked_us is not null")),
)
"""API tokens. ``owner``: the user for whom it acts; empty: it is a machine's, with rights of its own. ``digest``:
SHA-256 of the token's secret, which is not stored. ``used_us``: when it was last used."""

sessions = table(
    "sessions",
    Column("digest", Chars, primary_key=True),
    Column("user_name", Chars, nullable=False),
    Column("created_us", Id, nullable=False),
    Column("seen_us", Id, nullable=False),
    Column("idle_us", Id, nullable=False),
    Column("ends_us", Id, nullable=False),
    Column("address", Chars),
    Column("agent", Chars),
    Index("sessions_by_user", "user_name"),
    Index("sessions_by_end", "ends_us"),
)
"""Sessions of users in browsers. ``digest``: SHA-256 of the cookie. A session ends at ``ends_us``, or earlier when
there was no request for ``idle_us`` (a duration) after ``seen_us``. ``address``, ``agent``: those of the browser that
signed in."""

login_failures = table(
    "login_failures",
    Column("whose", Chars, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_us", Id, nullable=False),
    Index("login_failures_by_time", "last_us"),
)
"""Counts of failed sign-ins, by which further ones are limited. ``whose``: SHA-256 of the typed user name or of the
client's address. A name is hashed and recorded even if no user has it, because people type passwords into that field by
mistake. Rows are kept for a day after the last failure."""

invites = table(
    "invites",
    Column("user_name", Chars, primary_key=True),
    Column("digest", Chars, nullable=False),
    Column("ends_us", Id, nullable=False),
    Column("by", Chars, nullable=False),
)
"""Links with which a user sets a password; each works once. ``user_name``: the user; empty: the link creates the first
admin. ``digest``: SHA-256 of the secret in the link. ``by``: who made it."""

server_secrets = table(
    "server_secrets",
    Column("name", Chars, primary_key=True),
    Column("value", Chars, nullable=False),
    Column("made_us", Id, nullable=False),
)
"""The keys with which all servers of this store sign; each is 32 random bytes in hexadecimal."""

idempotency = table(
    "idempotency",
    Column("owner", Chars, primary_key=True),
    Column("key", Chars, primary_key=True),
    Column("digest", Chars, nullable=False),
    Column("first_id", Id, nullable=False),
    Column("last_id", Id, nullable=False),
    Column("held", Id, nullable=False, server_default=text("0")),
    Column("done", Flag, nullable=False),
    Column("at_us", Id, nullable=False),
    Index("idempotency_by_time", "at_us"),
)
"""Submissions with an idempotency key, and the range of ids of their jobs, so that a repeated request gets the first
answer. A row is written in the transaction of its jobs. ``owner``, ``key``: the submitter and the key that its program
chose. ``digest``: that of the request, since another request must not use the same key. ``held``: how many of the jobs
were put on hold. ``done`` is 0 while the jobs of a large submission are still being written, in steps, under the
``staging`` row of ``first_id``. Rows are kept for a day."""

saved_filters = table(
    "saved_filters",
    Column("owner", Chars, primary_key=True),
    Column("name", Chars, primary_key=True),
    Column("query", Chars, nullable=False),
    sqlite_with_rowid=False,
)
"""Filters of the list of jobs that a user (``owner``) saved: the query string of the page's address."""
