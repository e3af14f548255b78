"""Why a pending job does not start, when no node is there that could run it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from spinney.model.jobs import Job, NodeInfo
from spinney.model.queue_selection import may_serve
from spinney.model.states import State
from spinney.model.types import Isolation
from spinney.terminal import display

if TYPE_CHECKING:
    from spinney.store.contract import Store


def pending_reasons(store: "Store", jobs: Collection[Job]) -> Callable[[Job], str]:
    """What tells of each of these jobs what there is to say, with what the nodes can run in view."""
    there = [node for node in store.nodes() if node.state == "active"]
    active = [node for node in there if not node.is_external_worker]
    claimed = _external(store, there)
    served = {name for node in active for name in node.types}
    queues = {
        name: store.queue_admin.in_force(name) for name in {j.queue for j in jobs if j.state is State.PENDING}
    }

    def tell(job: Job) -> str:
        said = display.state_message(job)
        if said or job.state is not State.PENDING:
            return said
        lane = f"{job.type}/{job.stage}"
        if lane in claimed:
            return (
                said
                if claimed[lane]
                else f"no external worker is there that claims external stage {job.stage!r}"
            )
        if not served:
            return "no node is running; start one with 'spinney node'"
        if job.type not in served:
            return f"no running node knows the type {job.type!r}; start one whose application has it"
        knowing = [node for node in active if job.type in node.types]
        able = [node for node in knowing if may_serve(queues[job.queue], node.name, node.serves)]
        if not able:
            return f"no running node may serve queue {job.queue}; 'spinney explain {job.id}' says why"
        if not any(node.claims for node in able):
            return f"node {able[0].name} is drained; 'spinney resume {able[0].name}' lets it go on"
        return said

    return tell


def _external(store: "Store", there: Iterable[NodeInfo]) -> Mapping[str, bool]:
    """Of each external stage (as external workers name it) whether an external worker is there that claims it."""
    claimed = {
        lane
        for external_worker in there
        if external_worker.is_external_worker and external_worker.claims
        for lane in external_worker.types
    }
    return {
        lane: lane in claimed
        for spec in store.types().values()
        for stage in spec.stages
        if stage.isolation is Isolation.EXTERNAL and (lane := f"{spec.name}/{stage.name}")
    }
