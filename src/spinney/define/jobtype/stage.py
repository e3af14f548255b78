"""Options of stages, and how a function or a program becomes a stage.

Options are TypedDicts, so that editors and type checkers know them; they are checked once more when the stage
is declared, for code that is not type-checked. An option that is left out has the default of
``StageSpec``."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from spinney.define.jobtype import signature
from spinney.define.jobtype.functions import name_of, require_function
from spinney.define.jobtype.parameters import adapter
from spinney.define.jobtype.signature import Signature, is_plain
from spinney.model.errors import UsageError
from spinney.model.outcomes import STAGE_WORDS
from spinney.model.types import Backoff, Isolation, LockSpec, StageSpec
from spinney.model.values import durations, lock_names
from spinney.model.values.durations import Duration
from spinney.model.values.hints import did_you_mean, listed


class CommonStageOptions(TypedDict, total=False):
    """Options of any stage, whether a function, a program or an external worker runs it."""

    queue: str
    """The queue of a job for this stage, unless its submission names one."""
    max_attempts: int
    """How often the stage is tried in all; 1: it is not retried."""
    backoff: Backoff
    """The pause before each further attempt: ``Backoff(base_s="10s", factor=2, cap_s="10m", jitter=0.5)``."""
    timeout: Duration
    """How long an attempt may last; a longer one is killed with every process that it started."""
    stack_after: Duration
    """After how long an attempt leaves its stacks in the job's folder, for ``spinney stack``; by default none does."""
    grace: Duration
    """The time between TERM and KILL when an attempt is killed."""
    locks: Sequence[str | LockSpec]
    """Locks that the stage must have before it starts: names with ``{parameter}`` fields, ``["receiver:{serno}"]``."""
    again: bool
    """The stage runs once more when failed subjobs were retried and the tree below the job has regrown."""


class StageOptions(CommonStageOptions, total=False):
    """Options of a stage that is a function."""

    name: str
    """The stage's name; by default the function's name."""
    isolation: str
    """Where the function runs: ``process``, ``cold``, ``thread``, or ``async``, the default of an ``async def``."""


class ExternalOptions(CommonStageOptions, total=False):
    """Options of a stage that external workers run."""

    params: Mapping[str, Any]
    """The parameters that the external worker gets, name to type; by default any."""


class ProgramOptions(CommonStageOptions, total=False):
    """Options of a stage that is a program."""

    params: Mapping[str, Any]
    """The parameters that the program gets, name to type; by default any."""
    exit_codes: Mapping[int, str]
    """Exit code to outcome; by default 0 is ``ok``, 75 is ``defer``, all others are ``error``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage as the application declares it: its specification, which the store knows, and its function, which it does
    not."""

    spec: StageSpec
    signature: Signature
    function: Callable[..., Any] | None
    """The function of the stage; None: it is a program or an external stage."""
    declared: bool = True
    """False: a program or an external stage that does not declare its parameters."""


def function_stage(type_name: str, function: Callable[..., Any], options: StageOptions) -> Stage:
    """Make a stage that runs ``function``, named by it or by the option ``name``. Raises UsageError and
    BadName for a function that cannot be a stage, options that do not exist, and annotations without JSON
    form."""
    require_function(f"a stage of {type_name!r}", function)
    name = options["name"] if "name" in options else name_of(function)
    where = f"stage {name!r} of {type_name!r}"
    require_known(where, options, StageOptions)
    parameters = signature.of_function(where, function)
    adapter(where, {n: f for n, f in parameters.fields.items() if not is_plain(f.annotation)}, "ignore")
    spec = StageSpec(
        name=name, isolation=_isolation(where, name, function, options), **_policy(where, options)
    )
    return Stage(spec=spec, signature=parameters, function=function)


def program_stage(type_name: str, name: str, argv: Sequence[str], options: ProgramOptions) -> Stage:
    """Make a stage that runs a program. Raises UsageError for options that do not exist, and for anything but a list of
    arguments."""
    where = f"stage {name!r} of {type_name!r}"
    require_known(where, options, ProgramOptions)
    if (
        isinstance(argv, str)
        or not argv
        or not all(isinstance(word, str) for word in argv)
        or not argv[0].strip()
    ):
        raise UsageError(
            f"{where}: a program is a list of arguments, never a shell string: "
            f'["convert", "--size", "200"], not {argv!r}'
        )
    return _foreign_stage(
        where,
        name,
        options,
        isolation=Isolation.PROGRAM,
        program=tuple(argv),
        exit_codes=_exit_codes(where, options.get("exit_codes", {})),
    )


