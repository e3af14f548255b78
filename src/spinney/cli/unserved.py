"""Why a pending job does not start, when no node is there that could run it."""

from collections.abc import Callable, Iterable

from spinney.cli import showing
from spinney.model.jobs import Job, NodeInfo
from spinney.model.states import State


def teller(nodes: Iterable[NodeInfo]) -> Callable[[Job], str]:
    """What tells of each job what there is to say, with what these nodes can run in view."""
    served = {name for node in nodes if node.state == "active" for name in node.types}

    def tell(job: Job) -> str:
        said = showing.saying(job)
        if said or job.state is not State.PENDING or job.type in served:
            return said
        if not served:
            return "no node is running; start one with 'spinney node'"
        return f"no running node knows the type {job.type!r}; start one whose application has it"

    return tell
