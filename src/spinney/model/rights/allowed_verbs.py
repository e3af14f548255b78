"""Which verbs may be used on a job now, by its state and the caller's rights."""

from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.jobs import Job
from spinney.model.operators.bulk_orders import DEFAULT_STATES, Verb
from spinney.model.states import ENDED, TRANSITIONS, UNSUCCESSFUL, State

OWN_JOB_VERBS = frozenset({Verb.CANCEL, Verb.RETRY, Verb.RUN_NOW, Verb.HOLD, Verb.RELEASE})
"""The verbs that submitters may use on their own jobs."""


def allowed(job: Job, rights: Rights = ALL_RIGHTS, by: str | None = None) -> list[str]:
    """Return the verbs that ``by`` may use on this job now, in the order of ``Verb``.

    Only the job's own state is considered. A verb may still be refused because of other jobs: a cancel of a job with
    open subjobs takes the whole tree, and under an open batch nothing is deleted."""
    return [str(verb) for verb in Verb if _lawful(verb, job) and may(verb, job, rights, by)]


def may(verb: Verb, job: Job, rights: Rights, by: str | None) -> bool:
    """Return whether a caller may use a verb on a job, whatever its state."""
    if not rights.within.holds(job.collection, job.queue):
        return False
    if rights.permits(Role.OPERATOR):
        return True
    return verb in OWN_JOB_VERBS and rights.permits(Role.SUBMITTER) and by is not None and job.submitter == by


def _lawful(verb: Verb, job: Job) -> bool:
    if verb is Verb.CANCEL:
        return State.CANCELLED in TRANSITIONS[job.state] and not job.cancelling
    if verb is Verb.RETRY:
        return job.state in UNSUCCESSFUL
    if verb is Verb.RERUN:
        return job.state in ENDED
    if verb is Verb.DELETE:
        return State.DELETED in TRANSITIONS[job.state]
    return job.state in DEFAULT_STATES[verb] and not job.cancelling
