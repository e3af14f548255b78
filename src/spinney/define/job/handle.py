"""The handle that a stage gets: ``params``, ``data``, ``folder``, ``spawn``, ``submit``, ``lock`` …

Its requests to the engine are described in ``spinney.define.job.port``.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Never, Protocol, SupportsFloat, TypeVar, final

import orjson

from spinney.define.job.data import Data, Relative, folder_of
from spinney.define.job.log import stage_logger
from spinney.define.job.options import Options, to_json
from spinney.define.job.port import Assignment, Port
from spinney.define.job.products import Products
from spinney.define.params.redaction import Redactor
from spinney.define.params.schema import Check, checked_text, schema_checker
from spinney.define.params.validation_errors import require_named
from spinney.model.attempts.signals import Signal
from spinney.model.errors import BadParameters, UsageError
from spinney.model.outcomes import Outcome
from spinney.model.settings.capacities import require_amount
from spinney.model.states import State
from spinney.model.types import require_priority
from spinney.model.values import names
from spinney.model.values.products import SUMMARY_CHARS, summary_entry
from spinney.tracing.traceparents import of_attempt

__all__ = ["Assignment", "Cancelled", "Child", "Job", "LockTaken", "Port", "Submittable"]

_CHUNK = 1000
"""How many jobs one request has: their rows are hidden until the stage passes, so that a long list may be sent in
several requests."""
_CHUNK_CHARS = 4 * 2**20
"""How many characters of parameters one request has, about: a character takes up to four bytes of a message."""
_CHILDREN_PAGE = 1000
"""How many subjobs one request reads at most; fewer when their parameters are long."""


class Child(NamedTuple):
    """A direct subjob, as it was when it was read. ``params`` are its parameters as JSON values. The defaults are for
    tests, which make subjobs themselves."""

    id: int
    type: str
    state: State
    stage: str | None = None
    code: int | None = None
    message: str | None = None
    warnings: int = 0
    params: Any = {}  # noqa: RUF012 - never changed: ports copy it


class Submittable(Protocol):
    """A job type that may be spawned or submitted, bare or with options."""

    @property
    def name(self) -> str: ...
    @property
    def submit_options(self) -> Options: ...
    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of its parameters."""

    @property
    def generated_names(self) -> bool:
        """Whether the names of data that its jobs write end in ``_``."""

    def texts(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Check the parameters; return them as JSON texts."""


_NO_KINDS: Mapping[str, Submittable] = MappingProxyType({})

SubmittableT = TypeVar("SubmittableT", bound=Submittable)


def submittable(kind: SubmittableT) -> SubmittableT:
    """Return the job type. Raises UsageError for anything else, such as a function without a decorator."""
    if hasattr(kind, "submit_options"):
        return kind
    name = getattr(kind, "__name__", repr(kind))
    raise UsageError(
        f"{name:.80} is no job type; make the function one with @app.job, or give the name of a type as text"
    )


@final
class LockTaken(Signal):
    """Another job has the lock: the stage ends here, and starts again when the lock is free."""

    outcome = Outcome.LOCKED

    def __init__(self, lock: str, amount: int = 1, capacity: int | None = None) -> None:
        super().__init__(f"waits for {'' if amount == 1 else f'{amount} of '}the lock {lock!r}")
        self.lock = lock
        self.lock_request = None if (amount, capacity) == (1, None) else (amount, capacity)
        """The amount and the capacity; None: an amount of 1, and no capacity."""


@final
class Cancelled(Signal):
    """Cancellation of this job was requested, and its stage has ended because of it."""

    outcome = Outcome.CANCELLED


@final
class Job:
    """The handle by which an attempt uses its job. The engine creates it, never a user."""

    __slots__ = ("_assignment", "_folder", "_kinds", "_params", "_port", "_results", "folder_requested")

    def __init__(
        self, assignment: Assignment, port: Port, kinds: Mapping[str, Submittable] = _NO_KINDS
    ) -> None:
        """``kinds``: the application's job types by name."""
        self._assignment, self._port, self._kinds = assignment, port, kinds
        self._params: Mapping[str, Any] | None = None
        self._results: Mapping[str, Any] | None = None
        self._folder: Path | None = None
        self.folder_requested = False
        """Whether this attempt has used its folder; if so, its files are synced."""

    # --- properties -----------------------------------------------------------------------

    @property
    def id(self) -> int:
        """Return the id that the store gave the job: positive, unique in the store, and the same in all its
        attempts."""
        return self._assignment.job_id

    @property
    def type(self) -> str:
        """Return the name of its job type."""
        return self._assignment.type

    @property
    def stage(self) -> str:
        """Return the name of the stage that runs."""
        return self._assignment.stage

    @property
    def attempt(self) -> int:
        """Return the number of the attempt; 1 for the first one of this stage."""
        return self._assignment.attempt

    @property
    def fence(self) -> int:
        """Return a number that only grows from attempt to attempt; pass it to systems that must refuse late writes."""
        return self._assignment.fence

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the parameters as they were stored, as JSON values."""
        if self._params is None:
            self._params = MappingProxyType(orjson.loads(self._assignment.params))
        return self._params

    @property
    def parent(self) -> Relative | None:
        """Return the job that spawned this one; None for a root."""
        parent_id = self._assignment.parent_id
        return None if parent_id is None else self._relative(parent_id)

    @property
    def root(self) -> Relative:
        """Return the root of the tree; it is this job when it has no parent."""
        return self._relative(self._assignment.root_id)

    def _relative(self, job_id: int) -> Relative:
        return Relative(job_id, self._port, self._assignment, generated=self._generated)

    @property
    def _generated(self) -> bool:
        kind = self._kinds.get(self._assignment.type)
        return kind is not None and kind.generated_names

    @property
    def traceparent(self) -> str | None:
        """Return the ``traceparent`` (W3C Trace Context) of the span of this attempt, to be sent with requests to other
        systems; None when the job was not submitted in a trace. OpenTelemetry's current span is it, too."""
        trace = self._assignment.trace
        return None if trace is None else of_attempt(trace, self.fence)

    # --- data and folder --------------------------------------------------------------------

    @property
    def data(self) -> Data:
        """Return the job's small named values, which last over stages and attempts."""
        return Data(self._port, self.id, generated=self._generated)

    @property
    def folder(self) -> Path:
        """Return the job's own folder, which is made when it is first used; it lasts over stages and attempts."""
        self.folder_requested = True
        if self._folder is None:
            root = self._assignment.folder_root
            self._folder = folder_of(root, self.id, is_marked=self._assignment.has_marked_root)
        return self._folder

    @property
    def results(self) -> Mapping[str, Any]:
        """Return the results of earlier stages, by stage; those that returned None have no entry."""
        if self._results is None:
            early = self._assignment.results
            self._results = MappingProxyType(
                self._port.ask("results") if early is None else orjson.loads(early)
            )
        return self._results

    @property
    def products(self) -> Products:
        """Return the products of the job's tree: ``job.products.add("report.pdf", "The report")``. They are collected
        at the root, and shown on its page, by ``spinney show`` and in reports. Secret parameters of this job are
        redacted in what it adds."""
        root_data = self._relative(self._assignment.root_id).data
        return Products(self.id, root_data, lambda: self.folder, self._without_secrets)

    def summary(self, text: str) -> None:
        """Say what this job has done, in up to 10,000 characters: it is collected at the root, as products are, and
        replaces an earlier summary of this job. Secret parameters of this job are redacted in it. Raises BadParameters
        for a longer text."""
        if not isinstance(text, str) or len(text) > SUMMARY_CHARS:
            raise BadParameters(
                f"a summary is a text of up to {SUMMARY_CHARS} characters; leave more in a product"
            )
        self._relative(self._assignment.root_id).data[summary_entry(self.id)] = self._without_secrets(text)

    def _without_secrets(self, text: str) -> str:
        """Return a text that is kept at the root without this job's secrets. They are redacted before they are stored:
        at the root nobody knows the secrets of the jobs below it."""
        kind = self._kinds.get(self._assignment.type)
        return text if kind is None else Redactor.for_params(kind.schema, self.params).text(text)

    # --- subjobs --------------------------------------------------------------------------

    def spawn(self, kind: Submittable | str, /, *unnamed: Never, **params: Any) -> int:
        """Spawn one subjob; return its id.

        It is created in the transaction that records this stage as passed, and not at all when the stage fails. With a
        key (``job.spawn(kind.options(key="a"), …)``) it is created at once, and the same key always means the same
        subjob. Raises DuplicateKey when a subjob of another type has the key."""
        require_named(unnamed)
        return self.spawn_many(kind, [params])[0]

    def spawn_many(
        self, kind: Submittable | str, rows: Iterable[Mapping[str, Any]], *, keys: Iterable[str] | None = None
    ) -> list[int]:
        """Spawn a subjob for each dict of parameters; return their ids in order. ``keys``: one for each. All
        parameters are checked before the first is sent. A long list is sent in several requests; the subjobs
        without keys still appear together, when the stage has passed."""
        ids: list[int] = []
        for part in self._parts(kind, rows, keys):
            ids += self._port.ask("spawn", submissions=[part])
        return ids

    def children(self) -> Iterator[Child]:
        """Yield the direct subjobs by id, without those that are deleted or superseded. They are read in
        pages as the iteration goes on, so that their states may be of different moments."""
        after = 0
        while page := self._port.ask("children", after=after, limit=_CHILDREN_PAGE):
            for id_, type_, state, *rest in page:
                yield Child(id_, type_, State(state), *rest)
            after = page[-1][0]

    # --- independent jobs ----------------------------------------------------------------

    def submit(self, kind: Submittable | str, /, *unnamed: Never, **params: Any) -> int:
        """Submit an independent job; return its id. It is no subjob: this job does not wait for it, nor fail or regrow
        with it, and cancelling or deleting this tree does not affect it.

        It is created in the transaction that records this stage as passed, and not at all when the stage fails. With a
        key (``job.submit(kind.options(key="mail-7", forever=True), …)``) it is created at once, whatever becomes of
        this attempt, and the same key means the same job as long as that job has the key: until it settles, or with
        ``forever=True`` until it is deleted; if retention has removed that job, only its id is left, which no other job
        can need, and whose type is not compared. So a key that has to hold over several attempts needs
        ``forever=True``.

        By default it has the submitter and the collection of this job; queue, priority and share are those of a job
        that is submitted from outside. Raises DuplicateKey when a job of another type has the key."""
        require_named(unnamed)
        return self.submit_many(kind, [params])[0]

    def submit_many(
        self, kind: Submittable | str, rows: Iterable[Mapping[str, Any]], *, keys: Iterable[str] | None = None
    ) -> list[int]:
        """Submit an independent job for each dict of parameters; return their ids in order. ``keys``: one for each.

        They are in one share, as the jobs of one submission are."""
        ids: list[int] = []
        for part in self._parts(kind, rows, keys):
            ids += self._port.ask("submit", submissions=[part], beside=ids[0] if ids else None)
        return ids

    # --- requests while it runs --------------------------------------------------------------------

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Report the progress of this attempt: a fraction from 0.0 to 1.0, and a message. What UTF-8 cannot encode in
        it, as in the name of a file that is no text, becomes a question mark. Raises UsageError for a fraction
        outside, and for a message that is no text."""
        number = _as_float(fraction)
        if number is None or not 0 <= number <= 1:
            # For other values only the type is shown: a secret that is cut off could not be recognised and redacted.
            shown = (
                f"{fraction!r}" if isinstance(fraction, float | int) else f"of type {type(fraction).__name__}"
            )
            raise UsageError(f"progress takes a fraction from 0.0 to 1.0, such as done / total, not {shown}")
        if not isinstance(message, str | None):
            raise UsageError(
                f"progress takes a message as text or none, not of type {type(message).__name__}"
            )
        if message is not None:
            message = message.encode("utf-8", "replace").decode()
        self._port.ask("progress", fraction=number, message=message)

    def lock(
        self, name: str, until: str = "attempt", *, amount: int = 1, capacity: int | None = None
    ) -> None:
        """Take a lock without waiting; it is kept until this attempt ends, or (``until="job"``) the job settles.

        When another job has it, the stage ends here and starts again when the lock is free, without using an attempt:
        take locks before doing what must not be done twice. A stage that would rather do without catches ``LockTaken``
        (``spinney.jobs``); nothing waits for the lock then.

            job.lock("disk:work", until="job", amount=bytes_needed, capacity=bytes_free)

        ``amount``: how much of the lock's capacity is taken; 0 is a place that blocks no other job. When the lock is
        taken again, the job's amount becomes the new one: a smaller one at any time, a larger one when there is room.
        ``capacity``: the capacity for this request, where it is measured and not declared (``app.lock``); an operator's
        takes precedence. A job that waits for a lock gets it before jobs that come later, however little they need.

        Deadlocks of jobs that keep locks and wait for each other's are detected: the youngest job fails, or restarts,
        by its type's ``on_deadlock``.

        Raises UsageError when the amount exceeds the capacity and no other job has any of it.
        """
        if until not in ("attempt", "job"):
            raise UsageError(f"a lock is kept until='attempt' or until='job', not {until!r}")
        require_amount(amount)
        if capacity is not None:
            require_amount(capacity)
        granted = self._port.ask(
            "take_lock", name=names.lock_name(name), until=until, amount=amount, capacity=capacity
        )
        if not granted:
            raise LockTaken(name, amount, capacity)

    def prioritise(self, priority: int) -> None:
        """Set another priority for this job, 0 (first) to 99 (last): it applies from the next claim on (later stages,
        other attempts), and to subjobs spawned from now on. It remains whatever becomes of this attempt; an operator
        may change it later."""
        require_priority(priority)
        self._port.ask("prioritise", priority=priority)

    @property
    def cancelled(self) -> bool:
        """Return whether this attempt should end: cancellation of its job was requested, or, in a ``thread`` or
        ``async`` stage, its time limit is over or its worker ends. It is cheap enough for every turn of a loop. A stage
        that returns after a cancel request has passed; to end it unfinished, raise, or call ``check_cancelled``."""
        return self._port.cancelled()

    def check_cancelled(self) -> None:
        """End this stage here, unfinished, if ``cancelled`` is true. Raises Cancelled, which the stage must not
        catch."""
        if self._port.cancelled():
            raise Cancelled("ended by its own stage, as was requested")

    @property
    def log(self) -> logging.Logger:
        """Return a logger that writes to stderr, which becomes this attempt's log."""
        return stage_logger(self.type, self.stage)

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.type}.{self.stage}, attempt {self.attempt}>"

    def _parts(
        self, kind: Submittable | str, rows: Iterable[Mapping[str, Any]], keys: Iterable[str] | None
    ) -> Iterator[dict[str, Any]]:
        """Split a submission of many jobs into requests. It is built as a whole first, so that keys are counted and
        checked before the first request is sent."""
        job_type = self._kind(kind)
        return _chunks(to_json(job_type.submit_options.submission(job_type.name, job_type.texts(rows), keys)))

    def _kind(self, kind: Submittable | str) -> Submittable:
        if not isinstance(kind, str):
            return submittable(kind)
        if kind in self._kinds:
            return self._kinds[kind]
        schema = self._port.ask("type_schema", type=kind)
        return ForeignType(kind, schema, schema_checker(kind, schema), Options())


