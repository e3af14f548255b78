"""The tables of webhooks and their deliveries.

A delivery is a row from the transaction that settles its job, so that no crash loses one: the outbox pattern.
A sender claims due rows for a time, sends them outside of any transaction, and records the answer. When it
dies in between, another sends them again, so a receiver may get one twice, with the same id."""

from sqlalchemy import Column, Index, Integer, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, table, where

webhooks = table(
    "webhooks",
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
"""Webhooks. ``spec``: JSON of the settings of a ``Webhook``, and of what its maker may see. ``secret``: signs the
deliveries. ``mark``: the random prefix of the ids of its deliveries. ``paused``: the reason why nothing is sent now;
``resumed_us``: when it was last resumed."""

webhook_events = table(
    "webhook_events",
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
"""Deliveries, written by the transaction that settled the job. ``batch``: the job is a root with subjobs.
``next_us``: when it is due or, while a process sends it, when the claim of that process ends; null: nothing
is left to do. ``first_us``: the first try since it was created or retried. ``status``, ``answer``: those of the last
try."""
