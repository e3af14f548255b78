"""Job types made of functions and programs.

The decorators of an application return a ``JobType``: a handle to submit and to spawn by; for nodes it has the ``spec``
to register and the ``runner`` of each stage."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Never, Protocol, TypedDict, TypeVar, Unpack, overload

from spinney.define.job.handle import Job
from spinney.define.job.options import Options
from spinney.define.jobtype import signature
from spinney.define.jobtype.functions import name_of, require_function
from spinney.define.jobtype.parameters import Parameters, Reader, reader
from spinney.define.jobtype.stage import (
    ExternalOptions,
    ProgramOptions,
    Stage,
    StageOptions,
    external_stage,
    function_stage,
    program_stage,
    require_known,
)
from spinney.define.params.environment import require_declarable
from spinney.define.params.validation_errors import require_named
from spinney.model.errors import UsageError
from spinney.model.rights.submit_rights import require_limited
from spinney.model.subjects import require_fields
from spinney.model.types import GENERATED, Isolation, LockSpec, StageSpec, TypeSpec
from spinney.model.values import durations
from spinney.model.values.durations import Duration

Rows = Iterable[Mapping[str, Any]]
"""Parameters of many jobs."""
F = TypeVar("F", bound=Callable[..., Any])
F_co = TypeVar("F_co", covariant=True)
Runner = Callable[[str, Job], Any]
"""Takes a job's parameters as JSON text and its handle; returns the stage's value (or, of an async
function, a coroutine) or raises one of the signals."""
_ANY_STAGES = (StageSpec(name="any"),)
"""Stands in for the stages while the options of a type are checked that has none yet."""
_WITHOUT_FUNCTION = {Isolation.PROGRAM: "a program", Isolation.EXTERNAL: "what an external worker runs"}


class CommonTypeOptions(TypedDict, total=False):
    """Options of any job type, whether it is a pipeline, a single function, a program or external."""

    priority: int
    """The priority of its jobs, 0 (first) to 99 (last); a subjob takes its parent's."""
    children: str
    """When a job continues with its next stage: ``completed``, when all subjobs have completed; ``settled``, when all
    have settled, whatever their state."""
    serial: bool
    """Below a root job of this type one job runs at a time, in the order of the tree."""
    on_lost: str
    """What becomes of a running job when its node dies: ``requeue``, it runs again; ``orphan``, a person decides."""
    on_deadlock: str
    """What becomes of the youngest job in a deadlock of jobs that wait for each other's locks: ``fail`` or
    ``restart``."""
    poison_after: int
    """After so many deaths of its worker or node a job fails as poison."""
    breaker: int | None
    """After so many jobs in a row that failed in one stage with one cause, the type is held; None: never."""
    keep: Mapping[str, Duration | None]
    """How long settled root jobs are kept with all jobs below them, by state: ``{"completed": "30d"}``. None, and a
    state that is not named: for ever. Their folders are deleted with them."""
    submit: str
    """The lowest role that may submit it through a server: ``submitter``, ``operator`` or ``admin``; or ``internal``:
    only stages, schedules and the application's own code create such jobs."""
    submit_limits: Mapping[str, str]
    """Parameters that must be within the limits of a caller who submits through a server: ``{"collection":
    "dataset"}``."""
    postmortem: bool
    """Whether the frames of a failed stage are kept with their variables, for ``spinney postmortem``; false for types
    whose variables hold what must not reach a disk."""
    names: str
    """Which names its jobs may give to data that they write (``job.data``): ``any``; or ``generated_``: only names that
    end in ``_``, which distinguishes them from the data of the submission."""
    description: str
    """One line for people; by default the first line of the function's docstring, if the type has no other stage."""
    subject: str
    """A text by which people tell its jobs apart, with parameters in braces, such as ``"{file}"``; by default the
    parameters that differ most between jobs."""


class TypeOptions(CommonTypeOptions, total=False):
    """Options of a pipeline (``app.pipeline``), whose stages have options of their own."""

    queue: str
    """The queue for stages that name none, when the submission and the parent name none either."""


class JobOptions(StageOptions, CommonTypeOptions, total=False):
    """Options of a job type with one function."""


