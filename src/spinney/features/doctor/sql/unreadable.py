"""Values that are kept as JSON and cannot be read any more: which table, which column, which key.

One such row spoils only itself (``model.values.unreadable``): lists show it, a job that cannot be run without it
fails. Nobody can know what stood there, so there is no repair. Types, queues and what operators set of them have a rule
of their own (``integrity``), and so have schedules (``schedules_and_counters``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spinney.features.doctor.sql.rule import CheckContext, Facts, Paged, Repair, Rule, Walk
from spinney.model.rights.operators import Violation
from spinney.model.values.unreadable import Unreadable, json_object, json_value
from spinney.store.sql.session import Session

ROWS = 500
"""Rows of a page: a value may be 64 kB long."""
_WHAT_TO_DO = {
    "jobs.params": "the job fails when its turn comes; restore the row from a backup, or delete the job",
    "jobs.final_result": "restore the row from a backup, or run the stage again (spinney rerun)",
    "attempts.error": "restore the row from a backup; nothing is decided by it",
    "attempts.result": "restore the row from a backup, or run the stage again (spinney rerun)",
    "data.value": "stages that ask for it fail; restore the row from a backup, or delete it",
    "nodes.types": "restart the node",
    "nodes.serves": "the node is given nothing; restart it",
    "external_workers.lanes": "the external worker is given nothing; let it join again",
    "users.rights": "the user may do nothing; set the rights anew (spinney user set)",
    "tokens.rights": "the token allows nothing; revoke it, and make another (spinney token)",
    "webhooks.spec": "the webhook is told nothing; remove it, and make it again (spinney webhook)",
    "audit.what": "somebody changed it: see what 'spinney audit verify' says",
    "streaks.jobs": "the circuit breaker counts anew; nothing is to be done",
}
"""Every column that is read as JSON, and what a person should do about a value that is none."""
_KEYS = {
    "jobs": ("id",),
    "attempts": ("job_id", "fence"),
    "data": ("job_id", "name"),
    "nodes": ("id",),
    "external_workers": ("node_id",),
    "users": ("name",),
    "tokens": ("id",),
    "webhooks": ("name",),
    "audit": ("seq",),
    "streaks": ("type", "stage"),
}
_OBJECTS = frozenset({"jobs.params", "attempts.error", "users.rights", "tokens.rights", "webhooks.spec"})


@dataclass(frozen=True, slots=True)
class _Readable:
    """The rule, over all these columns."""

    name: str = "json-unreadable"
    about: str = "What is kept as JSON can be read."
    mend: Repair | None = None
    stepwise: bool = False

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        for column in _WHAT_TO_DO:
            yield from _paged(self.name, self.about, *column.split(".")).examine(session, now_us)

    def again(self, look: CheckContext, facts: Facts) -> Facts | None:
        return None


def _paged(name: str, about: str, table: str, column: str) -> Paged:
    keys = _KEYS[table]
    told = ", ".join(f"{key} {{{key}}}" for key in keys)
    read = json_object if f"{table}.{column}" in _OBJECTS else json_value

    def unreadable(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Without the values: nobody knows whether they are secret."""
        wrong = [facts for facts in found if isinstance(read(facts["json"], ""), Unreadable)]
        return [{key: facts[key] for key in keys} for facts in wrong]

    return Paged(
        name=name,
        about=about,
        walk=Walk(table, keys, rows=ROWS),
        where=f"page.{column} is not null",
        columns=(f"page.{column} as json",),
        row_filter=unreadable,
        subject=f"{table}.{column}, {told}",
        sentence=f"the column {column} of table {table} cannot be read at {told}: it holds no JSON; "
        + _WHAT_TO_DO[f"{table}.{column}"],
    )


RULES: tuple[Rule, ...] = (_Readable(),)
