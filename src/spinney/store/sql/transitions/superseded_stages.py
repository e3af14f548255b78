"""Superseded stages, which count as not passed any more, because they are to run again."""

from collections.abc import Iterable

from spinney.store.sql.connection.database import Tx


def supersede(tx: Tx, job_id: int, stages: Iterable[str]) -> None:
    """Supersede these stages. The children that they spawned do not count any more, unless they are spawned again by
    their key."""
    for stage in stages:
        tx.run("update attempts set superseded = 1 where job_id = ? and stage = ?", (job_id, stage))
        tx.run(
            "update jobs set superseded = 1 where parent_id = ? and spawn_stage = ? and superseded is null",
            (job_id, stage),
        )
    # A finish of an earlier stage passed these, too; of it there stays that its own stage has passed.
    tx.run(
        "update attempts set superseded = 0 where job_id = ? and outcome = 'finish' and superseded is null",
        (job_id,),
    )
    tx.run(
        "delete from children_left where parent_id = ?1 and bad = 1 and child_id in "
        "(select id from jobs where parent_id = ?1 and superseded = 1)",
        (job_id,),
    )