class ProgramJobOptions(ProgramOptions, CommonTypeOptions, total=False):
    """Options of a job type with one program."""


class ExternalJobOptions(ExternalOptions, CommonTypeOptions, total=False):
    """Options of a job type with one stage that external workers run."""


class JobSubmitter(Protocol):
    """The application to which job types belong, through which they submit."""

    def submit_rows(self, kind: "SubmittableType", rows: Rows, keys: Iterable[str] | None) -> list[int]:
        """Validate and submit jobs; return their ids in order. ``keys``: a unique key for each row; None: they have
        none."""


class SubmittableType:
    """A job type, bare or with options: what ``submit`` and ``job.spawn`` take."""

    _kind: "JobType"
    """The job type itself, without options."""

    def __init__(self, name: str, app: JobSubmitter, options: Options) -> None:
        self.name = name
        """The name of the job type."""
        self.app = app
        """The application to which it belongs."""
        self.submit_options = options
        """The options of jobs that are submitted by it."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return the JSON schema of its parameters."""
        return self._kind.parameters.schema

    @property
    def generated_names(self) -> bool:
        """Return whether the names of data that its jobs write end in ``_``."""
        return self._kind.spec.names == GENERATED

    def options(self, **options: Any) -> "ConfiguredJob":
        """Return the job type with these options: queue, priority, share, collection, submitter, key, forever, at,
        needs, data. Options that it has already stay unless they are named again:

            resize.options(queue="night", key="cat-7").submit(picture="cat.jpg")

        Raises UsageError for an unknown option or an invalid value."""
        return ConfiguredJob(self._kind, self.submit_options.changed(options))

    def texts(self, rows: Rows) -> list[str]:
        """Check the parameters of many jobs; return them as JSON texts. Raises BadParameters."""
        return self._kind.parameters.texts(rows)

    def submit(self, /, *unnamed: Never, **params: Any) -> int:
        """Submit one root job; return its id. Raises BadParameters, and then nothing is stored."""
        require_named(unnamed)
        return self.app.submit_rows(self, [params], None)[0]

    def submit_many(self, rows: Rows, *, keys: Iterable[str] | None = None) -> list[int]:
        """Submit a job for each dict of parameters, all or none; return their ids in order. ``keys``: one for
        each. Raises BadParameters, which names the first wrong row, and UsageError for keys that do not
        fit."""
        return self.app.submit_rows(self, rows, keys)


class ConfiguredJob(SubmittableType):
    """A job type with options of its jobs, as ``options`` returns it."""

    def __init__(self, kind: "JobType", options: Options) -> None:
        super().__init__(kind.name, kind.app, options)
        self._kind = kind


