"""What is told elsewhere."""

from sqlalchemy import Column, Index, Integer, Table, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, metadata, where

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Chars, nullable=False, unique=True),
    Column("spec", Chars, nullable=False),
    Column("secret", Chars, nullable=False),
    Column("mark", Chars, nullable=False),
    Column("paused", Chars),
    Column("resumed_us", Id),
    Column("by", Chars, nullable=False),
    Column("at_us", Id, nullable=False),
)
"""``spec``: JSON of what a Webhook is set to, and of what its maker may see. ``secret``: read by nobody but who signs.
``mark``: random, the beginning of its deliveries' ids. ``paused``: why it is told nothing for now;
``resumed_us``: since when it is told again."""

webhook_events = Table(
    "webhook_events",
    metadata,
    Column("seq", Id, primary_key=True),
    Column("webhook_id", Id, nullable=False),
    Column("job_id", Id),
    Column("event", Chars, nullable=False),
    Column("batch", Flag, nullable=False),
    Column("at_us", Id, nullable=False),
    Column("next_us", Id),
    Column("outcome", Chars, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("first_us", Id),
    Column("tried_us", Id),
    Column("status", Integer),
    Column("answer", Chars),
    Index("webhook_events_by_webhook", "webhook_id", "seq"),
    Index("webhook_events_due", "webhook_id", "next_us", **where("next_us is not null")),
)
"""What a webhook is to be told, written by the transaction that settled the job. ``next_us``: when it is due, or, while
somebody sends it, when his turn is over; None: nothing is left to do. ``first_us``: of its first try in this term."""
