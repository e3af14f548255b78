"""A batch of 100,000 pending jobs held and released, and what that costs a node beside it.

The batch is a tree with a job for each leaf. Beside it a node drains jobs of another type as fast as it can, of
which there are enough from the beginning, so that nothing but the sweep comes and goes. Its pace is counted by
what it completes while the hold (the release) lasts, against as long a time just before.

The other case has a node that serves both, and the batch is the more urgent of the two: it runs until it is
held. What the claims then meet first are jobs that they may not give.
"""

import time
from collections.abc import Mapping, Sequence

from benchmarks.place import Site, site
from spinney.commands.control import Control
from spinney.features.holds.commands import LayHold, LiftHold, sweep_holds
from spinney.model.jobs import ClaimRequest, Filter, LaneRequest, NodeInfo, Record, SlotRequest, Submission
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from spinney.model.types import StageSpec, TypeSpec
from spinney.wakeup.local import wake_local_nodes

LEAVES = 100_000
BESIDE = 1_700_000
"""Jobs for the node: more than it can run in all that is measured."""
WARM_UP_S = 4.0
BEFORE_S = 4.0
CHUNK = 10_000


def hold_and_release() -> Mapping[str, float]:
    """Seconds of each, and the node's pace meanwhile as a share of its pace before."""
    with site() as here:
        here.store.register([TypeSpec(name="leaf", stages=(StageSpec(name="run"),))], [])
        top = tree(here, "leaf")
        _submit(here, "noop", BESIDE, '{"text":"x"}')
        return _measured(here, top, "")


def hold_what_is_next() -> Mapping[str, float]:
    """The same on a node that serves both types, one millisecond a job."""
    with site() as here:
        top = tree(here, "nap", params='{"seconds":0.001}', priority=10)
        _submit(here, "nap", 100_000, '{"seconds":0.001}')
        return _measured(here, top, "what is next: ")


def _measured(here: Site, top: int, case: str) -> dict[str, float]:
    figures: dict[str, float] = {}
    run_dir = here.folder / "bench.db.run"
    control = Control(
        store=here.store, clock=_now_us, wake_nodes=lambda: wake_local_nodes(run_dir), by="bench"
    )
    with here.node(slots=2):
        time.sleep(WARM_UP_S)
        for verb in ("hold", "release"):
            before_us = _now_us()
            time.sleep(BEFORE_S)
            begun_us = _now_us()
            if verb == "hold":
                hold = control.do(LayHold(scope=Scope.TREE, name=str(top), reason="a benchmark"))
                laid_us = _now_us()
            else:
                control.do(LiftHold(hold=hold.id))
            sweep_holds(control)
            ended_us = _now_us()
            if verb == "hold":
                _check_held(here, hold.id, top, laid_us)
            figures[f"{case}{verb}, s"] = (ended_us - begun_us) / 1e6
            figures[f"{case}pace beside the {verb}, of before"] = _pace(here, begun_us, ended_us) / _pace(
                here, before_us, begun_us
            )
            figures[f"{case}pace before the {verb}, jobs/s"] = _pace(here, before_us, begun_us)
    return figures


def _check_held(here: Site, hold_id: int, top: int, laid_us: int) -> None:
    """No figure for a hold that did not hold."""
    left = here.store.counts(Filter(root_id=top, states=(State.PENDING, State.HELD)))
    late = _count(here, "root_id = ? and started_us > ?", (top, laid_us + 250_000))
    if left.get(State.PENDING) or late or here.store.holds.held(hold_id) < LEAVES / 2:
        raise RuntimeError(f"the hold leaves {dict(left)}, and {late} jobs began after it: no figure")


def _pace(here: Site, from_us: int, until_us: int) -> float:
    """Jobs a second that were completed between these times."""
    count = _count(here, "settled_us > ? and settled_us <= ?", (from_us, until_us))
    if not count:
        raise RuntimeError("the node had nothing to do: no figure")
    return count / (until_us - from_us) * 1e6


def _count(here: Site, condition: str, args: Sequence[int]) -> int:
    with here.store.database.look() as tx:
        ((count,),) = tx.all(f"select count(*) from jobs where {condition}", args)
    return int(count)


def tree(here: Site, leaf: str, params: str = "{}", priority: int | None = None, leaves: int = LEAVES) -> int:
    """Return the top of a tree of so many pending leaves."""
    store = here.store
    store.register([TypeSpec(name="batch", stages=(StageSpec(name="expand"), StageSpec(name="merge")))], [])
    node = store.join(
        NodeInfo(
            id=0,
            name="birth",
            boot_id="",
            host="",
            pid=0,
            slots=1,
            state="active",
            beat=0,
            started_us=0,
            seen_us=0,
            version="",
            types=(),
        ),
        now_us=1,
    )
    (top,) = store.submit([Submission(type="batch")], now_us=1).ids
    want = ClaimRequest(
        node_id=node, slots=[SlotRequest(0, 1, 1e5, True)], lanes={("batch", "expand"): LaneRequest()}
    )
    (lease,) = store.flush_and_claim([], want, now_us=1).leases
    for _ in range(0, leaves, CHUNK):
        order = Submission(type=leaf, params=[params] * CHUNK, priority=priority)
        store.spawn(top, lease.fence, [order], now_us=1)
    store.flush_and_claim([Record(top, lease.fence, Outcome.OK, 1, 2)], None, now_us=2)
    while store.flush_and_claim([], None, now_us=2).wake_us is not None:
        pass  # one step of putting the leaves in place at a time
    store.update_node(node, state="left", now_us=2)
    return int(top)


def _submit(here: Site, type_: str, count: int, params: str) -> None:
    for _ in range(0, count, 10 * CHUNK):
        here.store.submit([Submission(type=type_, params=[params] * (10 * CHUNK))], now_us=1)


def _now_us() -> int:
    return time.time_ns() // 1000