class JobType(SubmittableType):
    """A job type of one stage or many. Its name and options are checked when it is declared, and each stage
    when it is added."""

    def __init__(self, name: str, app: JobSubmitter, options: TypeOptions) -> None:
        for option in options:
            if option in StageOptions.__optional_keys__ - TypeOptions.__optional_keys__:
                raise UsageError(
                    f"job type {name!r}: {option!r} is an option of its stages; give it where each of them is "
                    f"declared, as in stage({option}=…)"
                )
        require_known(f"job type {name!r}", options, TypeOptions)
        # Stages are added later; wrong options of the type are refused here, where they are written.
        plain = _plain(f"job type {name!r}", options)
        TypeSpec(name=name, stages=_ANY_STAGES, **plain)
        super().__init__(name, app, Options())
        self._kind = self
        self._options = plain
        self._stages: dict[str, Stage] = {}

    # --- for nodes ------------------------------------------------------------------------

    @functools.cached_property
    def spec(self) -> TypeSpec:
        """Return the spec that nodes register."""
        spec = TypeSpec(
            name=self.name,
            stages=_with_kept_locks(stage.spec for stage in self._stages.values()),
            schema=self.parameters.schema,
            **{"description": self._described(), **self._options},
        )
        if spec.schema:  # without a schema any parameter may come
            require_fields(spec.name, spec.subject, spec.schema)
        if not self._anything:
            require_limited(spec.name, spec.submit_limits, spec.schema.get("properties", {}))
        return spec

    @functools.cached_property
    def parameters(self) -> Parameters:
        """Return the parameters of its jobs: those of all its stages."""
        stages, fields = self._stages.values(), self._fields
        of_functions = {name for s in stages if s.function is not None for name in s.signature.fields}
        return Parameters(
            self.name,
            fields,
            anything=self._anything,
            program=any(s.spec.program for s in stages),
            lock_templates=[lock.template for s in stages for lock in s.spec.locks],
            as_stored=fields.keys() - of_functions,
        )

    def runner(self, stage: str) -> Runner:
        """Return the function that runs the stage; a coroutine function when the stage's function is async. Raises
        UsageError for a stage that does not exist or has no function."""
        defined = self._stages.get(stage)
        if defined is None or defined.function is None:
            subject = (
                "no stage"
                if defined is None
                else f"{_WITHOUT_FUNCTION[defined.spec.isolation]}, no function, as stage"
            )
            names = ", ".join(self._stages)
            raise UsageError(f"job type {self.name!r} has {subject} {stage!r}; its stages are: {names}")
        where = f"stage {stage!r} of {self.name!r}"
        read = reader(where, defined.signature)
        return _runner(defined.function, read, defined.signature.job_name)

    def takes_handle(self, stage: str) -> bool:
        """Return whether the stage uses the handle of its job."""
        defined = self._stages.get(stage)
        return defined is not None and (defined.function is None or defined.signature.job_name is not None)

    def function(self, stage: str | None = None) -> Callable[..., Any] | None:
        """Return the plain function of a stage (by default the first); None for a program or an external stage."""
        return self._stages[stage or next(iter(self._stages))].function

    @property
    def _anything(self) -> bool:
        """Whether jobs may have parameters that no stage declares."""
        stages = self._stages.values()
        return any(s.signature.extra for s in stages) or not any(s.declared for s in stages)

    @property
    def _fields(self) -> dict[str, signature.DeclaredParameter]:
        """Return the parameters that its stages declare, by name."""
        return signature.merge_signatures(self.name, {n: s.signature for n, s in self._stages.items()})

    def _described(self) -> str:
        """Return the description where the application gives none: a docstring is that of a stage, and speaks for the
        type only where there is no other."""
        functions = [s.function for s in self._stages.values()]
        text = inspect.getdoc(functions[0]) if len(functions) == 1 and functions[0] is not None else None
        return text.partition("\n")[0] if text else ""

    def _add(self, stage: Stage) -> None:
        """Add a stage behind the others. Raises UsageError for a name that is taken and for parameters that
        do not go together with those of the other stages; then it is not added."""
        name = stage.spec.name
        if name in self._stages:
            raise UsageError(f"job type {self.name!r} has two stages named {name!r}; rename one")
        self._stages[name] = stage
        for cached in ("spec", "parameters"):
            self.__dict__.pop(cached, None)
        try:
            declared = self._fields
            if any(added.spec.program for added in self._stages.values()):
                require_declarable(self.name, declared)
        except UsageError:
            del self._stages[name]
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {' -> '.join(self._stages)}>"


class FunctionJob(JobType, Generic[F_co]):
    """A job type of one function; calling it calls the function in this process. Type checkers know what that takes and
    returns, and that two of them, however different their functions, are job types."""

    def __init__(self, function: Callable[..., Any], app: JobSubmitter, options: JobOptions) -> None:
        function = _bare(function)
        require_function("a job", function)
        name = options["name"] if "name" in options else name_of(function)
        whole, own = _divided(name, options, JobOptions)
        super().__init__(name, app, whole)
        self._add(function_stage(name, function, own))
        functools.update_wrapper(self, function, updated=())  # type: ignore[arg-type]

    @property
    def __call__(self) -> F_co:
        """Return the function itself, which a call calls: nothing is stored, and all its parameters have to be
        passed."""
        function: F_co = self.__wrapped__  # type: ignore[attr-defined]
        return function


class ProgramJob(JobType):
    """A job type of one program."""

    def __init__(self, name: str, argv: Sequence[str], app: JobSubmitter, options: ProgramJobOptions) -> None:
        whole, own = _divided(name, options, ProgramJobOptions)
        super().__init__(name, app, whole)
        self._add(program_stage(name, name, argv, own))


