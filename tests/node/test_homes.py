"""Folders over hosts: one root that all see, or local folders. Nodes as processes, two hosts, two roots."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_fixtures import House, Node, lines, now_us, until

from longer import long_alone
from servers import postgres_schema
from spinney.cli import main
from spinney.control import Control
from spinney.model.states import State
from spinney.node import folders

SHORT = {"lease_period_s": 2.5, "beat_s": 0.1, "slots": 1, "app": "home_app:app"}
HOSTS = ("thor", "odin")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=long_alone)])
def house(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A store with local folders."""
    if request.param == "sqlite":
        made = House(tmp_path, local_folders=True)
        yield made
        made.close()
        return
    with postgres_schema() as url:
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        made = House(tmp_path, url, local_folders=True)
        yield made
        made.close()


def root(house: House, host: str) -> Path:
    return house.place / f"disk-of-{host}"


def node(house: House, host: str, slots: int = 1) -> Node:
    """A node on that host, with the root there."""
    return house.node(
        name=f"on-{host}", host=host, folders=str(root(house, host)), **SHORT | {"slots": slots}
    )


def spinney(house: House, host: str, *words: str) -> tuple[int, str, str]:
    """The command line, as somebody on that host has it: exit code, what it printed, what it said."""
    place = house.place / f"home-of-{host}"
    place.mkdir(exist_ok=True)
    (place / "spinney.toml").write_text(
        f'[spinney]\nstore = "{house.url}"\nfolders = "{root(house, host)}"\n'
    )
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.chdir(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(list(words))
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]


def begun(house: House, host: str, count: int = 1) -> list[int]:
    """Jobs that have passed their first stage there, and are in their second until the file ``go`` is there."""
    given = {"go": str(house.file("go")), "notes": str(house.file("notes"))}
    jobs: list[int] = []
    for n in range(count):  # one by one, so that none is given ahead behind another that will not end
        jobs += house.submit("keeps", given)
        until(lambda n=n: lines(house.file("notes")) == [host] * (n + 1), f"second stages run on {host}")  # type: ignore[misc]
    return jobs


def test_a_job_goes_on_only_where_its_folder_is_and_waits_for_its_host(house: House) -> None:
    thor = node(house, "thor", slots=2)
    job, other = begun(house, "thor", count=2)
    node(house, "odin")
    # What is new goes anywhere; thor has no slot free
    (fresh,) = house.run("whereabouts")
    assert (fresh.state, fresh.node) == (State.COMPLETED, "on-odin")
    assert folders.path(root(house, "odin"), fresh.id).is_dir()
    assert not folders.path(root(house, "thor"), fresh.id).exists()
    # What runs there can be read from elsewhere, while it runs
    first, second = (attempt.fence for attempt in house.attempts(job))
    assert spinney(house, "odin", "logs", str(job)) == (
        0,
        f"== prepare, attempt {first}, stdout ==\nprepared on thor\n"
        f"== use, attempt {second}, stdout ==\nwaiting on thor\n",
        "",
    )

    # When its host is gone, the job waits, and says so
    thor.kill()

    def why() -> str:
        return house.store.explaining.explain(job, now_us=now_us()).cause

    until(lambda: why() == "home", "its host is known to be gone")
    house.file("go").touch()
    assert [found.node for found in house.run("whereabouts", {}, {}, {})] == ["on-odin"] * 3
    place = f"host thor ({root(house, 'thor')})"
    _, told, _ = spinney(house, "odin", "explain", str(job))
    assert f"its folder is on {place}, where no node runs; start one there, or let go" in told
    code, told, said = spinney(house, "odin", "files", str(job))
    assert (code, told) == (1, "")
    assert f"is on {place}, where no node runs that could be asked; start one there" in said

    # One that is let go of goes on elsewhere where it stopped, with an empty folder; the other still waits
    code, told, said = spinney(house, "odin", "rehome", str(other), "--yes", "--reason", "it cannot wait")
    assert (code, said) == (0, "")
    assert f"job {other} is not bound to {place} any more" in told
    (done,) = house.settled([other])
    history = house.attempts(other)
    assert (done.state, history[-1].result) == (State.COMPLETED, "nothing on odin")
    assert [(a.stage, a.node) for a in history if a.outcome == "ok"] == [
        ("prepare", "on-thor"),
        ("use", "on-odin"),
    ]
    assert folders.path(root(house, "thor"), other).is_dir(), "nothing is deleted"
    assert (house.store.job(job).state, why()) == (State.PENDING, "home")

    # When it is back, the job goes on with its files, which are read through it
    node(house, "thor")
    (done,) = house.settled([job])
    assert (done.state, done.node) == (State.COMPLETED, "on-thor")
    assert house.attempts(job)[-1].result == "made on thor"
    assert "made/here" in spinney(house, "odin", "files", str(job))[1]
    for host in HOSTS:
        assert spinney(house, host, "files", str(job), "made/here") == (0, "thor", "")
    code, told, said = spinney(house, "odin", "files", str(job), "../../../../.spinney-token")
    assert (code, told) == (1, "")
    assert "is no path within a job's folder" in said


