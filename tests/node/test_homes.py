"""Folders over hosts: one root that all see, or local folders. Nodes as processes, two hosts, two roots."""

import contextlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_fixtures import Cluster, Node, lines, now_us

from contract.behind import sql_store
from long_tests import long_alone
from servers import postgres_schema
from spinney.cli import main
from spinney.commands.control import Control
from spinney.features.jobs.commands import DeleteJob
from spinney.folders import folders
from spinney.model.states import State
from waiting import until

SHORT = {"lease_period_s": 2.5, "beat_s": 0.1, "slots": 1, "app": "home_app:app"}
HOSTS = ("thor", "odin")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=long_alone)])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    """A store with local folders."""
    if request.param == "sqlite":
        made = Cluster(tmp_path, local_folders=True)
        yield made
        made.close()
        return
    with postgres_schema() as url:
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        made = Cluster(tmp_path, url, local_folders=True)
        yield made
        made.close()


def root(cluster: Cluster, host: str) -> Path:
    return cluster.place / f"disk-of-{host}"


def node(cluster: Cluster, host: str, slots: int = 1) -> Node:
    """A node on that host, with the root there."""
    return cluster.node(
        name=f"on-{host}", host=host, folders=str(root(cluster, host)), **SHORT | {"slots": slots}
    )


def spinney(cluster: Cluster, host: str, *words: str) -> tuple[int, str, str]:
    """The command line, as somebody on that host has it: exit code, what it printed, what it said."""
    place = cluster.place / f"home-of-{host}"
    place.mkdir(exist_ok=True)
    (place / "spinney.toml").write_text(
        f'[spinney]\nstore = "{cluster.url}"\nfolders = "{root(cluster, host)}"\n'
    )
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.chdir(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(list(words))
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))


def begun(cluster: Cluster, host: str, count: int = 1) -> list[int]:
    """Return jobs that have passed their first stage on this host, and stay in the second until ``go`` exists."""
    params = {"go": str(cluster.file("go")), "notes": str(cluster.file("notes"))}
    jobs: list[int] = []
    for n in range(count):  # one by one, so that none is given ahead behind another that will not end
        jobs += cluster.submit("keeps", params)
        until(lambda n=n: lines(cluster.file("notes")) == [host] * (n + 1), f"second stages run on {host}")  # type: ignore[misc]
    return jobs


def test_a_job_goes_on_only_where_its_folder_is_and_waits_for_its_host(cluster: Cluster) -> None:
    thor = node(cluster, "thor", slots=2)
    job, other = begun(cluster, "thor", count=2)
    node(cluster, "odin")
    # What is new goes anywhere; thor has no slot free
    (fresh,) = cluster.run("whereabouts")
    assert (fresh.state, fresh.node) == (State.COMPLETED, "on-odin")
    assert folders.path(root(cluster, "odin"), fresh.id).is_dir()
    assert not folders.path(root(cluster, "thor"), fresh.id).exists()
    # What runs there can be read from elsewhere, while it runs
    first, second = (attempt.fence for attempt in cluster.attempts(job))
    assert spinney(cluster, "odin", "logs", str(job)) == (
        0,
        f"== prepare, attempt {first}, stdout ==\nprepared on thor\n"
        f"== use, attempt {second}, stdout ==\nwaiting on thor\n",
        "",
    )

    # When its host is gone, the job waits, and says so
    thor.kill()

    def why() -> str:
        return cluster.store.explainer.explain(job, now_us=now_us()).cause

    until(lambda: why() == "home", "its host is known to be gone")
    cluster.file("go").touch()
    assert [job.node for job in cluster.run("whereabouts", {}, {}, {})] == ["on-odin"] * 3
    place = f"host thor ({root(cluster, 'thor')})"
    _, output, _ = spinney(cluster, "odin", "explain", str(job))
    assert f"its folder is on {place}, where no node runs; start one there, or let go" in output
    code, output, error = spinney(cluster, "odin", "files", str(job))
    assert (code, output) == (1, "")
    assert f"is on {place}, where no node runs; start one there" in error

    # One that is let go of goes on elsewhere where it stopped, with an empty folder; the other still waits
    code, output, error = spinney(
        cluster, "odin", "rehome", str(other), "--yes", "--reason", "it cannot wait"
    )
    assert (code, error) == (0, "")
    assert f"job {other} is not bound to {place} any more" in output
    (done,) = cluster.settled([other])
    history = cluster.attempts(other)
    assert (done.state, history[-1].result) == (State.COMPLETED, "nothing on odin")
    assert [(a.stage, a.node) for a in history if a.outcome == "ok"] == [
        ("prepare", "on-thor"),
        ("use", "on-odin"),
    ]
    assert folders.path(root(cluster, "thor"), other).is_dir(), "nothing is deleted"
    assert (cluster.store.job(job).state, why()) == (State.PENDING, "home")

    # When it is back, the job goes on with its files, which are read through it
    node(cluster, "thor")
    (done,) = cluster.settled([job])
    assert (done.state, done.node) == (State.COMPLETED, "on-thor")
    assert cluster.attempts(job)[-1].result == "made on thor"
    assert "made/here" in spinney(cluster, "odin", "files", str(job))[1]
    for host in HOSTS:
        assert spinney(cluster, host, "files", str(job), "made/here") == (0, "thor", "")
    code, output, error = spinney(cluster, "odin", "files", str(job), "../../../../.spinney-token")
    assert (code, output) == (1, "")
    assert "is no path within a job's folder" in error


