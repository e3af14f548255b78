"""Upgrades in two parts: what may be done beside nodes of the version before, and what waits until they have left."""

import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from contract.words import ONE, submission
from servers import postgres_schema, postgres_url
from spinney.model.errors import NodeRefused, StoreUnusable
from spinney.model.jobs import NodeInfo
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection import online_ddl
from spinney.store.sql.connection.schema_state import SCHEMA_VERSION, require_workable
from spinney.store.sql.migrations.upgrades import OWN, finish, unfinished, upgrade
from waiting import until

NEXT = f"{int(SCHEMA_VERSION) + 1:04}"
REVISION = """
import os
import time
from pathlib import Path

import sqlalchemy as sa
from alembic import op

from spinney.store.sql.migrations.upgrades import large_index

revision, down_revision = "NEXT", "HEAD"


def upgrade():
    op.add_column("jobs", sa.Column("hue", sa.Text(), nullable=True))
    if half := os.environ.get("SPINNEY_TEST_HALF"):
        Path(half).touch()
        time.sleep(60)
    op.create_table("hues", sa.Column("name", sa.Text(), primary_key=True))
    large_index(revision, "jobs_by_hue", "jobs", ["hue"], "hue is not null")


def finish():
    op.drop_column("progress", "message")
""".replace("NEXT", NEXT).replace("HEAD", SCHEMA_VERSION)
UPGRADE = (
    "import sys\nfrom pathlib import Path\nfrom spinney.store.sql import open_store\n"
    "from spinney.store.sql.migrations.upgrades import upgrade\n"
    "upgrade(open_store(sys.argv[1]).database, folder=Path(sys.argv[2]))\n"
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/x.db"
        return
    with postgres_schema() as made:
        yield made


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    """Of this version, with a job."""
    with closing(open_store(url)) as made:
        made.create()
        made.register([ONE], [])
        made.submit([submission()], now_us=1)
        yield made


@pytest.fixture
def on_server() -> Iterator[SqlStore]:
    with postgres_schema() as url, closing(open_store(url)) as made:
        made.create()
        made.register([ONE], [])
        made.submit([submission()], now_us=1)
        yield made


@pytest.fixture
def coming(tmp_path: Path) -> Path:
    """The revisions of the version to come: those there are, and another."""
    folder = tmp_path / "coming"
    shutil.copytree(OWN, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"{NEXT}_coming.py").write_text(REVISION)
    return folder


def node(version: str = "0.1") -> NodeInfo:
    return NodeInfo(
        id=0,
        name="oak",
        boot_id="b",
        host="thor",
        pid=1,
        slots=1,
        state="active",
        beat=0,
        started_us=1,
        seen_us=1,
        version=version,
        types=(),
    )


def schema(store: SqlStore) -> str:
    state = store.database.schema_state()
    assert state is not None
    return state.schema


# --- before -----------------------------------------------------------------------------------


def test_after_the_first_part_this_version_works_on_and_the_next_works_already(
    store: SqlStore, coming: Path
) -> None:
    upgrade(store.database, folder=coming)

    schema_state = store.database.schema_state()
    assert schema_state is not None
    assert schema_state.schema == NEXT
    require_workable("x", schema_state, schema=NEXT)
    store.submit([submission()], now_us=2)
    with closing(open_store(_url(store))) as another:
        assert len(another.submit([submission()], now_us=3).ids) == 1, "who comes now works, too"
    with store.database.look() as tx:
        assert tx.all("select hue from jobs") == [(None,)] * 3
        assert tx.all("select name from hues") == []
    assert unfinished(store.database, folder=coming) == [NEXT]


def test_init_of_this_version_leaves_a_newer_store_alone(store: SqlStore, coming: Path) -> None:
    upgrade(store.database, folder=coming)

    store.create()

    assert schema(store) == NEXT
    assert store.unfinished() == []


def test_a_new_store_needs_no_finish(url: str, coming: Path) -> None:
    with closing(open_store(url)) as store:
        upgrade(store.database, folder=coming)

        assert unfinished(store.database, folder=coming) == []
        with pytest.raises(StoreUnusable, match=f"only those of {NEXT} or later may"):
            store.nodes()


def test_two_that_upgrade_at_once_do_it_once(store: SqlStore, coming: Path) -> None:
    command = [sys.executable, "-c", UPGRADE, _url(store), str(coming)]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]

    assert [process.communicate(timeout=60)[1] for process in both] == ["", ""]
    assert schema(store) == NEXT


def test_an_upgrade_that_is_killed_leaves_the_schema_as_it_was(
    store: SqlStore, coming: Path, tmp_path: Path
) -> None:
    half = tmp_path / "half"
    process = subprocess.Popen(
        [sys.executable, "-c", UPGRADE, _url(store), str(coming)],
        env=os.environ | {"SPINNEY_TEST_HALF": str(half)},
    )
    until(lambda: half.exists() or process.poll() is not None)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait(30)

    store.submit([submission()], now_us=2)  # waits until the server has seen it
    assert schema(store) == SCHEMA_VERSION
    with pytest.raises(Exception, match="hue"), store.database.look() as tx:
        tx.all("select hue from jobs")

    upgrade(store.database, folder=coming)
    assert schema(store) == NEXT


