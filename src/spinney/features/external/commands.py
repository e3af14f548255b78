"""What an external worker asks for: to join, to claim attempts of external stages, to keep them alive and to settle
them (docs/external.md). What an attempt prints is a route by hand (``api``), since it goes to a file.

The job types that a caller may claim are a right of its own (``Rights.external``), so that a viewer may be an external
worker and an admin may not.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spinney.commands import Command
from spinney.commands.fields import JobNumber, Text, Word
from spinney.define.job.data import data_name
from spinney.define.job.options import Options
from spinney.define.params.duration_field import DurationField
from spinney.define.params.values import to_text
from spinney.features.external import claim_rights
from spinney.features.external.service import External
from spinney.model.access import Role
from spinney.model.errors import Refused, UsageError
from spinney.model.external import CLAIM_MAX, LEASE_S, ClaimedWork, ExternalWorker, HeartbeatReply, Settlement
from spinney.model.fleet import SLOTS_MAX
from spinney.model.outcomes import Outcome
from spinney.model.values.lists import All
from spinney.model.values.texts import without_nul
from spinney.schemas import ExternalWorkerDetails, ListLength, LockResult, ReturnedJobs, SpawnedJobs
from spinney.service.service import Service
from spinney.service.submission_lines import submissions

FENCE_MAX = 2**62
"""The highest fence that a request may name."""
_LANES_MAX = 1_000
"""The most lanes of one external worker."""
_MESSAGE_MAX = 20_000
"""The most characters of a text in a settlement."""
SPAWN_MAX = 10_000
"""The most subjobs that one call creates: a transaction must stay short."""
_LONG_SPAWN = 100
"""From how many subjobs on a call counts as long."""

WorkerKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=50,
        description="The key of the external worker, as joining returned it.",
        examples=["12-1"],
    ),
]
AttemptFence = Annotated[
    int,
    Field(ge=1, le=FENCE_MAX, description="The attempt's fence, as the claim returned it.", examples=[41]),
]
Seen = Annotated[
    int,
    Field(
        ge=0,
        le=FENCE_MAX,
        examples=[0, 4711],
        description="The highest fence that the external worker has ever received; 0 when it has just joined.",
    ),
]
_LongText = Annotated[str, Field(max_length=_MESSAGE_MAX)]


class Lane(BaseModel):
    """A stage that an external worker runs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    type: Word = Field(description="The job type.", examples=["talk"])
    stage: Word = Field(description="An external stage of that job type.", examples=["listen"])


class ListExternalWorkers(Command, route="GET /external"):
    """List external workers.

    An operator without limits sees all that have joined, others only their own.
    """

    def run(self, service: Service) -> All[ExternalWorkerDetails]:
        return All(items=[_details(worker) for worker in service.part(External).all()])


class JoinExternalWorker(Command, route="POST /external", status=201):
    """Join as an external worker.

    It may run the external stages that its account's right `external` names, whatever the account's role. An external
    worker of the same account that has joined under this name is taken over: what it had begun counts as interrupted,
    and goes back at once."""

    name: Word = Field(
        description="The name that lists show; joining again under it takes over.", examples=["ear-1"]
    )
    lanes: list[Lane] = Field(
        min_length=1, max_length=_LANES_MAX, description="The stages that the external worker runs."
    )
    slots: int = Field(
        default=1, ge=1, le=SLOTS_MAX, description="How many attempts the external worker runs at once."
    )
    lease_s: Annotated[float, Field(ge=LEASE_S[0], le=LEASE_S[1]), DurationField()] = Field(
        default=60.0,
        description="How long the external worker may be silent before its attempts are taken back: seconds, or text "
        "such as `5m`.",
    )

    def run(self, service: Service) -> ExternalWorkerDetails:
        lanes = [(lane.type, lane.stage) for lane in self.lanes]
        return _details(service.part(External).join(self.name, lanes, slots=self.slots, lease_s=self.lease_s))


class _WorkerCommand(Command, route="POST /external/{worker}"):
    worker: WorkerKey


class LeaveExternalWorker(_WorkerCommand, route="DELETE /external/{worker}"):
    """Let an external worker leave.

    What the external worker still has goes back, without using up an attempt."""

    def run(self, service: Service) -> ReturnedJobs:
        return ReturnedJobs(jobs=service.part(External).leave(self.worker))


