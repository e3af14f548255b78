"""The children of a job by the stages that spawned them: which keep it waiting, and which let it fail.

A stage waits for the children of the stages before it. Children of the stage itself are no reason to wait: an earlier
attempt of it spawned them by their keys, and did not pass."""

from spinney.model.states import State
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.transitions import placement

# The children of a job (open or bad ones) that other stages than this one spawned. ``is distinct from``,
# because a job that has passed all stages has none.
_OLDER = (
    "from children_left join jobs on jobs.id = child_id "
    "where children_left.parent_id = ? and bad = ? and jobs.spawn_stage is distinct from ?"
)
_ENDINGS: dict[str, str] = {
    State.FAILED: "failed",
    State.CANCELLED: "was cancelled",
    State.DELETED: "was deleted",
}


def older_open(tx: Tx, row: Row) -> bool:
    """Return whether children of other stages than the current one are open."""
    return placement.open_children(tx, row.id) and tx.exists(
        f"select 1 {_OLDER} limit 1", (row.id, 0, row.stage)
    )


def older_stages_with_open(tx: Tx, row: Row) -> list[str | None]:
    """Return the stages other than the current one that spawned children which are open."""
    if not older_open(tx, row):
        return []
    return tx.column(f"select distinct jobs.spawn_stage {_OLDER}", (row.id, 0, row.stage))


def older_stages_run_since(tx: Tx, row: Row, fence: int) -> list[str | None]:
    """Return the stages other than the current one that spawned children of which an attempt was claimed after this
    fence, that of an attempt of their parent: they were opened again meanwhile. All children are read."""
    return tx.column(
        "select distinct spawn_stage from jobs where parent_id = ? and superseded is null "
        "and spawn_stage is distinct from ? "
        # Not by the view ``history``, of which SQLite would read all jobs first.
        "and (final_fence > ? or exists (select 1 from attempts a where a.job_id = jobs.id and a.fence > ?))",
        (row.id, row.stage, fence, fence),
    )


def older_bad(tx: Tx, row: Row) -> int | None:
    """Return a failed child of another stage than the current one; None: there is none."""
    if placement.bad_child(tx, row.id) is None:
        return None
    child_id: int | None = tx.value(f"select child_id {_OLDER} limit 1", (row.id, 1, row.stage))
    return child_id


def because_of(tx: Tx, child_id: int) -> str:
    """Return why a job fails because of this child."""
    return f"its subjob {child_id} {ending(tx.value('select state from jobs where id = ?', (child_id,)))}"


def ending(state: str) -> str:
    """Return how a job has ended, as the predicate of a sentence; ``service.visibility`` recognizes these sentences."""
    return _ENDINGS.get(state, f"is {state}")