def external_stage(type_name: str, name: str, options: ExternalOptions) -> Stage:
    """Make a stage that external workers claim over the API and run. Raises UsageError for options that do
    not exist."""
    where = f"stage {name!r} of {type_name!r}"
    require_known(where, options, ExternalOptions)
    return _foreign_stage(where, name, options, isolation=Isolation.EXTERNAL)


def _foreign_stage(where: str, name: str, options: ProgramOptions | ExternalOptions, **fields: Any) -> Stage:
    """Make a stage without a function, whose parameters are declared by the option ``params``, if at all."""
    parameters = signature.of_mapping(where, options.get("params", {}))
    adapter(where, parameters.fields, "ignore")
    spec = StageSpec(name=name, **fields, **_policy(where, options))
    return Stage(spec=spec, signature=parameters, function=None, declared="params" in options)


def _policy(where: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that all kinds of stages have, as ``StageSpec`` takes them."""
    policy: dict[str, Any] = {
        key: options[key] for key in ("queue", "max_attempts", "backoff", "again") if key in options
    }
    for name in ("timeout", "stack_after", "grace"):
        if name in options:
            policy[f"{name}_s"] = float(durations.seconds(options[name], f"{where}: {name}"))
    return policy | {"locks": _locks(where, options.get("locks", ()))}


def _locks(where: str, locks: Sequence[str | LockSpec]) -> tuple[LockSpec, ...]:
    """Return the locks of a stage. Raises UsageError for names that cannot be, and for one that is there
    twice."""
    if isinstance(locks, str | LockSpec):
        raise UsageError(f"{where}: locks is a list of names; write locks=[{locks!r}]")
    if not isinstance(locks, Iterable):
        raise UsageError(f"{where}: locks is a list of names such as ['receiver:{{serno}}'], not {locks!r}")
    try:
        specs = tuple(lock if isinstance(lock, LockSpec) else LockSpec(template=lock) for lock in locks)
        for spec in specs:
            # With any parameters it must be a valid name; one letter for each is tried.
            lock_names.render(spec.template, dict.fromkeys(lock_names.fields(spec.template), "x"))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    templates = [spec.template for spec in specs]
    for template in templates:
        if templates.count(template) > 1:
            raise UsageError(f"{where}: the lock {template!r} is named twice; keep one of the two")
    return specs


def _isolation(where: str, name: str, function: Callable[..., Any], options: StageOptions) -> Isolation:
    """Return where the function runs. Raises UsageError for an unknown word, and for one that does not suit the
    function."""
    is_async = inspect.iscoroutinefunction(function)
    isolation = options.get("isolation", Isolation.ASYNC if is_async else Isolation.PROCESS)
    offered = [i for i in Isolation if i not in (Isolation.PROGRAM, Isolation.EXTERNAL)]
    if isolation == Isolation.EXTERNAL:
        raise UsageError(
            f"{where}: a stage that runs elsewhere has no function; write external({name!r}, …) in its place"
        )
    if isolation not in offered:
        raise UsageError(f"{where}: isolation is one of {listed(offered)}, not {isolation!r}")
    if isolation == Isolation.ASYNC and not is_async:
        raise UsageError(f"{where} has isolation 'async' but is no async function; write 'async def'")
    if isolation == Isolation.THREAD and is_async:
        raise UsageError(f"{where} is async and needs no thread; use isolation 'async' or 'process'")
    return Isolation(isolation)


def _exit_codes(where: str, codes: Mapping[int, str]) -> dict[int, str]:
    """Return what exit codes mean. Raises UsageError for codes outside 0 to 255, and for outcomes that a
    stage cannot have."""
    if not isinstance(codes, Mapping):
        raise UsageError(f'{where}: exit codes map numbers to outcomes, as in {{3: "hold"}}, not {codes!r}')
    for code, word in codes.items():
        if type(code) is not int or not 0 <= code <= 255:
            raise UsageError(f"{where}: exit codes are whole numbers from 0 to 255, not {code!r}")
        if word not in STAGE_WORDS:
            raise UsageError(
                f"{where}: exit code {code} cannot mean {word!r}{did_you_mean(str(word), STAGE_WORDS)}; "
                f"use one of: {listed(STAGE_WORDS)}"
            )
    return {code: str(word) for code, word in codes.items()}


def require_known(where: str, options: Mapping[str, Any], typed_dict: Any) -> None:
    """Raise UsageError for an option that this TypedDict does not have, with the one that was probably
    meant."""
    allowed = typed_dict.__required_keys__ | typed_dict.__optional_keys__
    for option in options:
        if option not in allowed:
            hint = did_you_mean(option, allowed)
            raise UsageError(f"{where}: there is no option {option!r}{hint}; use one of: {listed(allowed)}")
