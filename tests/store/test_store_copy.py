"""A whole store copied to another place: everything, the same, or nothing."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Boolean, Column, Float, Integer

from contract.everything import fill
from contract.words import ONE, THREE, Clock, Site, submission
from new_store import new_store
from servers import postgres_schema
from spinney.features.copies import sql as store_copy
from spinney.features.copies.sql import copy
from spinney.model.errors import Refused, StoreUnusable
from spinney.model.homes import FolderRoot
from spinney.model.jobs import Filter
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.webhooks import Webhook
from spinney.store.parts import Store
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.schema import metadata
from waiting import until

NASTY = "Bäume 🌲 \x01\t\n\r\\N \\ ' \" % ? {} \u2028"
HUGE = 2**62 + 1
FRACTION = 0.1 + 0.2
HOOK = Webhook(name="hook", url="https://example.org/")
READABLE = {
    "queue_settings.name": "narrow",
    "queue_settings.settings": "{}",
    "webhooks.name": HOOK.name,
    "webhooks.spec": json.dumps(HOOK.to_json()),
}
"""What everybody reads who opens a store."""
STOPS = (
    "import sys, time\nfrom pathlib import Path\nfrom spinney.store.sql import open_store\n"
    "from spinney.features.copies.sql import copy\n"
    "def told(doing, rows, all_):\n"
    "    if doing.startswith('jobs'):\n"
    "        Path(sys.argv[3]).touch()\n"
    "        time.sleep(60)\n"
    "copy(open_store(sys.argv[1]).database, open_store(sys.argv[2]).database, on_progress=told)\n"
)


class Place(SqlStore):
    """A store, or where one is to be, that knows its URL."""

    url: str


Opener = Callable[[str], Place]


@pytest.fixture
def opened() -> Iterator[Opener]:
    places: list[Place] = []

    def open_(url: str) -> Place:
        store = Place(open_store(url).database)
        store.url = url
        places.append(store)
        return store

    yield open_
    for store in places:
        store.close()


@pytest.fixture
def server(opened: Opener) -> Iterator[Place]:
    """A place for a store on a server."""
    with postgres_schema() as url:
        store = opened(url)
        yield store
        store.close()


@pytest.fixture
def rich(tmp_path: Path, opened: Opener) -> Place:
    """A store with rows in every table, and nobody at work."""
    return opened(new_store(tmp_path / "rich.db", _enrich))


def _enrich(store: Store) -> None:
    assert isinstance(store, SqlStore)
    site = Site(store, Clock())
    fill(site)
    for node in store.nodes():
        store.recover(node.id, {}, now_us=site.now)
        store.update_node(node.id, state="left", now_us=site.now)
    for n in range(3):
        actor = Actor(by="ann", call=f"call {n}", reason=NASTY)
        store.holds.lay(Scope.QUEUE, "narrow", f"reason {n}", actor, now_us=site.now)
    with store.database.write() as tx:
        tx.run(
            f"insert into progress (job_id, fence, fraction, message) values ({HUGE}, 1, {FRACTION!r}, ?)",
            (NASTY,),
        )
        for name, table in metadata.tables.items():
            if name != "leases" and tx.value(f"select 1 from {name}") is None:
                columns = table.columns.values()
                meta = ", ".join("?" for _ in columns)
                listed = ", ".join(c.name for c in columns)
                tx.run(f"insert into {name} ({listed}) values ({meta})", [_any(c) for c in columns])


def _any(column: "Column[object]") -> object:
    if isinstance(column.type, Float):
        return FRACTION
    if isinstance(column.type, Boolean):
        return 1
    if isinstance(column.type, Integer):
        return -(2**31) if type(column.type) is Integer else HUGE
    return READABLE.get(f"{column.table.name}.{column.name}", NASTY)


@pytest.fixture
def small(tmp_path: Path, opened: Opener) -> Place:
    """A store with three jobs."""
    return opened(new_store(tmp_path / "small.db", _three_jobs))


def _three_jobs(store: Store) -> None:
    store.register([ONE], [])
    store.submit([submission(n=3)], now_us=1)


@pytest.fixture
def place(tmp_path: Path, opened: Opener) -> Place:
    """Where nothing is yet."""
    return opened(f"sqlite:///{tmp_path}/to.db")


def nothing_there(place: Place) -> None:
    """No store; another copy may begin there."""
    place.close()  # what has been opened before is not asked again
    with pytest.raises(StoreUnusable, match=r"there is no store|no Spinney store|is not finished"):
        place.nodes()


# --- everything, the same ---------------------------------------------------------------------


def test_from_a_file_to_a_server_and_back_nothing_differs(
    rich: Place, server: Place, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "PAGE_ROWS_LEAST", 7)
    monkeypatch.setattr(store_copy, "PAGE_BYTES", 1)
    head = rich.audit.head()

    there = copy(rich.database, server.database)
    back = copy(server.database, place.database)

    assert there == back
    assert {each.table for each in there} == set(metadata.tables)
    assert [each.table for each in there if not each.rows] == ["leases"]
    for table in metadata.tables:
        of_the_store = "name <> 'turn'" if table == "counters" else "true"
        assert _rows(rich, table, of_the_store) == _rows(place, table, of_the_store), table
    for store in (server, place):
        assert store.audit.verify(head) == 8
        assert store.facts()["folder_token"] == rich.facts()["folder_token"]
        assert store.jobs(Filter(), limit=100) == rich.jobs(Filter(), limit=100)


def _rows(store: SqlStore, table: str, which: str) -> list[tuple[object, ...]]:
    with store.database.look() as tx:
        return sorted(tx.all(f"select * from {table} where {which}"), key=repr)


def test_numbers_go_on_where_they_were(small: Place, server: Place) -> None:
    copy(small.database, server.database)

    assert list(server.submit([submission()], now_us=2).ids) == [4]


def test_it_says_how_it_goes_on(small: Place, place: Place) -> None:
    progress: list[tuple[str, int, int]] = []

    copy(small.database, place.database, on_progress=lambda *each: progress.append(each))

    assert ("jobs: copied", 3, 3) in progress
    assert ("jobs: read back", 3, 3) in progress


def test_local_folders_stay_local_and_jobs_at_home(tmp_path: Path, opened: Opener, server: Place) -> None:
    store = opened(f"sqlite:///{tmp_path}/local.db")
    store.create(local_folders=True)
    site = Site(store, Clock())
    site.knows(THREE)
    thor = site.node("oak", root=FolderRoot(mark="m", path="/f"), host="thor")
    job = site.submit_one("three")
    (lease,) = site.claim(thor)
    site.pass_(lease)
    store.update_node(thor.id, state="left", now_us=site.now)

    copy(store.database, server.database)

    assert server.homes.of(job) == store.homes.of(job)
    assert server.homes.of(job) is not None
    there = Site(server, site.clock)
    assert there.claim(there.node("elm", root=FolderRoot(mark="n", path="/f"), host="odin")) == []
    (lease,) = there.claim(there.node("oak", root=FolderRoot(mark="m", path="/f"), host="thor"))
    assert (lease.job_id, lease.stage) == (job, "second")


def test_an_empty_store_takes_a_copy(small: Place, server: Place) -> None:
    server.create()

    copy(small.database, server.database)

    assert [job.id for job in server.jobs(Filter())] == [1, 2, 3]


# --- refused, and nothing is made -------------------------------------------------------------


def test_nodes_that_have_not_left_are_named(small: Place, place: Place) -> None:
    Site(small, Clock()).node("oak")

    with pytest.raises(
        Refused, match=r"nodes work on .*small.db: oak on host \(active\); end them with SIGTERM"
    ):
        copy(small.database, place.database)
    assert place.database.schema_state() is None


def test_leases_that_are_left_refuse(small: Place, place: Place) -> None:
    site = Site(small, Clock())
    oak = site.node("oak")
    site.claim(oak, 1)
    small.update_node(oak.id, state="left", now_us=1)

    with pytest.raises(Refused, match="1 job is still leased"):
        copy(small.database, place.database)
    assert place.database.schema_state() is None


def test_a_place_that_holds_something_is_left_alone(small: Place, server: Place) -> None:
    server.create()
    server.register([ONE], [])

    with pytest.raises(Refused, match="is a store that is not empty"):
        copy(small.database, server.database)
    assert list(server.types()) == ["one"]


def test_what_comes_into_the_place_while_it_is_marked_stays(
    small: Place, server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.create()
    require_one_schema = store_copy._require_one_schema

    def meanwhile(*places: object) -> None:
        server.register([ONE], [])  # on a connection from before
        require_one_schema(*places)  # type: ignore[arg-type]

    monkeypatch.setattr(store_copy, "_require_one_schema", meanwhile)
    server.nodes()
    with server.database.write():
        pass
    with pytest.raises(Refused, match="is a store that is not empty"):
        copy(small.database, server.database)

    server.close()
    assert list(server.types()) == ["one"], "it is a store as before"


def test_a_store_is_not_copied_to_itself_nor_over_an_earlier_copy(
    small: Place, place: Place, tmp_path: Path, opened: Opener
) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "small.db")
    with pytest.raises(Refused, match="is the same store, or a copy of it"):
        copy(small.database, opened(f"sqlite:///{tmp_path}/link.db").database)

    copy(small.database, place.database)
    with pytest.raises(Refused, match="is the same store, or a copy of it"):
        copy(small.database, place.database)


def test_schemas_that_differ_refuse(small: Place, server: Place, place: Place) -> None:
    server.create()
    with server.database.write() as tx:
        tx.run("update alembic_version set version_num = '0002'")
    with pytest.raises(Refused, match="is a store already, of schema 0002"):
        copy(small.database, server.database)

    with small.database.write() as tx:
        tx.run("update alembic_version set version_num = '9999'")
    with pytest.raises(StoreUnusable, match="has schema 9999, this Spinney copies"):
        copy(small.database, place.database)


def test_an_upgrade_that_is_not_finished_refuses(small: Place, place: Place) -> None:
    with small.database.write() as tx:
        tx.run("update meta set value = '0000' where name = 'works_with'")

    with pytest.raises(Refused, match="'spinney init --finish'"):
        copy(small.database, place.database)
    nothing_there(place)


def test_where_there_is_no_store_nothing_is_copied(place: Place, server: Place) -> None:
    with pytest.raises(StoreUnusable, match="there is no store"):
        copy(place.database, server.database)
    assert server.database.schema_state() is None


# --- taken back -------------------------------------------------------------------------------


def test_a_store_that_changes_meanwhile_is_not_copied(small: Place, server: Place, opened: Opener) -> None:
    another = opened(small.url)
    submitted: list[int] = []

    def progress(doing: str, *_: int) -> None:
        if doing == "jobs: copied" and not submitted:
            submitted.extend(another.submit([submission()], now_us=2).ids)

    with pytest.raises(Refused, match="was changed while it was copied, so nothing was kept"):
        copy(small.database, server.database, on_progress=progress)
    assert submitted == [4], "nobody had to wait"
    nothing_there(server)

    copy(small.database, server.database)
    assert len(server.jobs(Filter())) == 4


def test_a_server_that_changes_meanwhile_is_not_copied(small: Place, server: Place, place: Place) -> None:
    copy(small.database, server.database)
    submitted: list[int] = []

    def progress(doing: str, *_: int) -> None:
        if doing == "jobs: copied" and not submitted:
            submitted.extend(server.submit([submission()], now_us=2).ids)

    with pytest.raises(Refused, match="was changed while it was copied"):
        copy(server.database, place.database, on_progress=progress)
    nothing_there(place)


@pytest.mark.parametrize("onto", ["server", "place"])
def test_a_copy_that_is_killed_is_no_store_and_may_be_made_again(
    small: Place, tmp_path: Path, onto: str, request: pytest.FixtureRequest
) -> None:
    target: Place = request.getfixturevalue(onto)
    there = tmp_path / "there"
    command = [sys.executable, "-c", STOPS, small.url, target.url, str(there)]
    process = subprocess.Popen(command)
    until(lambda: there.exists() or process.poll() is not None)
    assert process.poll() is None
    with pytest.raises(StoreUnusable, match=r"is part of a copy of .*small.db that is not finished"):
        target.nodes()
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    with pytest.raises(StoreUnusable, match=r"is part of a copy of .*small.db that is not finished"):
        target.nodes()

    copy(small.database, target.database)

    assert [job.id for job in target.jobs(Filter())] == [1, 2, 3]


def test_what_does_not_read_back_as_it_was_written_is_not_kept(small: Place, place: Place) -> None:
    place.create()
    with closing(sqlite3.connect(place.facts()["file"])) as connection:
        connection.execute(
            "create trigger harm after insert on jobs when new.id = 2 "
            "begin update jobs set priority = priority + 1 where id = 2; end"
        )

    with pytest.raises(StoreUnusable, match=r"jobs does not read back from .*to.db as it was copied"):
        copy(small.database, place.database)
    nothing_there(place)


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (
            "update jobs set key = char(0) where id = 2",
            r"the character U\+0000 in the column key of the row id 2",
        ),
        (
            "update jobs set params = x'00ff' where id = 2",
            "a value that is no text in the column params of the row id 2",
        ),
        (
            "update jobs set code = 'x' where id = 2",
            "a value that is no whole number in the column code of the row id 2",
        ),
        ("update jobs set code = 2147483648 where id = 2", "2147483648 in the column code of the row id 2"),
        ("update jobs set superseded = 2 where id = 2", "2 in the column superseded of the row id 2"),
        (
            "update jobs set key = cast(x'ff' as text) where id = 2",
            "a row of jobs in .* holds a value that is not text",
        ),
        ("insert into audit values (2, 0, '', '', '{}', 0, null, '', '')", "has entry 2 where 1 is due"),
    ],
)
def test_what_a_server_cannot_keep_is_named(small: Place, server: Place, harm: str, says: str) -> None:
    with closing(sqlite3.connect(small.facts()["file"])) as connection:
        connection.execute("drop trigger audit_follows")
        connection.execute(harm)
        connection.commit()

    with pytest.raises(StoreUnusable, match=says):
        copy(small.database, server.database)
    nothing_there(server)
