"""Links to the folders of jobs, by state, that the leader keeps and the doctor repairs."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from node_fixtures import Cluster, cluster, now_us

import job_verbs
from spinney.features.doctor.view_check import RULE, ViewCheck
from spinney.folders.views import ViewTree
from spinney.model.jobs import JOB_ID_MAX, Filter
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.model.types import StageSpec, TypeSpec
from spinney.model.values.paths import job_folder
from waiting import until

__all__ = ["cluster"]

ANN = Actor(by="ann", call="c")


@pytest.fixture
def views(cluster: Cluster) -> Path:
    """The directory that turns the views on, in a store that knows a type before a node runs."""
    cluster.store.register([TypeSpec(name="noop", stages=(StageSpec(name="noop"),))], [])
    path = cluster.folders / "views"
    path.mkdir()
    return path


def links(views: Path) -> dict[str, int]:
    """All links, with the job to whose folder each leads."""
    paths = [Path(at, name) for at, folders, files in os.walk(views) for name in folders + files]
    return {
        str(path.relative_to(views)): int(path.resolve().name)
        for path in paths
        if path.is_symlink() and path.name.isdecimal() and path.exists()
    }


def folder(cluster: Cluster, job_id: int) -> Path:
    path = cluster.folders / job_folder(job_id)
    path.mkdir(parents=True)
    return path


def day(cluster: Cluster, job_id: int) -> str:
    settled_us = cluster.store.job(job_id).settled_us
    assert settled_us is not None
    return f"{datetime.fromtimestamp(settled_us / 1e6, UTC):%Y/%m/%d}"


def repaired(cluster: Cluster) -> list[str]:
    """Repair all that the doctor finds; return its sentences."""
    check = ViewCheck(cluster.folders, cluster.store)
    violations = list(check.examine({RULE}, now_us=now_us()))
    for violation in violations:
        check.repair(violation, ANN, now_us=now_us())  # one may mend what another names, too
    assert not list(check.examine({RULE}, now_us=now_us()))
    return [violation.sentence for violation in violations]


def test_a_link_follows_its_job_through_its_states(cluster: Cluster, views: Path) -> None:
    flag = cluster.place / "flag"
    (job,) = cluster.submit("noop")
    folder(cluster, job)
    node = cluster.node(app="stacks_app:app", name="oak")
    until(lambda: links(views) == {f"queue/default/{job:08d}": job}, "it waits")
    (running,) = cluster.submit("slow", {"flag": str(flag)})
    until(lambda: f"running/oak/{running:08d}" in links(views), "it runs")
    flag.touch()
    cluster.settled([running])
    done = f"done/{day(cluster, running)}/{running:08d}"
    until(lambda: links(views) == {f"queue/default/{job:08d}": job, done: running}, "it is done")
    until(lambda: not (views / "running").exists(), "its empty folder is removed")
    node.stop()


def test_a_node_killed_in_the_middle_leaves_what_the_next_puts_in_order(
    cluster: Cluster, views: Path
) -> None:
    ids = cluster.submit("noop", *({} for _ in range(400)))
    for job in ids:
        folder(cluster, job)
    node = cluster.node()
    until(lambda: len(links(views)) > 20)
    node.kill()

    after = cluster.node(name="ash")
    cluster.settled(ids)

    right = {f"done/{day(cluster, job)}/{job:08d}": job for job in ids}
    until(lambda: links(views) == right)
    after.stop()


def test_a_removed_job_loses_its_link(cluster: Cluster, views: Path) -> None:
    node = cluster.node()
    (job,) = cluster.run("noop")
    folder(cluster, job.id)
    until(lambda: len(links(views)) == 1)
    job_verbs.delete(cluster.store, job.id, by="ann", now_us=now_us())
    until(lambda: not list(views.iterdir()), "nothing of it is left")
    node.stop()


def test_the_doctor_repairs_what_is_missing_or_wrong_and_leaves_the_rest(
    cluster: Cluster, views: Path
) -> None:
    first, second, third = cluster.submit("noop", {}, {}, {})
    for job in (first, second):
        folder(cluster, job)
    tree = ViewTree(cluster.folders)
    tree.place(f"running/oak/{first:08d}", first)
    (views / "queue" / "default").mkdir(parents=True)
    (views / "queue" / "default" / f"{second:08d}").symlink_to("/nowhere")
    (views / "queue" / "default" / f"{third:08d}").symlink_to("../../nothing")
    (views / "note.txt").write_text("of a person")
    (views / "queue" / "mine").symlink_to("/etc")

    sentences = repaired(cluster)

    assert links(views) == {f"queue/default/{first:08d}": first, f"queue/default/{second:08d}": second}
    assert (views / "note.txt").read_text() == "of a person"
    assert (views / "queue" / "mine").is_symlink()
    assert len(sentences) == 4


def test_a_number_that_no_job_has_names_no_link_of_a_view(cluster: Cluster, views: Path) -> None:
    names = ["20261126153000123456789", str(JOB_ID_MAX + 1), "9" * 255]
    for name in names:
        (views / name).symlink_to("/nowhere")
        (cluster.folders / name).mkdir()

    assert list(ViewTree(cluster.folders).links()) == []
    assert list(ViewTree(cluster.folders).job_ids()) == []
    assert repaired(cluster) == []
    assert all((views / name).is_symlink() for name in names)


def test_without_the_directory_there_are_no_views(cluster: Cluster, views: Path) -> None:
    views.rmdir()
    (job,) = cluster.submit("noop")
    folder(cluster, job)
    assert repaired(cluster) == []
    assert not (cluster.folders / "views").exists()
    assert cluster.store.counts(Filter())[State.PENDING] == 1
