"""Job types and their stages, as plain values that nodes register in the store.

They are stored as JSON (``to_json``/``from_json``), so that the store, the command line and a server know every type
without importing any application.

A value checks itself when it is made, and raises UsageError with the name of the type, stage or queue. Nodes
of two versions may share a store during an upgrade: unknown fields of a job type are ignored; those of a queue are
refused, because a setting that is not understood must not be passed over."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from spinney.model.access import Role
from spinney.model.errors import UnknownType, UsageError
from spinney.model.states import SETTLED
from spinney.model.values import durations, lock_names, names
from spinney.model.values.durations import Duration
from spinney.model.values.hints import unknown

# What a job gets for which neither submission, parent, stage nor type says anything else.
DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 50
PRIORITIES = range(100)
"""All priorities: 0 is first, 99 last."""
COUNT_MAX = 2**31 - 1
"""The largest number of attempts, deaths or slots."""
# The value of ``TypeSpec.names`` by which data that jobs write must have names that end in ``_``.
GENERATED = "generated_"
BREAKER_MAX = 1_000
"""The largest ``breaker``: each of these jobs is remembered."""
INTERNAL = "internal"
"""The value of ``TypeSpec.submit`` by which only stages and schedules create jobs of the type."""
INTERNAL_KEYS = -1
"""The scope of the keys of internal types; that of other types is 0, and that of subjobs their parent's id."""
SUBMIT = (str(Role.SUBMITTER), str(Role.OPERATOR), str(Role.ADMIN), INTERNAL)
"""The values of ``TypeSpec.submit``: the lowest role that may submit jobs of a type, or no role at all."""
SUBMIT_LIMITS = ("collection", "queue", "share", "submitter")
"""The limits of a user that a parameter of a job type may be checked against."""
_WORDS = {
    "children": ("completed", "settled"),
    "names": ("any", GENERATED),
    "on_lost": ("requeue", "orphan"),
    "on_deadlock": ("fail", "restart"),
}
"""The options of a type that are one of two words."""
KEEP_MAX_S = 1000 * 366 * 86_400
"""The longest time for which settled jobs can be kept, other than for ever: a thousand years."""


