"""The stages of a job with their attempts, from which the picture on its page is drawn. No I/O.

A job has a history of attempts, and its type a list of stages; neither is enough alone. The type may have
changed since the job ran, stages that have not been reached have no attempts, and attempts of an outdated run
no longer count."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.model.jobs import Attempt, Job
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.states import LEASED, SETTLED, UNSUCCESSFUL, State
from spinney.model.types import TypeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stage of a job with its attempts, as the page of the job shows it."""

    stage: str
    status: str
    """A state or an outcome: ``ok``, ``running``, ``failed``, …; ``later``: the stage has not been reached."""
    attempts: int
    """How many attempts of the stage there were."""
    number: int
    """The number of the last attempt, as ``numbered`` counts; 0: there is none."""
    last: Attempt | None
    """The last attempt that counts, or else the last."""
    again: bool = False
    """It runs once more when the tree below regrew."""
    removed: bool = False
    """The job type has it no more."""


def numbered(attempts: Sequence[Attempt]) -> Mapping[int, int]:
    """Return the numbers by which pages call attempts, by fence: the n-th of its stage, the oldest first.

    The store counts anew after a retry, so that two attempts of a stage may both be its first."""
    counts: Counter[str] = Counter()
    numbers = {}
    for attempt in attempts:
        counts[attempt.stage] += 1
        numbers[attempt.fence] = counts[attempt.stage]
    return numbers


def current(job: Job, attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the attempt that the page of a job speaks of, in its picture, failure and output: the one that runs, else
    the last one where that failed; None: no single one. ``attempts``: the oldest first."""
    begun = [attempt for attempt in attempts if attempt.started_us and not attempt.superseded]
    if not begun or job.state is State.COMPLETED:
        return None
    last = begun[-1]
    return last if last.ended_us is None or last.error or last.outcome not in PASSED else None


def steps(job: Job, spec: TypeSpec | None, attempts: Sequence[Attempt]) -> list[Step]:
    """Return the stages in their order; before them those that the type has no longer, in the order in which they ran.
    ``spec`` None: the job type is not registered, so only stages that were attempted are known. ``attempts``: the
    oldest first."""
    current = [] if spec is None else [stage.name for stage in spec.stages]
    removed = [name for name in dict.fromkeys(a.stage for a in attempts) if name not in current]
    again = set() if spec is None else {stage.name for stage in spec.stages if stage.again}
    finished = any(a.outcome is Outcome.FINISH and not a.superseded for a in attempts)
    numbers = numbered(attempts)
    result = []
    for name in [*removed, *current]:
        of_stage = [a for a in attempts if a.stage == name]
        counted = [a for a in of_stage if not a.superseded]
        shown = counted or of_stage  # superseded ones only where there are no others
        last = shown[-1] if shown else None
        step = Step(
            stage=name,
            status=_status(name, job, counted, finished),
            attempts=len(counted),
            number=0 if last is None else numbers[last.fence],
            last=last,
            again=name in again,
            removed=name in removed,
        )
        result.append(step)
    return result


def _status(name: str, job: Job, counted: Sequence[Attempt], finished: bool) -> str:
    """Return the status of a stage: the state of the job where it is at this stage, else the outcome of the last
    attempt that counts, else ``later`` or not applicable."""
    passed = next((a.outcome for a in reversed(counted) if a.outcome in PASSED), None)
    if job.stage == name and job.state not in SETTLED and (passed is None or job.state in LEASED):
        return str(job.state)
    if passed is not None:
        return str(passed)
    last = counted[-1].outcome if counted else None
    if job.stage == name and job.state in UNSUCCESSFUL:
        return str(job.state)
    if last is not None:
        return str(last)
    if finished or job.state is State.COMPLETED:
        return str(Outcome.NOT_APPLICABLE)
    return "later"
