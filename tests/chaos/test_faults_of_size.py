"""A tree of very many subjobs, whose nodes are killed while it is grown, worked off and reported."""

from collections.abc import Callable
from functools import partial

import pytest
from chaos_load import Grove, Harvest, quietly
from test_faults_of_nodes import kill

from long_tests import LONG, long_alone
from waiting import until

SUBJOBS = 100_000 if LONG else 600


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgresql", marks=long_alone)])
def test_a_big_tree_is_grown_worked_off_and_reported_once(
    plant: Callable[..., Grove], tell: Callable[[str, str, Harvest], None], store: str
) -> None:
    grove = plant(store)
    for name in ("oak", "elm") if LONG else ("oak",):
        grove.start(name, slots=2)
    (job_id,) = grove.submit([("tree", {"children": SUBJOBS, "seconds": 0.0})])
    # While it grows, and at a third and two thirds
    for done in (0, SUBJOBS // 3, 2 * SUBJOBS // 3) if LONG else (SUBJOBS // 3,):
        until(
            lambda done=done: _begun(grove, job_id) and _completed(grove) >= done,  # type: ignore[misc]
            f"{done} are done",
            deadline_s=600,
        )
        grove.tend()
        for node in grove.nodes.values():
            grove.blow(partial(kill, *node.processes()))
            node.wait()
        grove.tend()
        grove.rest(0.5)
    harvest = grove.harvest(settle_s=900)
    (result,) = (
        a.result for a in harvest.history.attempts if a.job_id == job_id and a.stage == "report" and a.result
    )
    assert result == SUBJOBS
    tell(f"tree of {SUBJOBS:,} subjobs, nodes killed", {"sqlite": "SQLite"}.get(store, "PostgreSQL"), harvest)


def _begun(grove: Grove, job_id: int) -> bool:
    grove.tend()
    job = quietly(lambda: grove.cluster.store.job(job_id))
    return job is not None and (job.stage != "grow" or job.fence is not None)


def _completed(grove: Grove) -> int:
    return (quietly(grove.cluster.counts) or {}).get("completed", 0)
