"""Verbs on jobs, as forms of pages give them: on one job, on some that were chosen, or on all that match a
filter.

A page can show the plan of an order before its details are entered (``planned``); the form that follows
carries the order out, in a run that may last longer than the request (``spinney.features.bulk.page``).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from spinney.commands.control import Control
from spinney.features.bulk.page import BulkRun
from spinney.features.bulk.service import Bulk
from spinney.model.access import Role
from spinney.model.errors import NoSuchJob, UsageError
from spinney.model.jobs import Filter, job_number
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Order, Verb
from spinney.model.operators.bulk_runs import Plan, Report
from spinney.model.rights.allowed_verbs import OWN_JOB_VERBS
from spinney.model.settings.holds import Hold, Scope, scope_text
from spinney.model.states import State
from spinney.model.values.hints import first_of, listed
from spinney.model.values.texts import counted, whole_number
from spinney.model.values.times import parse_time
from spinney.web.request_context import Principal, RequestContext, now_us

FIELDS = (
    "verb",
    "reason",
    "from_stage",
    "and_after",
    "tree",
    "to_queue",
    "to_priority",
    "until",
    "expect",
    "csrf",
    "id",
    "all",
)
"""The fields of forms beside those of filters, none of which has the name of a filter: a queue to move to is not the
queue to look in, and a stage to run from not the stage of the jobs."""
IDS_MAX = 1_000
"""The most jobs that a form may name one by one."""
_DONE: Mapping[Verb, str] = {
    Verb.RETRY: "retried",
    Verb.RERUN: "will run again",
    Verb.RUN_NOW: "due now",
    Verb.CANCEL: "cancelled",
    Verb.HOLD: "held",
    Verb.RELEASE: "released",
    Verb.DELETE: "deleted",
    Verb.MOVE: "moved",
    Verb.PRIORITY: "reprioritised",
}
"""What the jobs are called after each verb, in sentences."""
_REASONS = 3
"""How many reasons of refusals a sentence names."""

Form = Mapping[str, str]
"""The fields of a form, by name."""


def usable(principal: Principal, states: Collection[State] | None = None) -> list[str]:
    """Return the verbs that the caller may use on any job at all, in the order of their buttons.

    ``states``: those of the jobs on the page, at least one of which must allow the verb; None: any.
    Submitters may use the verbs that are allowed on their own jobs, viewers none.
    """
    allowed = [verb for verb in Verb if states is None or not ALLOWED_STATES[verb].isdisjoint(states)]
    if not principal.rights.permits(Role.OPERATOR):
        own = OWN_JOB_VERBS if principal.rights.permits(Role.SUBMITTER) else ()
        allowed = [verb for verb in allowed if verb in own]
    return [str(verb) for verb in allowed]


def verb(text: str) -> Verb:
    """Return the verb of this name. Raises UsageError, which lists the verbs."""
    if text not in list(Verb):
        raise UsageError(f"there is no verb {text[:40]!r}; use one of: {listed(Verb)}")
    return Verb(text)


def order(form: Form) -> Order:
    """Return the order that a form gives. Fields that do not belong to its verb are ignored. Raises UsageError for
    values that cannot be meant."""
    verb_ = verb(form.get("verb", ""))
    until = form.get("until", "").strip()
    priority = form.get("to_priority", "").strip()
    if priority and whole_number(priority, digits=2) is None:
        raise UsageError(f"{priority[:40]!r} is no priority; use 0 (first) to 99 (last)")
    reruns = verb_ in (Verb.RETRY, Verb.RERUN)
    return Order(
        verb=verb_,
        reason=form.get("reason", "").strip() or None,
        stage=form.get("from_stage", "").strip() or None if reruns else None,
        and_after=reruns and bool(form.get("and_after")),
        tree=verb_ is Verb.CANCEL and bool(form.get("tree")),
        queue=form.get("to_queue", "").strip() or None if reruns or verb_ is Verb.MOVE else None,
        priority=int(priority) if priority and verb_ is Verb.PRIORITY else None,
        until_us=parse_time(until, now_us(), ahead=True) if until and verb_ is Verb.HOLD else None,
    )


def numbers(texts: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the jobs that were chosen, each once. Raises UsageError for other texts, and for more than
    ``IDS_MAX`` jobs."""
    if len(texts) > IDS_MAX:
        raise UsageError(f"more than {IDS_MAX:,} jobs were chosen; choose by a filter instead")
    job_ids = [job_id for text in texts if (job_id := job_number(text)) is not None]
    if len(job_ids) < len(texts):
        raise UsageError("a job is chosen by its number; go back and choose again")
    return tuple(dict.fromkeys(job_ids))


async def run_on(context: RequestContext, order: Order, job_id: int) -> Report:
    """Carry out an order on one job, and return the report, which has the reason when it was refused.

    Raises what planning raises: UsageError, Forbidden.
    """
    return await context.run(
        lambda control: control.part(Bulk).run(control.part(Bulk).plan(order, ids=(job_id,))),
        long=order.tree or order.and_after or order.verb is Verb.DELETE,
        disk=order.verb is Verb.DELETE,
    )