def test_each_host_removes_its_own_deleted_folders_whoever_keeps_house(house: House) -> None:
    node(house, "odin")
    until(lambda: house.store.fleet.all(now_us=now_us())[0].keeps_house, "odin keeps house")
    (blocked,) = begun(house, "odin")  # so that it has no slot free
    node(house, "thor")
    (job,) = house.run("whereabouts")
    folder = folders.path(root(house, "thor"), job.id)
    assert (job.node, folder.is_dir()) == ("on-thor", True)
    control = Control(store=house.store, clock=now_us, nudge=lambda: None, by="ann")
    control.delete(job.id, lambda job_id: folders.remove(root(house, "odin"), job_id))
    until(lambda: not folder.exists() and not house.store.deleted_folders(10), "its folder is removed")
    house.file("go").touch()
    house.settled([blocked])


# --- which roots ------------------------------------------------------------------------------


def _refused(started: Node) -> str:
    _, said = started.process.communicate(timeout=30)
    assert started.process.returncode == 1, said
    return said


def test_a_node_whose_root_is_not_the_shared_one_is_refused(tmp_path: Path) -> None:
    made = House(tmp_path)
    try:
        # Given a root without a token, one with that of another store, and one that is not there
        (tmp_path / "bare").mkdir()
        folders.write_token(tmp_path / "foreign", "foreign")
        roots = ("bare", "foreign", "missing")
        started = [made.start(name=name, folders=str(tmp_path / name)) for name in roots]
        said = dict(zip(roots, map(_refused, started), strict=True))
        for name in ("bare", "missing"):
            assert "bears no token" in said[name]
            assert "mount the shared folder there, or run 'spinney init' once" in said[name]
            assert not (tmp_path / name / folders.TOKEN).exists()
        assert (
            "is the folder root of another store; name the folder that 'spinney init' printed"
            in said["foreign"]
        )
        # And two nodes with the one root work side by side, wherever it is mounted
        (tmp_path / "mounted").symlink_to(made.folders)
        both = (
            made.start(name="oak", slots=1),
            made.start(name="elm", host="far", folders=str(tmp_path / "mounted"), slots=1),
        )
        for one in both:
            one.joined()
        assert {job.state for job in made.run("noop", {}, {}, {})} == {State.COMPLETED}
        assert {n.name for n in made.store.nodes()} == {"oak", "elm"}
    finally:
        made.close()


def test_where_folders_are_local_a_node_makes_its_root_and_refuses_a_foreign_one(house: House) -> None:
    folders.write_token(house.place / "foreign", "foreign")
    said = _refused(house.start(host="thor", folders=str(house.place / "foreign"), **SHORT))
    assert "is the folder root of another store" in said
    node(house, "thor")
    assert (root(house, "thor") / folders.TOKEN).read_text().strip() == house.store.facts()["folder_token"]
    (home,) = house.store.homes.all()
    assert (home.host, home.path, home.mark) == (
        "thor",
        str(root(house, "thor")),
        folders.mark(root(house, "thor"), make=False),
    )


@long_alone
def test_a_copy_of_a_root_that_is_in_use_is_refused(house: House) -> None:
    """One disk was made from another."""
    stays = node(house, "thor")
    root(house, "odin").mkdir()
    for name in (folders.TOKEN, folders.MARK):
        (root(house, "odin") / name).write_bytes((root(house, "thor") / name).read_bytes())
    # Given that they are two machines: these two have one kernel
    database = house.store.database  # type: ignore[attr-defined]
    with database.write() as tx:
        tx.run("update nodes set boot_id = 'another kernel'")
    said = _refused(house.start(name="on-odin", host="odin", folders=str(root(house, "odin")), **SHORT))
    assert "it is a copy; name another folder, or, when that host is gone" in said
    assert "--dead on-thor" in said
    assert stays.process.poll() is None
