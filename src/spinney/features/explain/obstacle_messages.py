"""The message column of job lists: why a pending job does not start, when there is no node that could run it, and
that the node of a running job gives no sign of life.

Jobs of one queue, type, stage and node share an obstacle, so that a list of any length takes one query.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from spinney.model.jobs import Job
from spinney.model.states import NEEDS_NODE, State
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.commands import Performs
    from spinney.features.explain.commands import Obstacle

NO_NODE = "no node is running; start one with 'spinney node'"
LANES_MAX = 1_000
"""Jobs of more queues, stages and nodes than this have no message."""


def obstacle_messages(performer: "Performs", jobs: Collection[Job]) -> Callable[[Job], str]:
    """Return a function from each of these jobs to its message, which is empty when there is none to show.

    One query is made now, for one job of each queue, type, stage and node. A pending job that has a message of its
    own keeps it. The own message of a job that a node has is replaced, because it was true when the node was last
    heard of.
    """
    lanes: dict[object, int] = {}
    for job in jobs:
        if job.state in NEEDS_NODE and not _keeps_its_own(job):
            lanes.setdefault(_lane(job), job.id)
    obstacles: dict[int, Obstacle] = {}
    if lanes:
        from spinney.features.explain.commands import ListObstacles

        named = list(lanes.values())[:LANES_MAX]
        obstacles = {item.job_id: item for item in performer.do(ListObstacles(jobs=named)).items}

    def message(job: Job) -> str:
        obstacle = obstacles.get(lanes.get(_lane(job), 0))
        if obstacle is None or _keeps_its_own(job):
            return display.state_message(job)
        return _sentence(obstacle, job)

    return message


def _keeps_its_own(job: Job) -> bool:
    return job.state is State.PENDING and bool(display.state_message(job))


def _lane(job: Job) -> object:
    """Return what jobs with the same obstacle have in common."""
    return job.state, job.queue, job.type, job.stage, None if job.state is State.PENDING else job.node


def _sentence(obstacle: "Obstacle", job: Job) -> str:
    """Return the message for an obstacle, with what to do about it."""
    match obstacle.cause:
        case "no_external_worker":
            return f"there is no external worker that claims external stage {job.stage!r}"
        case "no_node":
            return NO_NODE
        case "unknown_type":
            return f"no running node knows the type {job.type!r}; start one whose application has it"
        case "unknown_stage":
            return f"no running node has code with stage {job.stage!r} of {job.type!r}; start one that has it"
        case "queue_not_served":
            return f"no running node may serve queue {job.queue}; 'spinney explain {job.id}' says why"
        case "drained":
            return f"node {obstacle.node} is drained; 'spinney resume {obstacle.node}' lets it go on"
        case "silent":
            return f"node {obstacle.node} gives no sign of life; 'spinney explain {job.id}' says since when"
