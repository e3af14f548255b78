"""Who may submit jobs of a type: by role, by the limits of a parameter, or nobody but stages and schedules."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.words import Clock, Site, kind, stage
from new_store import new_store
from spinney import Spinney
from spinney.commands.control import Control
from spinney.features.external.commands import SpawnSubjobs
from spinney.features.external.service import External
from spinney.features.jobs.commands import RetryJob
from spinney.features.queues.commands import ChangeQueue
from spinney.features.schedules.commands import PutSchedule, RunSchedule
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import Forbidden, Refused, UsageError
from spinney.model.jobs import Filter
from spinney.model.types import Isolation, TypeSpec
from spinney.store.sql import open_store

LIMITS = {"collection": "dataset", "submitter": "order.by"}
ALPHA = AccessScope(collections=("alpha",))
ORDER = {"dataset": "alpha", "order": {"by": "ann"}}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(
        kind("inner", "work", submit="internal"),
        kind("urgent", "work", submit="operator"),
        kind("dataset", "work", submit_limits=LIMITS),
        kind("talk", stage("listen", isolation=Isolation.EXTERNAL)),
        kind("several", "work", submit_limits={"share": "shares"}),
        kind("routed", "work", submit_limits={"queue": "lane"}),
    )
    yield made
    store.close()


def ask(
    site: Site, role: Role = Role.SUBMITTER, within: AccessScope = AccessScope(), **limits: Any
) -> Control:
    rights = Rights(role=role, within=within, **limits)
    return Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann", rights=rights)


def is_local(site: Site) -> Control:
    return Control(
        store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann", rights=ALL_RIGHTS
    )


def schedule(type_: str, **params: Any) -> PutSchedule:
    return PutSchedule(name="mine", type=type_, every_s=60, params=params, replace=True)


WAYS: dict[str, Callable[[Control, bool], object]] = {
    "one": lambda control, internal: control.submit("inner", [{}], internal=internal),
    "lines": lambda control, internal: control.submit_lines([b'{"type": "inner"}'], internal=internal),
    "schedule": lambda control, internal: schedule("inner").put(control, internal=internal),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_internal_type_is_submitted_by_who_answers_for_it(site: Site, way: str) -> None:
    with pytest.raises(Forbidden, match="commands of the application"):
        WAYS[way](ask(site, Role.ADMIN), False)
    with pytest.raises(Refused, match="--internal"):
        WAYS[way](is_local(site), False)
    assert not site.store.schedules.all()

    WAYS[way](is_local(site), True)


def test_a_queue_and_a_line_among_others_lead_to_no_internal_type(site: Site) -> None:
    is_local(site).do(ChangeQueue(name="default", type="inner"))
    for lines in (b'{"queue": "default"}', b'{"type": "talk"}\n{"type": "inner"}'):
        with pytest.raises(Forbidden, match="'inner'"):
            ask(site).submit_lines(lines.split(b"\n"))
    with pytest.raises(Forbidden, match="'inner'"):
        ask(site).submit(None, [{}])
    assert not site.store.job_lists.find(Filter(), limit=1)


def test_stages_schedules_and_operators_go_on_with_jobs_of_internal_types(site: Site) -> None:
    schedule("inner").put(is_local(site), internal=True)
    job_id = ask(site, Role.OPERATOR).do(RunSchedule(name="mine")).id
    lease = site.claim_one()
    site.spawn(lease, "inner")
    site.fail(lease)
    ask(site, Role.OPERATOR).do(RetryJob(job=job_id))
    assert site.job(job_id).state == "pending"
    with pytest.raises(Forbidden):
        ask(site, Role.OPERATOR).do(schedule("inner", to="others"))


def test_a_type_takes_the_role_that_it_names(site: Site) -> None:
    with pytest.raises(Forbidden, match="submit 'urgent' jobs: that takes an operator"):
        ask(site).submit("urgent", [{}])
    ask(site, Role.OPERATOR).submit("urgent", [{}])
    is_local(site).submit("urgent", [{}])


@pytest.mark.parametrize(
    "params",
    [
        {**ORDER, "dataset": "beta"},
        {**ORDER, "dataset": ["alpha", "beta"]},
        {**ORDER, "dataset": []},
        {**ORDER, "dataset": None},
        {**ORDER, "dataset": {"alpha": 1}},
        {"order": {"by": "ann"}},
        {**ORDER, "order": {"by": "ben"}},
        {**ORDER, "order": {}},
        {**ORDER, "order": "ann"},
    ],
)
def test_parameters_lie_within_the_limits_of_who_asks(site: Site, params: dict[str, Any]) -> None:
    with pytest.raises(Forbidden, match="parameter"):
        ask(site, within=ALPHA).submit("dataset", [ORDER, params])
    is_local(site).submit("dataset", [params])


def test_what_lies_within_the_limits_is_taken(site: Site) -> None:
    ask(site, within=ALPHA).submit("dataset", [ORDER, {**ORDER, "dataset": ["alpha"]}])
    ask(site).submit("dataset", [{"order": {"by": "ann"}}])  # who is not limited
    ask(site, Role.OPERATOR, ALPHA).submit("dataset", [{**ORDER, "order": {"by": "ben"}}])
    ask(site, shares=("lab:*",)).submit("several", [{"shares": ["lab:1", "lab:2"]}])
    with pytest.raises(Forbidden, match="names the share"):
        ask(site, shares=("lab:*",)).submit("several", [{"shares": ["lab:1", "other"]}])
    with pytest.raises(Forbidden, match="names the queue"):
        ask(site, within=AccessScope(queues=("default",))).submit("routed", [{"lane": "night"}])


def test_a_party_makes_internal_jobs_of_types_that_it_may_claim(site: Site) -> None:
    def spawn(*external: str) -> None:
        external_worker = ask(site, external=external).part(External)
        joined = external_worker.join("ear", [("talk", "listen")])
        (work,) = external_worker.claim(joined.key, seen=0).work
        SpawnSubjobs(worker=joined.key, job=work.job_id, fence=work.fence, jobs=[{"type": "inner"}]).perform(
            external_worker
        )

    site.submit("talk", n=2)
    with pytest.raises(Forbidden, match="inner"):
        spawn("talk")
    spawn("talk", "inner")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"submit": "anybody"}, "submitter, operator, admin, internal"),
        ({"submit": "viewer"}, "submit must be one of"),
        ({"submit_limits": {"colour": "x"}}, "no limit 'colour'"),
        ({"submit_limits": {"collection": 3}}, "maps limits to parameters"),
    ],
)
def test_what_no_type_can_say_is_refused(option: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Spinney().pipeline("work", **option)


def test_a_limit_of_a_parameter_that_no_stage_takes_is_refused() -> None:
    app = Spinney()

    @app.job(submit_limits={"collection": "datset", "queue": "order.lane"})
    def work(dataset: str, order: dict[str, str]) -> None: ...

    with pytest.raises(
        UsageError, match=r"'work' .* no parameter 'datset' \(did you mean 'dataset'\?\); add it"
    ):
        _ = work.spec

    @app.job(submit_limits={"collection": "datset", "queue": "order.lane"})
    def anything(order: dict[str, str], **rest: str) -> None: ...

    assert anything.spec.submit_limits["collection"] == "datset"


def test_an_application_says_it_for_all_of_its_types() -> None:
    app = Spinney(submit="internal")
    app.program("inner", ["true"])
    app.external("outer", submit="operator", submit_limits={"collection": "dataset"})

    @app.job
    def work() -> None: ...

    specs = {name: kind.spec for name, kind in app.types.items()}
    assert {name: spec.submit for name, spec in specs.items()} == {
        "inner": "internal",
        "outer": "operator",
        "work": "internal",
    }
    assert TypeSpec.from_json(specs["outer"].to_json()) == specs["outer"]


def test_a_type_of_an_earlier_version_may_be_submitted_by_submitters() -> None:
    value = kind("old", "work").to_json()
    del value["submit"], value["submit_limits"]
    assert TypeSpec.from_json(value).submit == "submitter"
