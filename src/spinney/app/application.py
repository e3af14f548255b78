"""An application: its job types, queues and schedules, and the way to submit to its store.

    app = Spinney()

    @app.job
    def resize(picture: Path, width: int = 200) -> str: ...

    resize.submit(picture="cat.jpg")

Nodes load the same object by ``spinney.load_app("module:app")``. The store is opened when something is first submitted
or read, so that workers, which do neither, start fast."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, TypeVar, Unpack, overload

import orjson

from spinney.app.app_store import AppStore
from spinney.config import Settings
from spinney.define import stage_guard
from spinney.define.job.handle import ForeignType, Submittable, submittable
from spinney.define.job.options import Options
from spinney.define.jobtype.job_types import (
    ExternalJob,
    ExternalJobOptions,
    F,
    FunctionJob,
    JobOptions,
    JobType,
    Pipeline,
    ProgramJob,
    ProgramJobOptions,
    SubmittableType,
    TypeOptions,
)
from spinney.define.jobtype.polls import RowSource, poll_function
from spinney.define.params.schema import checker
from spinney.define.params.validation_errors import of_schedule, require_named
from spinney.model.access import Role
from spinney.model.errors import BadParameters, UnknownType, UsageError
from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import Schedule
from spinney.model.states import SETTLED
from spinney.model.submission import JOB_ID_MAX
from spinney.model.types import TypeSpec
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.model.values.hints import did_you_mean, listed, unknown
from spinney.model.values.limits import Limit
from spinney.model.values.times import now_us
from spinney.tracing import current

if TYPE_CHECKING:
    from spinney.model.jobs import Job as JobInfo
    from spinney.store.parts import Store
    from spinney.wakeup import Waker

TypeT = TypeVar("TypeT", bound=JobType)
_NO_OPTIONS = Options()
_LOOK_S = (0.002, 0.1)
"""How long ``wait`` sleeps between polls, in seconds: at first, and at most."""


class Spinney:
    """A registry of job types and queues, through which jobs are submitted to their store.

    ``store`` and ``folders`` take precedence over ``SPINNEY_STORE`` and ``spinney.toml`` (see ``spinney.config``) for
    what the code itself submits and reads; a node of another store refuses the application, or warns where both are on
    PostgreSQL.
    ``submit``: the role that may submit jobs of types that do not set it themselves; an application with commands of
    its own sets ``internal``. It is thread-safe."""

    def __init__(
        self,
        store: str | None = None,
        *,
        folders: str | Path | None = None,
        submit: str = Role.SUBMITTER.value,
    ) -> None:
        self.types: dict[str, JobType] = {}
        self.queues: list[QueueSpec] = []
        self.locks: list[LockCapacity] = []
        self.schedules: dict[str, Schedule] = {}
        self.named_store = store
        """The store that the code names; None: it names none."""
        self._submit = submit
        self._store = AppStore(store, folders)

    # --- declaring ------------------------------------------------------------------------

    @overload
    def job(self, function: F, /) -> FunctionJob[F]: ...
    @overload
    def job(self, /, **options: Unpack[JobOptions]) -> Callable[[F], FunctionJob[F]]: ...
    def job(
        self, function: F | None = None, /, **options: Unpack[JobOptions]
    ) -> FunctionJob[F] | Callable[[F], FunctionJob[F]]:
        """Make a function a job type of one stage: a decorator, bare or with options."""

        def declare(function: F) -> FunctionJob[F]:
            options.setdefault("submit", self._submit)
            return self._add(FunctionJob(function, self, options))

        return declare if function is None else declare(function)

    def pipeline(self, name: str, **options: Unpack[TypeOptions]) -> Pipeline:
        """Declare a job type of several stages; add them with ``@pipeline.stage`` in their order."""
        options.setdefault("submit", self._submit)
        return self._add(Pipeline(name, self, options))

    def program(self, name: str, argv: Sequence[str], **options: Unpack[ProgramJobOptions]) -> ProgramJob:
        """Make a program of any language a job type of one stage."""
        options.setdefault("submit", self._submit)
        return self._add(ProgramJob(name, argv, self, options))

    def external(self, name: str, **options: Unpack[ExternalJobOptions]) -> ExternalJob:
        """Declare a job type of one stage that external workers run; they are no nodes, and claim its jobs over the
        API."""
        options.setdefault("submit", self._submit)
        return self._add(ExternalJob(name, self, options))

    def queue(
        self,
        name: str,
        *,
        limit: Limit | None = None,
        order: str = "default",
        sharing: str | None = None,
        turn: int = 1,
        type: JobType | str | None = None,  # noqa: A002 - the word that people know
        pinned: Sequence[str] = (),
        barred: Sequence[str] = (),
    ) -> str:
        """Declare a queue; return its name, for ``queue=`` of stages and options.

        ``limit``: how many slots its jobs may occupy over all nodes, or which part of them: ``"50%"``, rounded up.
        ``sharing``: ``shares``, the next slot goes to the share that occupies the fewest; ``quota``, moreover no share
        may occupy so many that none is left for a newcomer; ``none``. ``turn``: with ``sharing="quota"``, how many jobs
        of one share may start in one turn; a share may hold as many slots however many shares there are.
        ``type``: the job type of submissions that name only the queue (``submit_to``). ``pinned``: the names of the
        only nodes that may serve it; ``barred``: of nodes that may not. Operators may change these settings at run
        time; then theirs are in force."""
        if any(q.name == name for q in self.queues):
            raise UsageError(f"the queue {name!r} is declared twice; keep one of the two")
        self.queues.append(
            QueueSpec(
                name=name,
                limit=limit,
                order=order,
                sharing=sharing,
                turn=turn,
                type=type.name if isinstance(type, JobType) else type,
                pinned=_names("pinned", pinned),
                barred=_names("barred", barred),
            )
        )
        return name

    def lock(self, name: str, *, capacity: int) -> str:
        """Declare the capacity of a lock, or of each lock of a family; return the name.

            app.lock("download:*", capacity=4)    # four at a time from each host

        A family is a prefix of names followed by ``*``; where several match, the longest counts. A lock without a
        declared capacity has a capacity of 1. Operators may change it at run time; then theirs is in force."""
        lock_capacity = LockCapacity(name=name, capacity=capacity)
        if any(lock.name == name for lock in self.locks):
            raise UsageError(f"the lock {name!r} is declared twice; keep one of the two")
        self.locks.append(lock_capacity)
        return name

    def schedule(
        self,
        kind: SubmittableType | str,
        /,
        *,
        cron: str | None = None,
        zone: str = "UTC",
        every: Duration | None = None,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        overlap: str = "skip",
        catch_up: str = "last",
    ) -> str:
        """Declare that jobs of this type are submitted on a schedule; return the schedule's name.

            app.schedule(report.options(queue="night"), cron="0 6 * * mon", zone="Europe/Berlin")
            app.schedule(probe, every=30, params={"host": "a"}, name="probe-a", overlap="queue")

        ``cron`` has five fields as in crontab(5), read in the time zone ``zone``; ``every`` is an interval: seconds,
        a timedelta, or text such as ``"1h30m"``. ``overlap``: what happens at a time when the last job is still open
        (``skip``; ``queue``: the new one waits; ``allow``). ``catch_up``: which times that passed while no node ran,
        or while it was paused, still get their jobs (``none``, ``last``, ``all``); with ``all`` write
        ``overlap="queue"``, because ``skip`` skips the times at which the job of the first is open. ``name``: the
        type's name by default. Declare a schedule after the stages of its type, whose parameters are checked.

        Nodes put it into the store when they start; what an operator has paused or changed there stays. Raises
        UsageError, BadParameters.
        """
        from spinney.scheduling import recurrence  # only where something is declared

        job_type = self._kind(kind)
        try:
            (text,) = job_type.texts([{} if params is None else params])
        except BadParameters as error:
            raise of_schedule(error) from error.__cause__
        options = {f.name: getattr(job_type.submit_options, f.name) for f in fields(Options)}
        schedule = Schedule.from_json(
            job_type.name if name is None else name,
            {
                "type": job_type.name,
                "cron": cron,
                "zone": zone,
                "params": orjson.loads(text),
                "every_s": every,
                "options": {option: v for option, v in options.items() if v != getattr(_NO_OPTIONS, option)},
                "overlap": overlap,
                "catch_up": catch_up,
            },
        )
        recurrence.require(schedule)
        if schedule.name in self.schedules:
            raise UsageError(
                f"two schedules are named {schedule.name!r}; give one of them another name (name=…)"
            )
        self.schedules[schedule.name] = schedule
        return schedule.name

    def poll(
        self,
        kind: SubmittableType | str,
        rows: RowSource,
        /,
        *,
        key: str,
        cron: str | None = None,
        zone: str = "UTC",
        every: Duration | None = None,
        name: str | None = None,
        keep: Mapping[str, Duration | None] | None = None,
    ) -> str:
        """Declare that each row of a list gets a job of this type again and again, and never two that are unsettled at
        once; return the name of the schedule.

            app.poll(sync, "receivers.csv", key="receiver", every="1h")
            app.poll(sync.options(priority=10), attached_receivers, key="receiver", cron="*/10 * * * *")

        ``rows``: a function that returns the parameters of each job, or a file of them: CSV with a heading, or JSON
        lines. It is called or read at each time, in a job of the type ``poll.<name>``, which fails when a row is wrong.
        ``key``: the parameter that tells rows apart. A row whose last job is still open gets no other one. The times
        are as of ``schedule``. ``keep``: how long the jobs that read the list are kept, as of ``job``. Raises
        UsageError.
        """
        job_type = self._kind(kind)
        name = job_type.name if name is None else name
        if job_type.schema and key not in job_type.schema.get("properties", {}):
            raise UsageError(
                f"job type {job_type.name!r} has no parameter {key!r}, by which the poll would identify rows"
            )
        declare = self.job(name=f"poll.{name}", submit="internal", keep=keep or {})
        poll = declare(poll_function(job_type, rows, key, name))
        return self.schedule(poll, cron=cron, zone=zone, every=every, name=f"poll.{name}")

    # --- submitting -----------------------------------------------------------------------

    def submit(self, kind: SubmittableType | str, /, *unnamed: Never, **params: Any) -> int:
        """Submit one job; return its id. A job type of another application is given by its name, and its parameters are
        checked by the schema that its nodes registered in the store. Raises UnknownType and BadParameters, and then
        nothing is stored."""
        require_named(unnamed)
        return self.submit_many(kind, [params])[0]

    def submit_to(self, queue: str, /, *unnamed: Never, **params: Any) -> int:
        """Submit one job of a queue's default type, by the queue's name and parameters; return its id.

        The type is the one in force in the store, which operators may change, so it need not be one of this
        application. Raises UsageError when the queue has none, UnknownType, BadParameters.
        """
        require_named(unnamed)
        with self._use_store() as (store, _):
            spec = store.queue_admin.in_force(queue)
            own = next((q for q in self.queues if q.name == queue), None)
            if own is not None and spec.type is None and queue not in store.queues():
                spec = own  # no node has declared it in the store yet
            kind = self.types.get(spec.default_type())
            stored = store.types().get(spec.default_type()) if kind is None else None
        if kind is not None:
            return self.submit_rows(kind.options(queue=queue), [params], None)[0]
        if stored is None:
            raise UnknownType(
                f"the default type {spec.default_type()!r} of queue {queue!r} is known neither to this application nor "
                f"to the store; start a node whose application has it, or set another: "
                f"spinney queue {queue} --type TYPE"
            )
        return self.submit_rows(_foreign(stored, Options(queue=queue)), [params], None)[0]

    def submit_many(
        self,
        kind: SubmittableType | str,
        rows: Iterable[Mapping[str, Any]],
        *,
        keys: Iterable[str] | None = None,
    ) -> list[int]:
        """Submit a job for each dict of parameters, all or none; return their ids. ``keys``: one for each. For types of
        other applications, see ``submit``."""
        if isinstance(kind, str) and kind not in self.types:
            with self._use_store() as (store, _):
                types = store.types()
            if kind not in types:
                names = {*self.types, *types}
                raise UnknownType(unknown("job type", kind, names, "start a node whose application has it"))
            return self.submit_rows(_foreign(types[kind], _NO_OPTIONS), rows, keys)
        return self.submit_rows(self._kind(kind), rows, keys)

    def submit_rows(
        self, kind: Submittable, rows: Iterable[Mapping[str, Any]], keys: Iterable[str] | None
    ) -> list[int]:
        """Submit a job for each row of parameters; every other way to submit calls this."""
        with current.submission_span(kind.name):
            texts = kind.texts(rows)
            submission = kind.submit_options.submission(kind.name, texts, keys)
            if not texts:
                return []
            with self._use_store() as (store, waker):
                if kind.name not in self._store.known_types:
                    self._store.known_types = self.introduce(store)
                ids = list(store.submit([submission], soon=waker.soon, now_us=now_us()).ids)
                waker.now()  # otherwise nodes see them at their next poll
                return ids

    # --- reading ---------------------------------------------------------------------------

    def job_info(self, job_id: int) -> "JobInfo":
        """Return a job with its state. Raises NoSuchJob."""
        _require_job_id(job_id)
        with self._use_store() as (store, _):
            return store.job(job_id)

    def results(self, job_id: int) -> Mapping[str, Any]:
        """Return what the stages of a job returned, by stage. Raises NoSuchJob."""
        _require_job_id(job_id)
        with self._use_store() as (store, _):
            store.job(job_id)  # raises; the store itself returns no results for a missing job
            return store.results(job_id)

    def wait(self, job_id: int, timeout: Duration | None = None) -> "JobInfo":
        """Wait until a job has settled (completed, failed, cancelled, orphaned or deleted).

        Raises TimeoutError when it has not in ``timeout`` (seconds, a timedelta, or text such as ``"5m"``); the job
        continues all the same."""
        limit_s = durations.optional(timeout, "timeout")
        begun, pause_s = time.monotonic(), _LOOK_S[0]
        while (job := self.job_info(job_id)).state not in SETTLED:
            if limit_s is not None and time.monotonic() - begun >= limit_s:
                raise TimeoutError(
                    f"job {job_id} is still {job.state} after {limit_s:g} s; it continues, "
                    f"and 'spinney show {job_id}' shows its state"
                )
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LOOK_S[1])
        return job

    @property
    def settings(self) -> Settings:
        """Return where the store and the folders are."""
        return self._store.settings

    def introduce(self, store: "Store") -> set[str]:
        """Register the types that no node has registered yet in a store, with their queues and locks, so that jobs may
        be submitted before the first node is started; return the names of all types that the store has then. Only
        nodes replace what nodes have registered: a submitter with old code must not undo the types of a newer node."""
        stored_types = set(store.types())
        types = [t.spec for t in self.types.values() if t.name not in stored_types]
        if types:
            declared = store.queues()
            capacities = {each.name for each in store.locks.capacities()}
            queues = [q for q in self.queues if q.name not in declared]
            store.register(types, queues, [lock for lock in self.locks if lock.name not in capacities])
        return stored_types.union(self.types)

    def close(self) -> None:
        """Close the store; the next use opens it again."""
        self._store.close()

    # --- inside ---------------------------------------------------------------------------

    def _use_store(self) -> AbstractContextManager[tuple["Store", "Waker"]]:
        """Return a context that has the store and the waker of its nodes. Raises UsageError within a stage (see
        ``stage_guard``)."""
        stage_guard.require_store_allowed(self, names_store=self.named_store is not None)
        return self._store.use()

    def _add(self, job_type: TypeT) -> TypeT:
        if job_type.name in self.types:
            raise UsageError(f"two job types are named {job_type.name!r}; give one of them another name")
        self.types[job_type.name] = job_type
        return job_type

    def _kind(self, kind: SubmittableType | str) -> SubmittableType:
        if not isinstance(kind, str):
            return submittable(kind)
        job_type = self.types.get(kind)
        if job_type is None:
            raise UnknownType(
                f"this application has no job type {kind!r}{did_you_mean(kind, self.types)}; "
                f"it has: {listed(self.types)}"
            )
        return job_type


def _foreign(spec: TypeSpec, options: Options) -> ForeignType:
    return ForeignType(spec.name, spec.schema, checker(spec), options)


def _require_job_id(job_id: object) -> None:
    """Raise UsageError unless it is a job's number. A list of them, as ``submit_many`` returns, would only fail within
    the database."""
    if not isinstance(job_id, int) or isinstance(job_id, bool) or job_id > JOB_ID_MAX:
        raise UsageError(
            f"a job is named by its number (1 to {JOB_ID_MAX}), as submit returns it, not by {job_id!r:.80}; for "
            f"several jobs, make one call for each"
        )


def _names(option: str, nodes: Sequence[str]) -> tuple[str, ...]:
    if isinstance(nodes, str):  # which is a sequence of strings, too
        raise UsageError(f"{option} is a list of node names; write {option}=[{nodes!r}]")
    return tuple(nodes)
