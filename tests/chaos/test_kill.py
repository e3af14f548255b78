"""Kill -9 at random points, in a loop: workers, supervisor, guard, and all of them at once.

After each blow nothing of the dead is left, and in the end: no job lost, no recorded stage run
again, every lease accounted for. ``make chaos`` makes the loop long, ``SPINNEY_CHAOS_ROUNDS`` as long
as you like; ``SPINNEY_CHAOS_SEED`` repeats one.
"""

import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable

import pytest
from node_fixtures import Cluster, Node, cluster, lines

from long_tests import LONG, long_alone
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.states import State
from spinney.node.instance import INSTANCE_VARIABLE
from waiting import until

__all__ = ["cluster"]

ROUNDS = int(os.environ.get("SPINNEY_CHAOS_ROUNDS", "100" if LONG else "1"))
SEED = int(os.environ.get("SPINNEY_CHAOS_SEED", str(random.randrange(10**6))))
STAGES = ["first", "second", "third"]
Blow = Callable[[Node, random.Random], None]


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _a_worker(node: Node, draw: random.Random) -> None:
    if workers := node.workers():
        _kill([draw.choice(workers)])


def _the_supervisor(node: Node, draw: random.Random) -> None:
    _kill([node.supervisor()])


def _the_guard(node: Node, draw: random.Random) -> None:
    _kill([node.pid])


def _all_at_once(node: Node, draw: random.Random) -> None:
    supervisor = node.supervisor()
    _kill([node.pid, supervisor, *node.workers()])


def _is_gone(cluster: Cluster, node: Node) -> None:
    """Nothing of a node is left, when its guard or supervisor lived to see to it."""
    node.wait()
    until(lambda: not cluster.living(), f"nothing is left of {node.pid}")


def _successor_cleared_up(cluster: Cluster, dead: Node) -> None:
    mark = f"{INSTANCE_VARIABLE}={dead.name}.{dead.pid}."
    for pid in cluster.living():
        try:
            environment = open(f"/proc/{pid}/environ").read()  # noqa: SIM115, PTH123 - may be gone
        except OSError:
            continue
        assert mark not in environment, f"process {pid} outlived the start of a successor"


BLOWS: list[Blow] = [_a_worker, _the_supervisor, _the_guard, _all_at_once]


@pytest.mark.timeout(60 + 30 * ROUNDS * len(BLOWS))
@pytest.mark.parametrize(
    "blows",
    [pytest.param(BLOWS, id="each in turn")]
    + [pytest.param([blow], id=blow.__name__, marks=long_alone) for blow in BLOWS],
)
def test_nothing_is_lost_or_run_twice(cluster: Cluster, blows: list[Blow]) -> None:
    print(f"SPINNEY_CHAOS_SEED={SEED}")
    draw = random.Random(f"{SEED}{blows[-1].__name__}{len(blows)}")
    # Given jobs of three stages, some of which leave programs that ignore TERM and detach themselves
    node = cluster.node(lease_period_s=60.0)
    ids = _stages(cluster, draw, 20)
    # When somebody is killed, again and again, and more comes
    for blow in blows * ROUNDS:
        ids += _stages(cluster, draw, 10)
        time.sleep(draw.uniform(0.0, 0.5))
        blow(node, draw)
        if blow is _a_worker:
            continue
        if blow is _all_at_once:
            node.wait()
        else:
            _is_gone(cluster, node)
        dead, node = node, cluster.node(lease_period_s=60.0)
        _successor_cleared_up(cluster, dead)
    # Then every job completes, and the promises have been kept
    settled = cluster.settled(ids, deadline_s=60 + 20 * ROUNDS * len(blows))
    assert {j.state for j in settled} == {State.COMPLETED}
    node.stop()
    _no_recorded_stage_ran_again(cluster, ids)
    assert not cluster.living()
    assert not cluster.store.nodes(), "a node that has left owns a lease, or never left"


def _stages(cluster: Cluster, draw: random.Random, count: int) -> list[int]:
    log, stubborn = str(cluster.file("log")), str(cluster.file("stubborn"))
    return cluster.submit(
        "stages",
        *(
            {"log": log, "seconds": draw.choice([0.0, 0.0, 0.01, 0.05]), "stubborn": stubborn}
            for _ in range(count)
        ),
    )


def _no_recorded_stage_ran_again(cluster: Cluster, ids: list[int]) -> None:
    noted: dict[tuple[int, str], list[int]] = defaultdict(list)
    for line in lines(cluster.file("log")):
        job_id, stage, fence = line.split()
        noted[(int(job_id), stage)].append(int(fence))
    for job_id in ids:
        history = cluster.attempts(job_id)
        passed = [a for a in history if a.outcome in PASSED]
        assert [a.stage for a in passed] == STAGES
        for attempt in passed:
            ran = noted[(job_id, attempt.stage)]
            assert max(ran) == attempt.fence, f"job {job_id} ran {attempt.stage} again after it was recorded"
            assert len(ran) == len(set(ran)), "one lease ran twice"
        assert {a.outcome for a in history} <= {*PASSED, Outcome.LOST, Outcome.DIED}
