"""Who may use a server, and what servers remember of them."""

from sqlalchemy import Column, Index, Integer, Table, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, metadata, where

users = Table(
    "users",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("rights", Chars, nullable=False),
    Column("password", Chars),
    Column("password_us", Id),
    Column("created_us", Id, nullable=False),
    Column("by", Chars, nullable=False),
    Column("disabled", Flag, nullable=False, server_default=text("0")),
)
"""``rights``: JSON of ``model.access.Rights``. ``password``: its argon2 hash; None: none opens anything."""

tokens = Table(
    "tokens",
    metadata,
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
"""``owner``: a user, or empty: a machine's. ``digest``: SHA-256 of the secret, which nobody keeps."""

sessions = Table(
    "sessions",
    metadata,
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
"""``digest``: SHA-256 of what the browser has. It ends at ``ends_us``, or ``idle_us`` after it was last seen."""

login_failures = Table(
    "login_failures",
    metadata,
    Column("whose", Chars, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_us", Id, nullable=False),
    Index("login_failures_by_time", "last_us"),
)
"""``whose``: SHA-256 of a user name or of an address, whether there is such a user or not (people type passwords
there). Kept for a day."""

invites = Table(
    "invites",
    metadata,
    Column("user_name", Chars, primary_key=True),
    Column("digest", Chars, nullable=False),
    Column("ends_us", Id, nullable=False),
    Column("by", Chars, nullable=False),
)
"""Links that set a password, once. ``user_name``: whose; empty: they make the first admin. ``digest``: SHA-256 of the
secret in it."""

server_secrets = Table(
    "server_secrets",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("value", Chars, nullable=False),
    Column("made_us", Id, nullable=False),
)
"""What all servers of a store sign with; 32 random bytes each, in hexadecimal."""

idempotency = Table(
    "idempotency",
    metadata,
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
"""Submissions with a key of the submitter's program, and the jobs that each made: written with them. ``done`` 0: they
are being written in steps under the ``staging`` row of ``first_id``. Kept for a day."""