# --- after ------------------------------------------------------------------------------------


def test_what_disturbs_waits_until_the_last_older_node_has_left(store: SqlStore, coming: Path) -> None:
    node_id = store.join(node(), now_us=1)
    upgrade(store.database, folder=coming)

    with pytest.raises(StoreUnusable, match=rf"oak on thor \(Spinney 0.1, schema {SCHEMA_VERSION}\)"):
        finish(store.database, folder=coming)
    with store.database.look() as tx:
        assert tx.all("select message from progress") == []

    store.update_node(node_id, state="left", now_us=2)
    assert finish(store.database, folder=coming) == [NEXT]

    with (
        closing(open_store(_url(store))) as late,
        pytest.raises(StoreUnusable, match="upgrade Spinney on this host"),
    ):
        late.nodes()
    with pytest.raises(NodeRefused, match=f"{NEXT} or later only"):
        store.join(node(), now_us=3)  # on a connection from before


def test_finishing_is_done_once(store: SqlStore, coming: Path) -> None:
    assert store.finish() == [], "there is nothing to finish"
    upgrade(store.database, folder=coming)

    finish(store.database, folder=coming)

    assert unfinished(store.database, folder=coming) == []


def test_a_first_part_that_is_missing_comes_first(store: SqlStore, coming: Path) -> None:
    with pytest.raises(StoreUnusable, match=f"this Spinney needs {NEXT}; run 'spinney init'"):
        finish(store.database, folder=coming)


def test_where_no_store_is_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="there is no store"):
        open_store(f"sqlite:///{tmp_path}/x.db").finish()

    assert list(tmp_path.iterdir()) == []


# --- beside others on a server ----------------------------------------------------------------


def test_who_keeps_a_table_delays_the_upgrade_and_nobody_else(
    on_server: SqlStore, coming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took_s: list[float] = []
    with psycopg.connect(postgres_url()) as reporter, closing(open_store(_url(on_server))) as another:
        reporter.execute(f"select count(*) from {on_server.facts()['schema']}.jobs")

        def rest(_: float) -> None:
            begun = time.monotonic()
            another.submit([submission()], now_us=2)
            took_s.append(time.monotonic() - begun)
            reporter.commit()

        monkeypatch.setattr(
            online_ddl, "retry_until_altered", functools.partial(online_ddl.retry_until_altered, rest=rest)
        )
        upgrade(on_server.database, folder=coming)

    assert len(took_s) == 1, "tried again once"
    assert took_s[0] < 5.0, "it waited neither for the reporter nor for the upgrade"
    assert schema(on_server) == NEXT


def test_a_table_that_is_never_free_ends_the_upgrade_with_who_keeps_it(
    on_server: SqlStore, coming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        online_ddl, "retry_until_altered", functools.partial(online_ddl.retry_until_altered, patience_s=0)
    )
    with psycopg.connect(postgres_url()) as stranger, psycopg.connect(postgres_url()) as reporter:
        stranger.execute("select count(*) from pg_class")
        reporter.execute(f"select count(*) from {on_server.facts()['schema']}.jobs")

        who = f"oldest transaction on its tables is that of process {reporter.info.backend_pid}"
        with pytest.raises(StoreUnusable, match=who):
            upgrade(on_server.database, folder=coming)

    assert schema(on_server) == SCHEMA_VERSION


def test_an_index_whose_building_was_cut_off_is_built_by_the_next_init(
    on_server: SqlStore, coming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(online_ddl, "build_indexes", cut_off)
        with pytest.raises(KeyboardInterrupt):
            upgrade(on_server.database, folder=coming)
    schema_state = on_server.database.schema_state()
    assert schema_state is not None
    assert schema_state.unbuilt(NEXT) == ["jobs_by_hue"]
    on_server.submit([submission()], now_us=2)
    name = on_server.facts()["schema"]
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        # as a build that is cut off leaves it
        connection.execute(f"create index jobs_by_hue on {name}.jobs (hue) where hue is not null")
        which = f"indexrelid = '{name}.jobs_by_hue'::regclass"
        connection.execute(f"update pg_index set indisvalid = false where {which}")

        upgrade(on_server.database, folder=coming)

        assert connection.execute(f"select indisvalid from pg_index where {which}").fetchone() == (True,)
    schema_state = on_server.database.schema_state()
    assert schema_state is not None
    assert schema_state.unbuilt(NEXT) == []


def _url(store: SqlStore) -> str:
    path = getattr(store.database, "path", None)
    if path is not None:
        return f"sqlite:///{path}"
    url = postgres_url()
    return f"{url}{'&' if '?' in url else '?'}schema={store.facts()['schema']}"
