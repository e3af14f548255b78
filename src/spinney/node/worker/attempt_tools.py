"""What both kinds of workers need for their attempts."""

from dataclasses import dataclass

from spinney.node.worker.failure_frames import FailureFrames
from spinney.node.worker.stage_runners import StageRunners
from spinney.node.workers.boundaries import BoundaryWriter
from spinney.node.workers.shared_page import SharedPage
from spinney.node.workers.stack_dump import StackDump


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTools:
    """What a worker gets at its start, made of its ``WorkerStartup`` and its application."""

    page: SharedPage
    """Shows which attempts run."""
    marker: BoundaryWriter
    """Sets the marks in the worker's output."""
    stages: StageRunners
    frames: FailureFrames
    stacks: StackDump
    folder_root: str
    """The directory below which jobs have their folders."""
