"""Operators' verbs on one job, for tests that have the store: each in the steps of a bulk run, as users have it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spinney.features.bulk.step_run import STEP, StepRun
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.rights.actor import Actor
from spinney.store.parts import Store


@dataclass(slots=True)
class Changed:
    """The jobs that a verb changed, and the others that wait again because of it."""

    ids: list[int] = field(default_factory=list)
    reopened: list[int] = field(default_factory=list)


def carry_out(store: Store, order: Order, job_id: int, *, by: str, now_us: int) -> Changed:
    """Apply an order to a job. Raises the refusal of this job, or that of another if nothing was done."""
    changed, errors = Changed(), {}
    actor = Actor(by=by, reason=order.reason)
    for step in StepRun(store, order, actor, lambda: now_us, lambda: STEP).to([job_id]):
        changed.ids += [number for number in step.touched if number not in changed.ids]
        changed.reopened += [number for number in step.reopened if number not in changed.reopened]
        errors |= step.errors
    if job_id in errors or (errors and not changed.ids):
        raise errors.get(job_id) or next(iter(errors.values()))
    while order.tree and store.sweep(now_us=now_us).more:
        pass
    return changed


def preview(
    store: Store, order: Order, job_ids: Sequence[int], *, now_us: int
) -> Mapping[int, tuple[str, Sequence[str]]]:
    """Return what an order would make these and other jobs run: the type and the stages of each."""
    with store.bulk.trial():
        steps = StepRun(store, order, Actor(by="ann"), lambda: now_us, lambda: STEP).to(job_ids)
        return store.bulk.stages_left(
            [job_id for step in steps for job_id in (*step.touched, *step.reopened)]
        )


def cancel(
    store: Store, job_id: int, *, tree: bool = False, by: str = "ann", reason: str | None = None, now_us: int
) -> Changed:
    return carry_out(store, Order(verb=Verb.CANCEL, tree=tree, reason=reason), job_id, by=by, now_us=now_us)


def retry(store: Store, job_id: int, *, stage: str | None = None, by: str = "ann", now_us: int) -> Changed:
    return carry_out(store, Order(verb=Verb.RETRY, stage=stage), job_id, by=by, now_us=now_us)


def rerun(store: Store, job_id: int, *, stage: str | None = None, by: str = "ann", now_us: int) -> Changed:
    return carry_out(store, Order(verb=Verb.RERUN, stage=stage), job_id, by=by, now_us=now_us)


def release(store: Store, job_id: int, *, by: str = "ann", now_us: int) -> Changed:
    return carry_out(store, Order(verb=Verb.RELEASE), job_id, by=by, now_us=now_us)


def delete(store: Store, job_id: int, *, by: str = "ann", now_us: int) -> list[int]:
    return carry_out(store, Order(verb=Verb.DELETE), job_id, by=by, now_us=now_us).ids
