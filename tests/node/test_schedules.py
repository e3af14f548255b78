"""Schedules on real nodes, which need no elected one among them."""

from itertools import pairwise

import pytest
from node_fixtures import Cluster, cluster, now_us

from long_tests import long_alone
from spinney.model.jobs import Filter, Job
from spinney.model.rights.actor import Actor
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule, ScheduleRun
from spinney.model.states import State
from spinney.wakeup.local import wake_local_nodes
from waiting import until

__all__ = ["cluster"]

ANN = Actor(by="ann", call="c")
SECOND_US = 1_000_000


def put(cluster: Cluster, schedule: Schedule) -> None:
    cluster.store.schedules.put(schedule, ANN, now_us=now_us())
    wake_local_nodes(cluster.run_dir)


def find(cluster: Cluster, name: str) -> Schedule | None:
    return next((s for s in cluster.store.schedules.all() if s.name == name), None)


def runs(cluster: Cluster, name: str) -> list[ScheduleRun]:
    return list(reversed(cluster.store.schedules.runs(name, limit=1000)))


def test_two_nodes_make_one_job_a_nominal_time(cluster: Cluster) -> None:
    # Given two nodes on one store, and a job for each second
    for name in ("oak", "ash"):
        cluster.start(name=name)
    for node in cluster.nodes:
        node.joined()
    put(cluster, Schedule(name="each", type="noop", every_s=1, overlap=Overlap.ALLOW, catch_up=CatchUp.ALL))
    # When some seconds have passed
    until(lambda: len(runs(cluster, "each")) >= 4, "four times have come")
    for node in cluster.nodes:
        node.stop()
    # Then there is one job for each, made soon, and no other
    made = runs(cluster, "each")
    assert {b.nominal_us - a.nominal_us for a, b in pairwise(made)} == {SECOND_US}
    jobs = [cluster.store.job(r.job_id or 0) for r in made]
    assert len({job.id for job in jobs}) == len(jobs) == sum(cluster.counts().values())
    for run, job in zip(made, jobs, strict=True):
        assert run.nominal_us <= job.created_us < run.nominal_us + 10 * SECOND_US
    assert {job.state for job in jobs} == {State.COMPLETED}


@pytest.mark.parametrize("overlap", [pytest.param(Overlap.SKIP, marks=long_alone), Overlap.QUEUE])
def test_jobs_that_take_longer_than_their_interval_never_overlap_beside_what_cannot_be_told(
    cluster: Cluster, overlap: Overlap
) -> None:
    node = cluster.node(slots=4)
    # Given a schedule in a store, too, that a host has written which knows a zone more
    put(cluster, Schedule(name="abroad", type="noop", cron="* * * * *", zone="Europe/Berlin"))
    with cluster.store._write() as tx:  # type: ignore[attr-defined]
        tx.run("update schedules set spec = replace(spec, 'Europe/Berlin', 'Europe/Atlantis'), next_us = 1")
    # When jobs take longer than their interval
    put(
        cluster,
        Schedule(
            name="slow", type="nap", every_s=1, params={"seconds": 1.1}, overlap=overlap, catch_up=CatchUp.ALL
        ),
    )

    def ended() -> list[int]:
        ids = [r.job_id for r in runs(cluster, "slow") if r.job_id is not None]
        return [i for i in ids if cluster.store.job(i).state is State.COMPLETED]

    ids = until(lambda: ids if len(ids := ended()) >= 3 else [], "three have ended")

    # Then they never overlap, and the other schedule, which cannot be told here, is logged
    attempts = [cluster.attempts(i)[0] for i in ids]
    assert all(
        before.ended_us and before.ended_us <= after.started_us for before, after in pairwise(attempts)
    )
    passed_over = {r.outcome for r in runs(cluster, "slow") if r.job_id is None}
    assert passed_over <= {"skipped" if overlap is Overlap.SKIP else "queued"}
    if overlap is Overlap.QUEUE:
        nominal = [r.nominal_us for r in runs(cluster, "slow") if r.job_id in ids]
        assert {b - a for a, b in pairwise(nominal)} == {SECOND_US}, "one that waits loses no time"
    assert "schedule 'abroad': there is no time zone 'Europe/Atlantis'" in node.stop()


def test_what_code_declares_is_made_by_the_node_that_runs_it(cluster: Cluster) -> None:
    node = cluster.node(app="schedule_app:app")
    first = until(lambda: runs(cluster, "declared"), "its first time has come")[0]
    job = cluster.settled([first.job_id or 0])[0]
    assert (job.submitter, job.params) == ("clock", {"word": "!"})
    due = cluster.store.get_data(job.id)["schedule"]["at"]
    assert cluster.store.results(job.id) == {"stamp": f"{due}!"}
    declared = find(cluster, "declared")
    assert declared is not None
    assert (declared.by, declared.declared) == ("code", True)
    node.stop()


@long_alone
def test_what_an_operator_said_outlasts_the_start_of_a_node(cluster: Cluster) -> None:
    # Given a node that has declared a schedule, which somebody then pauses and another drops
    cluster.node(app="schedule_app:app").stop()
    cluster.store.schedules.pause("declared", ANN, paused=True, now_us=now_us())
    # When it starts again
    cluster.node(app="schedule_app:app").stop()
    # Then it is paused still
    schedule = find(cluster, "declared")
    assert schedule is not None
    assert (schedule.paused, schedule.declared) == (True, True)
    # And what he changed is told in the node's log, and stays
    put(cluster, Schedule(name="declared", type="stamp", every_s=3600))
    log = cluster.node(app="schedule_app:app").stop()
    assert "schedule declared stays as an operator made it" in log
    schedule = find(cluster, "declared")
    assert schedule is not None
    assert (schedule.every_s, schedule.declared) == (3600, False)


def test_a_poll_never_has_two_jobs_of_a_row_at_once_and_the_others_go_on(cluster: Cluster) -> None:
    rows = cluster.place / "visits.csv"
    rows.write_text(f"receiver,ends\nslow,{cluster.place}\nquick,{cluster.place}\n")
    (cluster.place / "quick").touch()
    node = cluster.node(app="schedule_app:app", slots=3, env={"VISITS": str(rows)})

    def jobs(receiver: str) -> list[Job]:
        every = cluster.store.jobs(Filter(type="visit"), limit=1000)
        return [job for job in every if job.params["receiver"] == receiver]

    until(lambda: len(jobs("quick")) >= 3, "the quick row gets its jobs")
    (slow,) = jobs("slow")
    assert slow.state in (State.CLAIMED, State.RUNNING)
    (cluster.place / "slow").touch()
    until(lambda: len(jobs("slow")) >= 2, "the slow row gets its next job")
    node.stop()