class ClaimAttempts(_WorkerCommand, route="POST /external/{worker}/claim"):
    """Claim attempts.

    Returns attempts for the external worker's free slots, in the order and within the limits that hold for
    nodes. Make one claim at a time: attempts of an earlier claim above `seen`, which the external worker has
    therefore not received, go back with this one.
    """

    seen: Seen
    limit: int = Field(
        default=1, ge=1, le=CLAIM_MAX, description="The maximum number of attempts in the answer."
    )

    def run(self, service: Service) -> ClaimedWork:
        return service.part(External).claim(self.worker, seen=self.seen, limit=self.limit)


class SendHeartbeat(_WorkerCommand, route="POST /external/{worker}/heartbeat"):
    """Send a heartbeat.

    Send one several times in a lease period, with the attempts that the external worker runs. The answer says
    which of them to cancel and which it has lost. An attempt up to `seen` that is not named goes back.
    """

    seen: Seen
    fences: list[Annotated[int, Field(ge=1, le=FENCE_MAX)]] = Field(
        max_length=SLOTS_MAX, description="The fences of all attempts that the external worker runs now."
    )

    def run(self, service: Service) -> HeartbeatReply:
        return service.part(External).heartbeat(self.worker, seen=self.seen, fences=self.fences)


class _AttemptCommand(_WorkerCommand, route="POST /external/{worker}/attempts/{job}/{fence}"):
    job: JobNumber
    fence: AttemptFence

    def _require_lease(self, service: Service) -> None:
        """Raise StaleFence unless the attempt is leased to this external worker."""
        service.part(External).attempt(self.worker, self.job, self.fence)


class SettleAttempt(_AttemptCommand, route="POST /external/{worker}/attempts/{job}/{fence}/settle"):
    """Settle an attempt.

    Records its outcome. The same request may be repeated when the answer got lost. 409 when the attempt has lost its
    lease: the job belongs to somebody else, and nothing was written."""

    outcome: Literal[
        "ok",
        "warning",
        "not_applicable",
        "finish",
        "error",
        "defer",
        "hold",
        "cancelled",
        "returned",
        "locked",
    ] = Field(
        description="How the attempt ended. `returned`: it is handed back and has not begun. `locked`: it could not "
        "get `lock`."
    )
    result: Any = Field(default=None, description="The value of a stage that passed, up to 64 kB of JSON.")
    message: _LongText | None = Field(
        default=None, description="A message of one line for people.", examples=["no sound"]
    )
    error: Mapping[Literal["type", "message", "traceback"], str] | None = Field(
        default=None, description="For `error`: its type, message and traceback."
    )
    retryable: bool = Field(default=True, description="For `error`: whether another attempt may succeed.")
    code: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="A status code of the external worker's own."
    )
    delay_s: Annotated[float, Field(ge=0), DurationField()] | None = Field(
        default=None,
        description="For `defer`: seconds, or text such as `5m`, until the stage is tried again.",
    )
    lane: bool = Field(
        default=False,
        description="For `defer`: all jobs of the stage sleep until then; after that, one of them tries whether the "
        "stage works again.",
    )
    lock: Word | None = Field(
        default=None, description="For `locked`: the lock that the attempt could not get."
    )

    def run(self, service: Service) -> None:
        settlement = Settlement(
            **{**self.model_dump(exclude={"worker", "job", "fence"}), "outcome": Outcome(self.outcome)}
        )
        service.part(External).settle(self.worker, self.job, self.fence, settlement)


class ReportProgress(_AttemptCommand, route="POST /external/{worker}/attempts/{job}/{fence}/progress"):
    """Report progress.

    Pages and lists show it while the attempt runs."""

    fraction: float = Field(
        ge=0, le=1, description="The progress of the attempt as a fraction from 0 to 1.", examples=[0.25]
    )
    message: Text | None = Field(
        default=None, description="A message of one line for people.", examples=["12 of 48 minutes"]
    )

    def run(self, service: Service) -> None:
        self._require_lease(service)
        service.store.progress(self.job, self.fence, self.fraction, without_nul(self.message))


