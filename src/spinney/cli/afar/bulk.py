"""The twin of ``Bulk``: one verb for many jobs, looked at first, then done step by step on the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spinney.answers import Done
from spinney.cli.afar.connecting import Patient
from spinney.cli.afar.filters import which as asked_for
from spinney.client.calls import Call, do, path, said
from spinney.client.verbs.doing import Canary as AskedCanary
from spinney.control import trial
from spinney.control.bulk import OnLook, OnStep, Plan, Report, StageCount
from spinney.control.stepping import STEP
from spinney.model.errors import NoSuchJob, Refused
from spinney.model.jobs import Filter
from spinney.model.operators import Order, Step, Verb

LONGEST_S = 3_600.0
"""A server waits no longer for the jobs of a canary, each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfarPlan(Plan):
    """What the server said to expect."""

    stages: Sequence[StageCount] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How far a canary is."""

    begun: int
    rested: int
    bad: int


class AfarBulk:
    """As ``Bulk``."""

    def __init__(self, client: Patient) -> None:
        self._client = client

    def plan(
        self, order: Order, which: Filter | None = None, ids: Sequence[int] = (), *, exact: bool = False
    ) -> Plan:
        """``exact``: a server always is."""
        fits = None if which is None else asked_for(which)
        found = self._client.plan(str(order.verb), ids=list(ids) or None, which=fits, **_how(order))
        return AfarPlan(
            order=order,
            which=which,
            ids=tuple(dict.fromkeys(ids)),
            jobs=found.jobs,
            more=found.more,
            stages=found.stages,
        )

    def stages(self, plan: Plan) -> Sequence[StageCount]:
        return plan.stages if isinstance(plan, AfarPlan) else ()

    def run(
        self,
        plan: Plan,
        *,
        remove: Callable[[int], None] | None = None,
        canary: trial.Canary | None = None,
        at_once: int = STEP,
        on_step: OnStep = lambda report, step: None,
        on_look: OnLook = lambda report, trial: None,
    ) -> Report:
        """``remove`` is not needed: the server removes the folders of what is deleted."""
        report = Report()
        if at_once == 1 and plan.which is None and canary is None:
            for job_id in plan.ids:
                self._one(plan.order, job_id, report, on_step)
            return report
        for line in self._client.follow(self._call(plan, canary)):
            _take(line, report, on_step, on_look)
        return report

    def _one(self, order: Order, job_id: int, report: Report, on_step: OnStep) -> None:
        try:
            step = self._stepped(order, job_id)
        except (Refused, NoSuchJob) as refusal:
            step = Step(touched=(), refused={job_id: str(refusal)})
        report.add(step)
        on_step(report, step)

    def _stepped(self, order: Order, job_id: int) -> Step:
        if order.and_after:
            found = self._client.carry_out(str(order.verb), ids=[job_id], **_how(order))
            return Step(
                touched=(job_id,) * bool(found.touched), reopened=range(found.reopened), refused=found.refused
            )
        done = self._client.send(_single(order, job_id))
        return Step(touched=done.touched, reopened=done.reopened)

    def _call(self, plan: Plan, canary: trial.Canary | None) -> Call[Any]:
        order = plan.order
        body = said(
            verb=str(order.verb),
            ids=list(plan.ids) or None,
            filter=None if plan.which is None else said(**asked_for(plan.which)),
            canary=_canary(canary),
            **_how(order),
        )
        return do("POST", "/jobs/verbs", json=body)


def _canary(canary: trial.Canary | None) -> AskedCanary | None:
    if canary is None:
        return None
    patience_s = LONGEST_S if canary.patience_s is None else min(canary.patience_s, LONGEST_S)
    return AskedCanary(first=canary.first, stop_at=canary.stop_at, patience_s=patience_s)


def _single(order: Order, job_id: int) -> Call[Any]:
    where = path("/jobs/{}", job_id)
    if order.verb is Verb.DELETE:
        return do("DELETE", where, Done, reason=order.reason)
    how = {name: value for name, value in _how(order).items() if name != "and_after"}
    return do("POST", f"{where}/{order.verb}", Done, how)


def _how(order: Order) -> Any:
    """What is said of the verb beside itself."""
    return said(
        reason=order.reason,
        stage=order.stage,
        and_after=order.and_after or None,
        tree=order.tree or None,
        queue=order.queue,
        priority=order.priority,
        until=order.until_us,
    )


def _take(line: Any, report: Report, on_step: OnStep, on_look: OnLook) -> None:
    """What a line of the answer tells: a step, a look at a canary, or the end."""
    if "canary" in line:
        on_look(report, Trial(**line["canary"]))  # type: ignore[arg-type]
        return
    found = line.get("step") or line["report"]
    report.touched, report.reopened = found["touched"], found["reopened"]
    report.passed_over = found["passed_over"]
    if "report" in line:
        report.refused = {int(job): sentence for job, sentence in found["refused"].items()}
        report.stopped = found["stopped"]
        return
    on_step(report, Step(touched=()))