def test_each_host_removes_its_own_deleted_folders_whoever_keeps_house(cluster: Cluster) -> None:
    node(cluster, "odin")
    until(lambda: cluster.store.fleet.all(now_us=now_us())[0].is_leader, "odin leads")
    (blocked,) = begun(cluster, "odin")  # so that it has no slot free
    node(cluster, "thor")
    (job,) = cluster.run("whereabouts")
    folder = folders.path(root(cluster, "thor"), job.id)
    assert (job.node, folder.is_dir()) == ("on-thor", True)
    control = Control(
        store=cluster.store,
        clock=now_us,
        wake_nodes=lambda: None,
        by="ann",
        remove_folder=lambda job_id: folders.remove(root(cluster, "odin"), job_id),
    )
    control.do(DeleteJob(job=job.id))
    until(lambda: not folder.exists() and not cluster.store.deleted_folders(10), "its folder is removed")
    cluster.file("go").touch()
    cluster.settled([blocked])


# --- which roots ------------------------------------------------------------------------------


def _refused(started: Node) -> str:
    _, error = started.process.communicate(timeout=30)
    assert started.process.returncode == 1, error
    return error


def test_a_node_whose_root_is_not_the_shared_one_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        # Given a root without a token, one with that of another store, and one that is not there
        (tmp_path / "bare").mkdir()
        folders.write_token(tmp_path / "foreign", "foreign")
        roots = ("bare", "foreign", "missing")
        started = [cluster.start(name=name, folders=str(tmp_path / name)) for name in roots]
        errors = dict(zip(roots, map(_refused, started), strict=True))
        for name in ("bare", "missing"):
            assert "has no token" in errors[name]
            assert (
                "name the right one (folders in spinney.toml), or run 'spinney init' if the store is new"
                in errors[name]
            )
            assert not (tmp_path / name / folders.TOKEN).exists()
        assert (
            "is the folder root of another store; name the folder that 'spinney init' printed"
            in errors["foreign"]
        )
        # And two nodes with the one root work side by side, wherever it is mounted
        (tmp_path / "mounted").symlink_to(cluster.folders)
        both = (
            cluster.start(name="oak", slots=1),
            cluster.start(name="elm", host="far", folders=str(tmp_path / "mounted"), slots=1),
        )
        for one in both:
            one.joined()
        assert {job.state for job in cluster.run("noop", {}, {}, {})} == {State.COMPLETED}
        assert {n.name for n in cluster.store.nodes()} == {"oak", "elm"}
    finally:
        cluster.close()


def test_where_folders_are_local_a_node_makes_its_root_and_refuses_a_foreign_one(cluster: Cluster) -> None:
    folders.write_token(cluster.place / "foreign", "foreign")
    error = _refused(cluster.start(host="thor", folders=str(cluster.place / "foreign"), **SHORT))
    assert "is the folder root of another store" in error
    node(cluster, "thor")
    assert (root(cluster, "thor") / folders.TOKEN).read_text().strip() == cluster.store.facts()[
        "folder_token"
    ]
    (home,) = cluster.store.homes.all()
    assert (home.host, home.path, home.mark) == (
        "thor",
        str(root(cluster, "thor")),
        folders.fingerprint(root(cluster, "thor"), make=False),
    )


def test_a_node_whose_local_root_is_gone_takes_no_jobs_and_says_what_helps(cluster: Cluster) -> None:
    # Given a node whose disk is not mounted any more
    started = node(cluster, "thor")
    away = root(cluster, "thor").rename(cluster.place / "away")

    def trouble() -> str:
        return cluster.store.nodes()[0].trouble or ""

    until(lambda: "is the disk mounted?" in trouble(), "it is degraded")
    assert "(spinney rehome --host thor) and start the node again" in trouble()
    assert not root(cluster, "thor").exists()

    # Then it works again when the disk is back
    away.rename(root(cluster, "thor"))
    assert [job.state for job in cluster.run("whereabouts")] == [State.COMPLETED]

    # And when the disk is lost, it does so after what was said
    shutil.rmtree(root(cluster, "thor"))
    until(lambda: "is the disk mounted?" in trouble(), "it is degraded")
    started.stop()
    code, _, error = spinney(cluster, "thor", "rehome", "--host", "thor", "--yes", "--reason", "disk lost")
    assert (code, error) == (0, "")
    node(cluster, "thor")
    assert [job.state for job in cluster.run("whereabouts")] == [State.COMPLETED]


@long_alone
def test_a_copy_of_a_root_that_is_in_use_is_refused(cluster: Cluster) -> None:
    """One disk was made from another."""
    stays = node(cluster, "thor")
    root(cluster, "odin").mkdir()
    for name in (folders.TOKEN, folders.FINGERPRINT_FILE):
        (root(cluster, "odin") / name).write_bytes((root(cluster, "thor") / name).read_bytes())
    # Given that they are two machines: these two have one kernel
    database = sql_store(cluster.store).database
    with database.write() as tx:
        tx.run("update nodes set boot_id = 'another kernel'")
    error = _refused(cluster.start(name="on-odin", host="odin", folders=str(root(cluster, "odin")), **SHORT))
    assert "it is a copy; name another folder, or, when that host is gone" in error
    assert "--dead on-thor" in error
    assert stays.process.poll() is None