def _as_float(fraction: object) -> float | None:
    """Return a number as a float; None: it is none, or has no float, such as a whole number of 400 digits."""
    if not isinstance(fraction, SupportsFloat):
        return None
    try:
        return float(fraction)
    except (OverflowError, TypeError, ValueError):
        return None


class ForeignType:
    """A job type of another application, as its nodes registered it in the store."""

    generated_names = False

    def __init__(self, name: str, schema: Mapping[str, Any], check: Check, options: Options) -> None:
        self.name, self.schema, self._check, self.submit_options = name, schema, check, options

    def texts(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Check the parameters; return them as JSON texts."""
        return [checked_text(self.name, self.schema, row, self._check) for row in rows]


def _chunks(submission: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Split a submission, given as JSON values, into parts that are each short enough for one message and one
    transaction, in their order."""
    texts, keys = submission["params"], submission.get("keys", ())
    start = 0
    while start < len(texts):
        end = _end_of_chunk(texts, start)
        some_keys = list(keys[start:end])
        yield {**submission, "params": list(texts[start:end])} | ({"keys": some_keys} if some_keys else {})
        start = end


def _end_of_chunk(texts: Sequence[str], start: int) -> int:
    """Return the index after the last text of the chunk that begins at ``start``, where there is a text."""
    last = min(start + _CHUNK, len(texts))
    sums = accumulate(len(text) for text in islice(texts, start, last))
    return next((end for end, chars in enumerate(sums, start + 1) if chars >= _CHUNK_CHARS), last)