class Isolation(StrEnum):
    """Where a stage runs, and so what an attempt that crashes takes down with it."""

    PROCESS = "process"
    """The stage runs in a warm worker process, one attempt at a time. This is the default."""
    COLD = "cold"
    """The stage runs in a process that is started for this attempt alone."""
    THREAD = "thread"
    """The stage runs in a thread of one warm child that many attempts share."""
    ASYNC = "async"
    """The stage runs in the event loop of one warm child that many attempts share."""
    PROGRAM = "program"
    """A program of any language, started by a warm worker."""
    EXTERNAL = "external"
    """An external worker runs the stage, and claims it over the API (``spinney.model.external``). Nodes do not claim
    it."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Backoff:
    """Seconds between the attempts of a stage: ``base_s * factor**(n-1)``, capped, then jittered.

    ``base_s`` and ``cap_s`` may be any duration: ``Backoff(base_s="30s", cap_s=timedelta(hours=1))``.
    """

    base_s: float
    """The pause before the second attempt."""
    factor: float
    """The ratio of each pause to the one before."""
    cap_s: float
    """The longest delay, in seconds."""
    jitter: float
    """The part of a pause, 0 to 1, that is random, so that jobs that failed together are not retried together."""

    def __init__(
        self, *, base_s: Duration = 1.0, factor: float = 2.0, cap_s: Duration = 600.0, jitter: float = 0.5
    ) -> None:
        base, cap = (
            durations.seconds(base_s, "base_s of a backoff"),
            durations.seconds(cap_s, "cap_s of a backoff"),
        )
        lawful = _is_number(factor) and _is_number(jitter) and base >= 0 and factor >= 1 and cap >= 0
        if not lawful or not 0 <= jitter <= 1:
            raise UsageError(
                "a backoff needs base_s >= 0, factor >= 1, cap_s >= 0 and jitter between 0 and 1"
            )
        for field_, value in (("base_s", base), ("factor", factor), ("cap_s", cap), ("jitter", jitter)):
            object.__setattr__(self, field_, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSpec:
    """A lock that a stage must have: a name with ``{parameter}`` fields, and how long it is kept."""

    template: str
    """The lock's name, with parameters in braces: ``receiver:{serno}``."""
    until: str = "attempt"
    """``attempt``: while the stage runs; ``job``: over stages, until the job settles."""

    def __post_init__(self) -> None:
        if self.until not in ("attempt", "job"):
            raise UsageError(f"a lock is kept until='attempt' or until='job', not {self.until!r}")
        if not isinstance(self.template, str) or not lock_names.is_balanced(self.template):
            raise UsageError(
                f"{self.template!r} cannot name a lock: use text in which every parameter is in braces "
                f"of its own, as in 'receiver:{{serno}}'"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """One named, retried, checkpointed step of a job type."""

    name: str
    isolation: Isolation = Isolation.PROCESS
    queue: str | None = None
    """The queue of jobs at this stage, unless their submission names one; None: that of the parent or of the type."""
    max_attempts: int = 1
    """After so many failed attempts the job fails; attempts that deferred or were interrupted do not count."""
    backoff: Backoff = field(default_factory=Backoff)
    timeout_s: float | None = None
    """An attempt that runs longer is ended; None: there is no limit."""
    stack_after_s: float | None = None
    """An attempt that runs longer leaves its stacks in the job's folder, once; None: none does."""
    grace_s: float = 5.0
    """Seconds between TERM and KILL when an attempt is killed."""
    locks: tuple[LockSpec, ...] = ()
    """The locks that an attempt must have before it begins."""
    again: bool = False
    """Runs once more when the tree below regrew (a report, a merge)."""
    program: tuple[str, ...] = ()
    """The argument list of a program stage; empty: it is none."""
    exit_codes: Mapping[int, str] = field(default_factory=dict)
    """Exit code to outcome, for programs; by default 0 is ok, 75 is defer, and others are error."""

    def __post_init__(self) -> None:
        names.name("stage", self.name)
        if self.queue is not None:
            names.name("queue", self.queue)
        where = f"stage {self.name!r}"
        check_count(where, "max_attempts", self.max_attempts)
        if not isinstance(self.backoff, Backoff):
            raise UsageError(
                f"{where}: backoff must be a Backoff such as Backoff(base_s=2), not {self.backoff!r}"
            )
        for option, seconds in (("timeout", self.timeout_s), ("stack_after", self.stack_after_s)):
            if seconds is not None and not (_is_number(seconds) and seconds > 0):
                raise UsageError(f"{where}: {option} must be more than 0 seconds and finite, not {seconds!r}")
        if not _is_number(self.grace_s) or self.grace_s < 0:
            raise UsageError(f"{where}: grace must be 0 seconds or more and finite, not {self.grace_s!r}")
        _check_flag(where, "again", self.again)
        for word in self.program:
            if not _is_text(word) or "\0" in word:
                raise UsageError(f"{where}: a program's argument is text in UTF-8 without NUL, not {word!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSpec:
    """A job type as nodes register it: its name, its stages, the schema of its parameters and its policies."""

    name: str
    stages: tuple[StageSpec, ...]
    schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema of the parameters; empty: any parameters."""
    queue: str | None = None
    """The queue where submission, stage and parent name none; None: ``default``."""
    priority: int | None = None
    """From 0 (first) to 99 (last), of root jobs whose submission names none; None: the default."""
    children: str = "completed"
    """``completed``: the job continues only when all its children have completed, else it fails because of them;
    ``settled``: it continues whatever became of them (a batch that reports)."""
    serial: bool = False
    """Under a root of this type one job runs at a time, in lineage order."""
    on_lost: str = "requeue"
    """``requeue`` or ``orphan``: whether a job runs a second time without being asked for when its node died."""
    on_deadlock: str = "fail"
    """``fail`` or ``restart``: what becomes of the youngest job in a deadlock of jobs that keep locks and wait for each
    other's. ``restart``: it releases all locks that it keeps, and runs again from the stage that took the first of
    these locks, though the stages have passed."""
    poison_after: int = 3
    """After so many deaths of its worker or node a job fails as poison."""
    breaker: int | None = None
    """A circuit breaker holds the type when a stage has failed in so many jobs in a row with the same cause; None:
    never."""
    keep: Mapping[str, float | None] = field(default_factory=dict)
    """Settled state to the seconds for which its jobs are kept; None, and states that are not named: for ever.
    Operators' rules take precedence (see ``spinney.model.settings.retention``)."""
    submit: str = Role.SUBMITTER.value
    """The lowest role that may submit jobs of this type, or ``internal``: only stages and schedules create them."""
    submit_limits: Mapping[str, str] = field(default_factory=dict)
    """Limit (``collection``, ``queue``, ``share``, ``submitter``) to the parameter that must be within it, with dots
    where it is nested. A server checks it: a user who is limited to a collection cannot submit for another one. It is
    data and no function, because servers load no code of applications."""
    postmortem: bool = True
    """Whether the frames and variables of its failures are kept."""
    names: str = "any"
    """``any`` or ``generated_``: whether the names of data that its jobs write must end in ``_``."""
    description: str = ""
    subject: str = ""
    """A template with ``{parameter}`` fields, by which people tell its jobs apart (``spinney.model.subjects``); empty:
    the most telling parameters are shown."""
    former_secrets: tuple[tuple[str | None, ...], ...] = ()
    """The paths of parameters that earlier declarations of the type had secret and ``schema`` has not: the values of
    earlier jobs stay redacted. The store adds them; None: any item or property."""

    @property
    def key_scope(self) -> int:
        """Return the scope of the keys of its jobs without a parent: those of internal types are among themselves, so
        that nobody who may submit jobs can take one."""
        return INTERNAL_KEYS if self.submit == INTERNAL else 0

    def __post_init__(self) -> None:
        names.name("job type", self.name)
        if self.queue is not None:
            names.name("queue", self.queue)
        where = f"job type {self.name!r}"
        check_count(where, "poison_after", self.poison_after)
        if self.breaker is not None:
            check_count(where, "breaker", self.breaker)
            if self.breaker > BREAKER_MAX:
                raise UsageError(f"{where}: breaker must be up to {BREAKER_MAX:,} jobs, not {self.breaker!r}")
        _check_flag(where, "serial", self.serial)
        _check_flag(where, "postmortem", self.postmortem)
        _check_keep(where, self.keep)
        if not _is_text(self.description):
            raise UsageError(f"{where}: description must be text in UTF-8, not {self.description!r}")
        if not _is_text(self.subject) or not lock_names.is_balanced(self.subject):
            raise UsageError(
                f"{where}: subject must be text in which every parameter is in braces of its own, as in "
                f"'{{file}}', not {self.subject!r}"
            )
        if self.submit not in SUBMIT:
            raise UsageError(f"{where}: submit must be one of {', '.join(SUBMIT)}, not {self.submit!r}")
        _check_submit_limits(where, self.submit_limits)
        if not self.stages:
            raise UsageError(f"job type {self.name!r} has no stage; give it one function or program")
        stage_names = [s.name for s in self.stages]
        twice = sorted({n for n in stage_names if stage_names.count(n) > 1})
        if twice:
            raise UsageError(f"job type {self.name!r} has two stages named {twice[0]!r}; rename one")
        for option, words in _WORDS.items():
            if getattr(self, option) not in words:
                raise UsageError(f"{where}: {option} must be {words[0]!r} or {words[1]!r}")
        if self.priority is not None:
            require_priority(self.priority, where=f"{where}: ")

    def stage(self, name: str) -> StageSpec | None:
        """Return the stage of that name, or None when the type does not have it (any more)."""
        return next((s for s in self.stages if s.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``from_json`` turns back into an equal spec. It shares nested values (the schema) with
        this."""
        return _fields(self) | {
            "keep": {str(state): seconds for state, seconds in self.keep.items()},
            "stages": [
                _fields(stage)
                | {
                    "backoff": _fields(stage.backoff),
                    "locks": [_fields(lock) for lock in stage.locks],
                    "exit_codes": {str(code): word for code, word in stage.exit_codes.items()},
                }
                for stage in self.stages
            ],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "TypeSpec":
        """Return the spec of a value made by ``to_json``. Fields of newer versions are ignored."""
        known_fields = {k: v for k, v in value.items() if k in cls.__dataclass_fields__}
        former = tuple(tuple(path) for path in value.get("former_secrets", ()))
        stages = tuple(_stage(s) for s in value["stages"])
        return cls(**known_fields | {"stages": stages, "former_secrets": former})


def _fields(spec: "TypeSpec | StageSpec | Backoff | LockSpec") -> dict[str, Any]:
    """Return the fields by name, without copies: ``asdict`` copies deeply, which takes ten times as long."""
    return {name: getattr(spec, name) for name in spec.__dataclass_fields__}


def passed_queues(spec: TypeSpec, named: str | None) -> set[str]:
    """Return the queues that a root job passes through, unless an operator moves it; rights are checked for
    all of them. ``named``: the queue that its submission names, if any, which counts for all stages."""
    if named is not None:
        return {named}
    return {stage.queue or spec.queue or DEFAULT_QUEUE for stage in spec.stages}


def _stage(value: Mapping[str, Any]) -> StageSpec:
    """Return the stage of a value in ``TypeSpec.to_json``, with defaults for fields that an older version has
    not written."""
    known_fields = {k: v for k, v in value.items() if k in StageSpec.__dataclass_fields__}
    return StageSpec(
        **known_fields
        | {
            "isolation": Isolation(value.get("isolation", "process")),
            "backoff": Backoff(**value.get("backoff", {})),
            "locks": tuple(LockSpec(**lock) for lock in value.get("locks", ())),
            "program": tuple(value.get("program", ())),
            "exit_codes": {int(k): v for k, v in value.get("exit_codes", {}).items()},
        }
    )


def check_count(where: str, option: str, value: object) -> None:
    """Raise UsageError unless the value is a whole number from 1 on. A bool is none, although it is an int."""
    if type(value) is not int or not 1 <= value <= COUNT_MAX:
        raise UsageError(
            f"{where}: {option} must be 1 or more, a whole number up to {COUNT_MAX}, not {value!r}"
        )


def require_priority(priority: object, *, where: str = "") -> int:
    """Return the priority. Raises UsageError unless it is a whole number from 0 to 99. ``where``: what the message
    begins with."""
    if type(priority) is not int or priority not in PRIORITIES:
        raise UsageError(
            f"{where}priority must be a whole number from 0 (first) to 99 (last), not {priority!r:.80}"
        )
    return priority


def _check_flag(where: str, option: str, value: object) -> None:
    """Raise UsageError unless the value is a bool; 0 and 1 are none."""
    if not isinstance(value, bool):
        raise UsageError(f"{where}: {option} must be True or False, not {value!r}")


def _check_keep(where: str, keep: object) -> None:
    """Raise UsageError unless it maps settled states to durations."""
    if not isinstance(keep, Mapping):
        raise UsageError(f'{where}: keep maps states to times, as in {{"completed": "30d"}}, not {keep!r}')
    for state, seconds in keep.items():
        if state not in SETTLED:
            raise UsageError(
                f"{where}: jobs that are {state!r} cannot be kept for a time; keep is for {', '.join(sorted(SETTLED))}"
            )
        if seconds is not None and not (_is_number(seconds) and 0 <= seconds <= KEEP_MAX_S):
            raise UsageError(
                f"{where}: keep for {state} must be 0 to {KEEP_MAX_S} seconds, or None (for ever), not {seconds!r}"
            )


def _check_submit_limits(where: str, limits: object) -> None:
    """Raise UsageError unless these are limits of a user with the paths of parameters."""
    if not isinstance(limits, Mapping) or not all(
        _is_text(parameter) and parameter for parameter in limits.values()
    ):
        raise UsageError(
            f'{where}: submit_limits maps limits to parameters, as in {{"collection": "dataset"}}, not '
            f"{limits!r}"
        )
    for limit in limits:
        if limit not in SUBMIT_LIMITS:
            raise UsageError(
                f"{where}: there is no limit {limit!r}; submit_limits has {', '.join(SUBMIT_LIMITS)}"
            )


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _is_text(value: object) -> bool:
    """Return whether a value is text that UTF-8, and so the store, can encode."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def known_type(types: Mapping[str, TypeSpec], name: str) -> TypeSpec:
    """Return the type of that name. Raises UnknownType, which suggests the nearest name."""
    spec = types.get(name)
    if spec is None:
        raise UnknownType(unknown("job type", name, types, "start a node whose application has it"))
    return spec