class ExternalJob(JobType):
    """A job type of one stage that external workers run."""

    def __init__(self, name: str, app: JobSubmitter, options: ExternalJobOptions) -> None:
        whole, own = _divided(name, options, ExternalJobOptions)
        super().__init__(name, app, whole)
        self._add(external_stage(name, name, own))


class Pipeline(JobType):
    """A job type of several stages, which run in the order in which they are defined."""

    @overload
    def stage(self, function: F, /) -> F: ...
    @overload
    def stage(self, /, **options: Unpack[StageOptions]) -> Callable[[F], F]: ...
    def stage(self, function: F | None = None, /, **options: Unpack[StageOptions]) -> F | Callable[[F], F]:
        """Add the next stage: a decorator, bare or with options. The function itself is not changed."""
        if function is None:
            return functools.partial(self._stage, options=options)
        return self._stage(function, options)

    def program(self, name: str, argv: Sequence[str], **options: Unpack[ProgramOptions]) -> None:
        """Add a program of any language as the next stage, given as a list of arguments."""
        self._add(program_stage(self.name, name, argv, options))

    def external(self, name: str, **options: Unpack[ExternalOptions]) -> None:
        """Add a next stage that external workers claim over the API and run elsewhere (docs/external.md)."""
        self._add(external_stage(self.name, name, options))

    def _stage(self, function: F, options: StageOptions) -> F:
        self._add(function_stage(self.name, _bare(function), options))
        return function


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a FunctionJob; the function may be async, which the job type itself is not."""
    bare = function.function() if isinstance(function, FunctionJob) else None
    return function if bare is None else bare


def _with_kept_locks(stages: Iterable[StageSpec]) -> tuple[StageSpec, ...]:
    """Return the stages, each also with the locks that earlier ones keep until the job settles: a job that is opened
    again at a later stage has let them go, and must not run without them."""
    kept: dict[str, LockSpec] = {}
    complete = []
    for stage in stages:
        locks = {lock.template: lock for lock in stage.locks} | kept
        kept |= {lock.template: lock for lock in stage.locks if lock.until == "job"}
        complete.append(replace(stage, locks=tuple(locks.values())))
    return tuple(complete)


def _plain(where: str, options: TypeOptions) -> dict[str, Any]:
    """Return the options as a ``TypeSpec`` takes them, with durations in seconds."""
    plain: dict[str, Any] = dict(options)
    keep = plain.get("keep")
    if isinstance(keep, Mapping):
        plain["keep"] = {
            state: None if time is None else float(durations.seconds(time, f"{where}: keep for {state}"))
            for state, time in keep.items()
        }
    return plain


def _divided(name: str, options: Mapping[str, Any], typed_dict: Any) -> tuple[Any, Any]:
    """Split the options of a job type into those of the type and those of its one stage. The queue is the stage's, so
    that a subjob goes there too, whatever queue its parent is in. Raises UsageError for an option that ``typed_dict``
    does not have."""
    require_known(f"job type {name!r}", options, typed_dict)
    whole = CommonTypeOptions.__optional_keys__
    return (
        {k: v for k, v in options.items() if k in whole},
        {k: v for k, v in options.items() if k not in whole},
    )


def _runner(function: Callable[..., Any], read: Reader, job_name: str | None) -> Runner:
    """Return the runner of a plain function. There is one for each way to pass the handle, so that a quick
    job does not pay for deciding that anew."""
    if inspect.iscoroutinefunction(function):
        return _async_runner(function, read, job_name)
    if job_name is None:
        return lambda text, job: function(**read(text))
    if job_name == signature.JOB_NAME:
        return lambda text, job: function(job=job, **read(text))
    return lambda text, job: function(**{job_name: job}, **read(text))


def _async_runner(function: Callable[..., Any], read: Reader, job_name: str | None) -> Runner:
    """Return the runner of an async function."""

    async def run(text: str, job: Job) -> Any:
        handle = {} if job_name is None else {job_name: job}
        return await function(**handle, **read(text))

    return run
