"""An upgrade beside a node at work, under load: nothing waits for long, nothing is lost, nothing is refused."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from node_fixtures import Cluster, now_us

from long_tests import LONG
from servers import postgres_schema
from spinney.model.errors import StoreUnusable
from spinney.model.states import State
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.schema_state import SCHEMA_VERSION
from spinney.store.sql.migrations.upgrades import OWN, finish, upgrade
from waiting import until

AROUND = 2_000 if LONG else 60
"""Jobs before the upgrade, and after it."""
NEXT = f"{int(SCHEMA_VERSION) + 1:04}"
REVISION = """
import sqlalchemy as sa
from alembic import op

from spinney.store.sql.migrations.upgrades import large_index

revision, down_revision = "NEXT", "HEAD"


def upgrade():
    op.add_column("jobs", sa.Column("hue", sa.Text(), nullable=True))
    op.add_column("leases", sa.Column("hue", sa.Text(), nullable=True))
    op.create_table("hues", sa.Column("name", sa.Text(), primary_key=True))
    large_index(revision, "jobs_by_hue", "jobs", ["hue"])


def finish():
    op.drop_column("progress", "message")
""".replace("NEXT", NEXT).replace("HEAD", SCHEMA_VERSION)


@pytest.fixture(params=["sqlite", "postgresql"])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    if request.param == "sqlite":
        with closing(Cluster(tmp_path)) as made:
            yield made
        return
    with postgres_schema() as url:
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        with closing(Cluster(tmp_path, url)) as made:
            yield made


@pytest.fixture
def coming(tmp_path: Path) -> Path:
    """The revisions of the version to come."""
    folder = tmp_path / "coming"
    shutil.copytree(OWN, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"{NEXT}_coming.py").write_text(REVISION)
    return folder


class Load:
    """Submissions, one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self.ids: list[int] = []
        self.error: BaseException | None = None
        self._house, self._end = cluster, threading.Event()
        self._thread = threading.Thread(target=self._submit)
        self._store: SqlStore = open_store(cluster.url)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._store.close()

    def _submit(self) -> None:
        from spinney.model.jobs import Submission

        order = Submission(type="noop", params=["{}"])
        try:
            while not self._end.is_set():
                self.ids += self._store.submit([order], now_us=now_us()).ids
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.error = error
        self._store.close()


def test_an_upgrade_under_load(cluster: Cluster, coming: Path) -> None:
    node = cluster.node(slots=2)

    with Load(cluster) as load:
        until(lambda: len(load.ids) >= AROUND or load.error, "work before")
        upgrade(cluster.store.database, folder=coming)
        there = len(load.ids)
        until(lambda: len(load.ids) >= there + AROUND or load.error, "work behind it")
    assert load.error is None
    jobs = cluster.settled(load.ids)
    assert {job.state for job in jobs} == {State.COMPLETED}
    assert [[a.outcome for a in cluster.attempts(job.id)] for job in jobs] == [["ok"]] * len(jobs)

    with pytest.raises(StoreUnusable, match=rf"nodes of older schemas than {NEXT} have not left: oak on "):
        finish(cluster.store.database, folder=coming)
    assert {job.state for job in cluster.run("noop", {}, {})} == {State.COMPLETED}
    log = node.stop()
    assert "Traceback" not in log
    assert "refused" not in log
    assert finish(cluster.store.database, folder=coming) == [NEXT]

    late = cluster.start(name="elm")
    _, output = late.process.communicate(timeout=30)
    assert late.process.returncode == 1
    assert "upgrade Spinney on this host" in output