class _DataCommand(_AttemptCommand, route="PUT /external/{worker}/attempts/{job}/{fence}/data"):
    name: Word = Field(description="The name of the entry.", examples=["words"])
    value: Any = Field(
        description="The value: any JSON of up to 64 kB; null removes the entry.", examples=[17]
    )
    of: Literal["job", "parent", "root"] = Field(
        default="job", description="Whose data to change: those of the job, its parent or its root."
    )

    def _entry(self) -> tuple[str, str]:
        """Return the name and the value as the store takes them."""
        return data_name(self.name), to_text(self.value, f"data[{self.name!r}]")

    def _target(self, service: Service) -> int:
        """Return the job whose data are meant. Raises Refused for a job without a parent."""
        self._require_lease(service)
        if self.of == "job":
            return self.job
        job = service.store.job(self.job)
        target = job.parent_id if self.of == "parent" else job.root_id
        if target is None:
            raise Refused(f"job {self.job} has no parent; keep it with the job itself")
        return target


class PutAttemptData(_DataCommand, route="PUT /external/{worker}/attempts/{job}/{fence}/data"):
    """Set an entry of a job's data.

    The entry belongs to the data of the job, its parent or its root. It stays, whatever the outcome of the
    attempt.
    """

    def run(self, service: Service) -> None:
        target, (name, text) = self._target(service), self._entry()
        service.store.put_data(self.job, self.fence, name, None if self.value is None else text, target)


class AppendAttemptData(_DataCommand, route="POST /external/{worker}/attempts/{job}/{fence}/data"):
    """Append to a list in a job's data.

    The list is created when it is missing. Many may append at the same time."""

    def run(self, service: Service) -> ListLength:
        target = self._target(service)
        return ListLength(length=service.store.append_data(self.job, self.fence, *self._entry(), target))


class SpawnSubjobs(
    _AttemptCommand,
    route="POST /external/{worker}/attempts/{job}/{fence}/spawn",
    status=201,
    role=Role.SUBMITTER,
    to="make subjobs",
):
    """Create subjobs.

    They exist once the attempt has passed, and never when it does not pass; those with a key exist at once."""

    jobs: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=SPAWN_MAX,
        description="The subjobs, each as a line of a submission: `type`, `params`, and any options (`key`, `queue`, "
        "`priority` …).",
        examples=[[{"type": "part", "params": {"n": 1}}]],
    )

    def is_long(self) -> bool:
        """Return whether the call creates so many subjobs that it takes more than a moment."""
        return len(self.jobs) > _LONG_SPAWN

    def run(self, service: Service) -> SpawnedJobs:
        """Create the subjobs. Raises Forbidden, and what ``Submitter.submit_lines`` raises."""
        self._require_lease(service)
        lines = [to_text(job, "a subjob").encode() for job in self.jobs]
        types = service.store.types()
        submitted = submissions(lines, types, None, Options(), _no_default)
        for submission in submitted:
            claim_rights.require_may_name(service, submission, types)
        ids = service.store.spawn(self.job, self.fence, submitted, now_us=service.clock())
        service.wake_nodes()
        return SpawnedJobs(ids=list(ids))


class TakeAttemptLock(_AttemptCommand, route="POST /external/{worker}/attempts/{job}/{fence}/lock"):
    """Take a lock.

    Never waits. An attempt that cannot continue without the lock is settled as `locked`, and its stage starts again
    when the lock is free."""

    name: Word = Field(description="The name of the lock.", examples=["receiver:SG-1"])
    until: Literal["attempt", "job"] = Field(
        default="attempt",
        description="How long the lock is kept: until the attempt ends, or until the job settles.",
    )
    amount: int = Field(
        default=1, ge=1, le=2**31 - 1, description="How much of the lock's capacity is taken."
    )

    def run(self, service: Service) -> LockResult:
        self._require_lease(service)
        taken = service.store.take_lock(
            self.job, self.fence, self.name, self.until, amount=self.amount, now_us=service.clock()
        )
        return LockResult(taken=taken)


def _no_default(queue: str) -> str:
    """Raise UsageError: a subjob must name its type itself. The queue has no default type here."""
    raise UsageError(
        f'a subjob names its type, also in queue {queue!r}; write {{"type": "…", "params": {{…}}}}'
    )


def _details(worker: ExternalWorker) -> ExternalWorkerDetails:
    """Return a worker as answers show it. It should send three heartbeats in each lease period."""
    return ExternalWorkerDetails(
        external_worker=worker.key,
        name=worker.name,
        owner=worker.owner,
        slots=worker.slots,
        lease_s=worker.lease_s,
        heartbeat_every_s=worker.lease_s / 3,
        lanes=[{"type": type_, "stage": stage} for type_, stage in worker.lanes],
    )