async def run_plan(context: RequestContext, run: BulkRun) -> Report:
    """Carry out the plan of a run, step by step, with the rights of the caller of ``context``; ``run`` is
    informed of each step."""
    return await context.run(
        lambda control: control.part(Bulk).run(run.plan, on_step=run.step),
        long=True,
        disk=run.plan.order.verb is Verb.DELETE,
    )


def planned(control: Control, order: Order, job_filter: Filter | None, ids: Sequence[int]) -> Plan:
    """Return the plan of an order before its details are entered. A missing reason, queue or priority is replaced by
    a sample value, because none of them changes which jobs match; the plan is exact unless queue or priority was
    missing."""
    trial = replace(
        order,
        reason=order.reason or "to be said",
        queue=order.queue or (_some_queue(control, job_filter, ids) if order.verb is Verb.MOVE else None),
        priority=_some_priority(control)
        if order.verb is Verb.PRIORITY and order.priority is None
        else order.priority,
    )
    exact = (
        order.verb not in (Verb.MOVE, Verb.PRIORITY) or order.queue is not None or order.priority is not None
    )
    return control.part(Bulk).plan(trial, job_filter, ids, exact=exact)


def remaining_holds(control: Control, plan: Plan) -> Sequence[Hold]:
    """Return the holds that keep the jobs of a release held all the same; empty for other verbs.

    For one job these are the holds that cover it, for many those on everything and on a name in their filter.
    Others may cover some of the jobs.
    """
    if plan.order.verb is not Verb.RELEASE:
        return ()
    if len(plan.ids) == 1:
        try:
            return [hold for hold in control.queries.holds_on(plan.ids[0]) if hold.scope is not Scope.JOB]
        except NoSuchJob:
            return ()
    chosen = plan.job_filter or Filter()
    covering = {
        (Scope.EVERYTHING, ""),
        (Scope.QUEUE, chosen.queue),
        (Scope.TYPE, chosen.type),
        (Scope.COLLECTION, chosen.collection),
        (Scope.SUBMITTER, chosen.submitter),
        (Scope.TREE, str(chosen.root_id)),
    }
    return [hold for hold in control.queries.holds() if (hold.scope, hold.name) in covering]


def named(holds: Sequence[Hold]) -> str:
    """Return the first two of the holds in words; empty: there is none."""
    return first_of([f"hold {hold.id} on {scope_text(hold.scope, hold.name)}" for hold in holds], most=2)


async def outcome(context: RequestContext, plan: Plan, report: Report) -> tuple[str, str | None]:
    """Return ``outcome_sentences`` of a run, with the holds by which released jobs stay held."""
    holds: Sequence[Hold] = ()
    if plan.order.verb is Verb.RELEASE and report.touched:
        holds = await context.run(lambda control: remaining_holds(control, plan))
    return outcome_sentences(plan.order.verb, report, holds)


def outcome_sentences(verb_: Verb, report: Report, holds: Sequence[Hold] = ()) -> tuple[str, str | None]:
    """Return what was done as a sentence, and as another one what was refused (None: nothing was). ``holds``: those by
    which the released jobs stay held."""
    still = f", still held by {named(holds)}" if holds else ""
    parts = [f"{counted(report.touched, 'job')} {_DONE[verb_]}{still}"]
    if report.reopened:
        others = "1 other job waits" if report.reopened == 1 else f"{report.reopened:,} other jobs wait"
        parts.append(f"{others} for {'it' if report.touched == 1 else 'them'}")
    if report.skipped:
        parts.append(f"{report.skipped:,} left as {'it is' if report.skipped == 1 else 'they are'}")
    return "; ".join(parts), f"stopped: {report.stopped}" if report.stopped else refusals(report.refused)


def refusals(refused: Mapping[int, str], how: str = "refused") -> str | None:
    """Return why the verb is not applied to these jobs, as a sentence with the most frequent reasons first; None when
    there are no such jobs."""
    if len(refused) <= 1:
        return next(iter(refused.values()), None)
    reasons = Counter(sentence.partition("; ")[0] for sentence in refused.values())
    first = "; ".join(sentence for sentence, _ in reasons.most_common(_REASONS))
    return f"{len(refused):,} {how}: {first}"


def _some_queue(control: Control, job_filter: Filter | None, ids: Sequence[int]) -> str | None:
    """Return the queue of the newest of the jobs, to plan a move with; ``default`` where there is none."""
    jobs = control.queries.jobs(
        Filter(ids=tuple(ids)) if ids else job_filter or Filter(), limit=1, newest=True
    )
    return jobs[0].queue if jobs else "default"


def _some_priority(control: Control) -> int:
    """Return a priority that the caller may give."""
    allowed = control.rights.priorities
    return 50 if allowed is None else allowed[0]
