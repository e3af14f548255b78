"""The parts of the schema that no declaration of a table says: a view, triggers, storage settings, initial
rows.

The first revision runs them after it has made the tables."""

from collections.abc import Mapping, Sequence

HISTORY = """
create view history as
select job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, code, message, error, result,
       superseded
from attempts
union all
select id, final_fence, stage, final_attempt, 'ok', node_id, final_began_us, final_ended_us, null, null, null,
       final_result, null
from jobs where final_fence is not null
"""
"""All attempts that ended: those of ``attempts``, and the final ones of plain jobs, which stand in ``jobs``."""

COUNTERS = (
    "fence",
    "fetch",
    "hold",
    "hold_sweep",
    "home",
    "inbox_arrival",
    "job",
    "lane",
    "lift",
    "lift_swept",
    "node",
    "registry",
    "removed",
    "share",
    "watermarks",
    "webhook",
    "webhook_event",
)
"""The rows of ``counters`` in a new store, all of them zero."""

GUARDS: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        "audit_follows": (
            "create trigger audit_follows before insert on audit "
            "when new.seq <> (select coalesce(max(seq), 0) + 1 from audit) "
            "begin select raise(abort, 'the audit is append-only: an entry follows the last one'); end"
        ),
        "audit_stays": (
            "create trigger audit_stays before update on audit "
            "begin select raise(abort, 'the audit is append-only: no entry may be changed'); end"
        ),
        "audit_keeps": (
            "create trigger audit_keeps before delete on audit "
            "begin select raise(abort, 'the audit is append-only: no entry may be deleted'); end"
        ),
    },
    "postgresql": {
        "audit_guard": (
            "create function audit_guard() returns trigger language plpgsql as $$ begin "
            "if tg_op = 'INSERT' then "
            "if new.seq = (select coalesce(max(seq), 0) + 1 from audit) then return new; end if; "
            "raise exception 'the audit is append-only: an entry follows the last one'; end if; "
            "raise exception 'the audit is append-only: no entry may be changed or deleted'; end $$"
        ),
        "audit_follows": (
            "create trigger audit_follows before insert on audit for each row execute function audit_guard()"
        ),
        "audit_stays": (
            "create trigger audit_stays before update or delete on audit "
            "for each row execute function audit_guard()"
        ),
        "audit_keeps": (
            "create trigger audit_keeps before truncate on audit "
            "for each statement execute function audit_guard()"
        ),
    },
}
"""Triggers, by dialect and name, that protect the audit from accidents, such as a manual statement or a tool that
rewrites rows. Whoever can write to the file can drop them, but the chain shows that (``spinney audit verify``)."""

_OFTEN_WRITTEN = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold"

POSTGRES_STORAGE: Sequence[str] = (
    # Room for the row as it settles beside the row as it was submitted: no index is written then (no index names a
    # column that settling changes), and the next look at the page clears the old one away.
    "alter table jobs set (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.1)",
    # Every job passes through these two, which the engine vacuums itself, too (``vacuum_schedule``).
    f"alter table ready set ({_OFTEN_WRITTEN} = 5000, autovacuum_vacuum_cost_delay = 0)",
    f"alter table leases set ({_OFTEN_WRITTEN} = 5000, autovacuum_vacuum_cost_delay = 0)",
    # A handful of rows, written in every transaction.
    f"alter table counters set (fillfactor = 10, {_OFTEN_WRITTEN} = 1000)",
    f"alter table nodes set (fillfactor = 20, {_OFTEN_WRITTEN} = 1000)",
    f"alter table throughput set (fillfactor = 20, {_OFTEN_WRITTEN} = 1000)",
    "create index leases_by_fence on leases (fence)",
)
"""How PostgreSQL stores the tables that are written all the time, and an index that only its claims need."""
