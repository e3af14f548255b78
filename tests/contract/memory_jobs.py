"""A job as the plain model sees it."""

from dataclasses import dataclass, field

from spinney.model.states import SETTLED, State


class Refusal(Exception):
    """The store must refuse this and change nothing."""


class NeedsChildren(Refusal):
    """The job could not go on without its failed children, which are to be retried in its place."""


@dataclass
class Held:
    """A lease as the model sees it."""

    fence: int
    node: int
    slot: int
    claimed_us: int
    started: bool = False


@dataclass
class ModelJob:
    id: int
    type: str
    parent: int | None
    queue: str
    priority: int
    needs: set[int]
    at_us: int | None
    stage: str | None
    state: State = State.WAITING
    """Claimed and running are told from ``lease``; while there is one, this is PENDING."""
    waits: str | None = None
    passed: set[str] = field(default_factory=set)
    finished: bool = False
    attempts: int = 0
    interruptions: int = 0
    wake_us: int | None = None
    lease: Held | None = None
    ran_fence: int = 0
    """The fence of its last attempt that began."""
    because: str | None = None
    """``children`` or ``needs`` when it failed by no stage of its own."""
    spawn_stage: str | None = None
    superseded: bool = False
    lingers: bool = False
    """It was superseded while it was open, and its parent waits until it has settled."""
    cancel_requested: bool = False
    tree_wish: bool = False
    key: str | None = None
    forever: bool = False
    child_key: str | None = None
    """The key with which its parent has spawned it."""
    place: int | None = None
    """What its lock is named after."""
    keeps: bool = False
    """It has its lock until it settles."""
    unborn: list["ModelJob"] = field(default_factory=list)
    unsent: list["ModelJob"] = field(default_factory=list)
    """Jobs of their own that its attempt has submitted."""

    @property
    def shown(self) -> State:
        if self.lease is None:
            return self.state
        return State.RUNNING if self.lease.started else State.CLAIMED

    @property
    def open(self) -> bool:
        return self.state not in SETTLED
