"""The counterpart of ``Bulk``: one verb for many jobs, looked at first, then done step by step on the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spinney.cli.remote.client import RetryingClient
from spinney.cli.remote.filters import which as asked_for
from spinney.client.calls import Call, json_body, path, request
from spinney.client.verbs.job_actions import Canary as AskedCanary
from spinney.features.bulk.service import OnCanaryCheck, OnStep
from spinney.features.bulk.step_run import STEP
from spinney.model.bulk_runs import Plan, Report, StageCount
from spinney.model.errors import NoSuchJob, Refused
from spinney.model.jobs import Filter
from spinney.model.rights.operators import BulkStep, Order, Verb
from spinney.schemas import VerbResult
from spinney.service import canary

LONGEST_S = 3_600.0
"""A server waits no longer for the jobs of a canary, each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePlan(Plan):
    """What the server said to expect."""

    stages: Sequence[StageCount] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRun:
    """How far a canary is."""

    begun: int
    rested: int
    bad: int


class RemoteBulk:
    """As ``Bulk``."""

    def __init__(self, client: RetryingClient) -> None:
        self._client = client

    def plan(
        self, order: Order, which: Filter | None = None, ids: Sequence[int] = (), *, exact: bool = False
    ) -> Plan:
        """``exact``: a server always is."""
        fits = None if which is None else asked_for(which)
        found = self._client.plan(str(order.verb), ids=list(ids) or None, which=fits, **_how(order))
        return RemotePlan(
            order=order,
            which=which,
            ids=tuple(dict.fromkeys(ids)),
            jobs=found.jobs,
            more=found.more,
            stages=found.stages,
        )

    def stages(self, plan: Plan) -> Sequence[StageCount]:
        return plan.stages if isinstance(plan, RemotePlan) else ()

    def run(
        self,
        plan: Plan,
        *,
        remove: Callable[[int], None] | None = None,
        canary: canary.Canary | None = None,
        at_once: int = STEP,
        on_step: OnStep = lambda report, step: None,
        on_canary_check: OnCanaryCheck = lambda report, canary: None,
    ) -> Report:
        """``remove`` is not needed: the server removes the folders of what is deleted."""
        report = Report()
        if at_once == 1 and plan.which is None and canary is None:
            for job_id in plan.ids:
                self._one(plan.order, job_id, report, on_step)
            return report
        for line in self._client.follow(self._call(plan, canary)):
            _take(line, report, on_step, on_canary_check)
        return report

    def _one(self, order: Order, job_id: int, report: Report, on_step: OnStep) -> None:
        try:
            step = self._stepped(order, job_id)
        except (Refused, NoSuchJob) as refusal:
            step = BulkStep(touched=(), refused={job_id: str(refusal)})
        report.add(step)
        on_step(report, step)

    def _stepped(self, order: Order, job_id: int) -> BulkStep:
        if order.and_after:
            found = self._client.run_verb(str(order.verb), ids=[job_id], **_how(order))
            return BulkStep(
                touched=(job_id,) * bool(found.touched), reopened=range(found.reopened), refused=found.refused
            )
        done = self._client.send(_single(order, job_id))
        return BulkStep(touched=done.touched, reopened=done.reopened)

    def _call(self, plan: Plan, canary: canary.Canary | None) -> Call[Any]:
        order = plan.order
        body = json_body(
            verb=str(order.verb),
            ids=list(plan.ids) or None,
            filter=None if plan.which is None else json_body(**asked_for(plan.which)),
            canary=_canary(canary),
            **_how(order),
        )
        return request("POST", "/jobs/verbs", json=body)


def _canary(canary: canary.Canary | None) -> AskedCanary | None:
    if canary is None:
        return None
    patience_s = LONGEST_S if canary.patience_s is None else min(canary.patience_s, LONGEST_S)
    return AskedCanary(first=canary.first, stop_at=canary.stop_at, patience_s=patience_s)


def _single(order: Order, job_id: int) -> Call[Any]:
    where = path("/jobs/{}", job_id)
    if order.verb is Verb.DELETE:
        return request("DELETE", where, VerbResult, reason=order.reason)
    how = {name: value for name, value in _how(order).items() if name != "and_after"}
    return request("POST", f"{where}/{order.verb}", VerbResult, how)


def _how(order: Order) -> Any:
    """What is said of the verb beside itself."""
    return json_body(
        reason=order.reason,
        stage=order.stage,
        and_after=order.and_after or None,
        tree=order.tree or None,
        queue=order.queue,
        priority=order.priority,
        until=order.until_us,
    )


def _take(line: Any, report: Report, on_step: OnStep, on_canary_check: OnCanaryCheck) -> None:
    """What a line of the answer tells: a step, a look at a canary, or the end."""
    if "canary" in line:
        on_canary_check(report, CanaryRun(**line["canary"]))  # type: ignore[arg-type]
        return
    found = line.get("step") or line["report"]
    report.touched, report.reopened = found["touched"], found["reopened"]
    report.skipped = found["skipped"]
    if "report" in line:
        report.refused = {int(job): sentence for job, sentence in found["refused"].items()}
        report.stopped = found["stopped"]
        return
    on_step(report, BulkStep(touched=()))
