"""The queries about jobs that do not run: why one does not, and which of many cannot start or may have stopped.

``ExplainJob`` answers exactly for one job; ``ListObstacles`` answers for a page of a list, from the nodes alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import PAGE_MAX, BoundedNumber, JobNumber
from spinney.features.explain.explanation import Explanation
from spinney.features.explain.service import Explainer
from spinney.model.jobs import Filter, Job
from spinney.model.queue_selection import may_serve
from spinney.model.states import NEEDS_NODE, State
from spinney.model.types import Isolation
from spinney.model.values.lists import All
from spinney.service.queries import Queries
from spinney.service.service import Service
from spinney.store.parts import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why a pending job cannot start anywhere, or a running one may have stopped."""

    job_id: int
    """The job that cannot start, or may have stopped."""
    cause: Literal[
        "no_node",
        "unknown_type",
        "unknown_stage",
        "queue_not_served",
        "drained",
        "silent",
        "no_external_worker",
    ]
    """Why it cannot start: no node is running, none knows its type, or its stage, none may serve its queue, all that
    could run it are drained, or give no sign of life, or no external worker claims its stage. A claimed or running job
    has only ``silent``: the node that has it gives no sign of life."""
    node: str | None = None
    """With ``drained`` and ``silent``, a node that could run it, or the one that has it."""


class ExplainJob(Command, route="GET /jobs/{job}/explain"):
    """Say why a job is not running.

    One exact sentence, a word for programs (`cause`), and when the job is expected to start if that can be known."""

    job: JobNumber

    def run(self, service: Service) -> Explanation:
        return service.part(Explainer).explain(self.job)


class ListObstacles(Command, route="GET /jobs/obstacles"):
    """List pending jobs that nobody can run, and running jobs whose node gives no sign of life.

    It lists those of the named jobs that are pending and that no node or external worker could start, with the reason,
    and those that are claimed or running and whose node is silent or dead. Jobs with the same state, queue, type, stage
    and node have the same obstacle.
    """

    jobs: Annotated[
        list[BoundedNumber],
        Field(min_length=1, max_length=PAGE_MAX, description="The number of a job; may be repeated."),
    ]

    def run(self, service: Service) -> All[Obstacle]:
        open_jobs = Filter(ids=tuple(self.jobs), states=tuple(NEEDS_NODE))
        jobs = service.part(Queries).jobs(open_jobs, limit=PAGE_MAX)
        return All(items=list(filter(None, map(_obstacles(service.store, service.clock()), jobs))))


def _obstacles(store: Store, now_us: int) -> Callable[[Job], Obstacle | None]:
    """Return a function that finds the obstacle of a pending, claimed or running job, or None, as nodes and external
    workers are now.

    Nodes, external workers and types are read once. It asks neither for holds nor limits nor homes: those
    come and go, and only ``ExplainJob`` tells them.
    """
    present = [node for node in store.nodes() if node.state != "left"]
    active = [node for node in present if node.state == "active"]
    nodes = [node for node in active if not node.is_external_worker]
    claimed = {lane for node in active if node.is_external_worker and node.claims for lane in node.types}
    external = {
        f"{spec.name}/{stage.name}"
        for spec in store.types().values()
        for stage in spec.stages
        if stage.isolation is Isolation.EXTERNAL
    }

    # Two nodes have one name while one takes over from the other: a sign of life of either is one of the name.
    alive = {node.name for node in present if node.state_shown(now_us) not in ("silent", "dead")}
    silent = {node.name for node in present if not node.is_external_worker} - alive

    def obstacle(job: Job) -> Obstacle | None:
        if job.state is not State.PENDING:
            is_silent = job.node in silent
            return Obstacle(job_id=job.id, cause="silent", node=job.node) if is_silent else None
        lane = f"{job.type}/{job.stage}"  # as external workers name it
        if lane in external:
            return None if lane in claimed else Obstacle(job_id=job.id, cause="no_external_worker")
        if not any(node.types for node in nodes):
            return Obstacle(job_id=job.id, cause="no_node")
        knowing = [node for node in nodes if node.knows(job.type, job.stage)]
        if not knowing:
            is_known = any(job.type in node.types for node in nodes)
            return Obstacle(job_id=job.id, cause="unknown_stage" if is_known else "unknown_type")
        queue = store.queue_admin.in_force(job.queue)
        able = [node for node in knowing if may_serve(queue, node.name, node.serves)]
        if not able:
            return Obstacle(job_id=job.id, cause="queue_not_served")
        if not any(node.claims for node in able):
            return Obstacle(job_id=job.id, cause="drained", node=able[0].name)
        claiming = [node for node in able if node.claims]
        if all(node.name in silent for node in claiming):
            return Obstacle(job_id=job.id, cause="silent", node=claiming[0].name)
        return None

    return obstacle
