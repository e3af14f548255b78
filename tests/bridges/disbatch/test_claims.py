"""Claims and a node's registration against a real server, without a node of Spinney behind them."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from bson import ObjectId
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import WriteError
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from bridges.mongo import MongoServer
from spinney.bridges.disbatch import database, limits, registration
from spinney.bridges.disbatch.claims import Claims
from spinney.bridges.disbatch.database import Database, connect, ensure_indexes
from spinney.bridges.disbatch.node import DisbatchNode
from spinney.bridges.disbatch.settings import Settings
from spinney.bridges.foreign import ForeignAway
from waiting import until

DEMO = "Disbatch::Plugin::Demo"


def node(db: Database, *, name: str = "oak") -> DisbatchNode:
    return DisbatchNode(db, name, Settings(plugins={DEMO: "demo"}), types=lambda: {"demo"})


def begun(node: DisbatchNode, mark: str = "one", *, linked: bool = False) -> DisbatchNode:
    node.begin(mark, linked=linked)
    return node


def queue(db: Database, threads: Any = 4, name: str = "mail") -> ObjectId:
    document: dict[str, Any] = {"name": name, "plugin": DEMO, "threads": threads}
    inserted: ObjectId = db["queues"].insert_one(document).inserted_id
    return inserted


def task(db: Database, queue_id: ObjectId, **fields: Any) -> ObjectId:
    document: dict[str, Any] = {
        "queue": queue_id,
        "node": None,
        "status": -2,
        "mtime": datetime.now(UTC),
        "params": {},
    }
    inserted: ObjectId = db["tasks"].insert_one(document | fields).inserted_id
    return inserted


def states(db: Database) -> dict[ObjectId, tuple[int, str | None, bool]]:
    return {each["_id"]: (each["status"], each["node"], "claim" in each) for each in db["tasks"].find({})}


def test_what_exceeds_a_limit_behind_the_claim_is_given_back(db: Database) -> None:
    mail = queue(db, threads=2)
    first, second = task(db, mail), task(db, mail)
    claims, limited = Claims(db, "oak"), [{"_id": mail, "sort": "fifo", "threads": 2}]
    marked = claims._mark({first: mail, second: mail}, -1)
    other = task(db, mail, node="elm", status=0)  # another node saw the same free places

    kept = claims._within(limited, marked, -1)

    assert [each["_id"] for each in kept] == [first]
    assert states(db) == {first: (-1, "oak", True), second: (-2, None, False), other: (0, "elm", False)}
    assert kept[0]["claim"] > 0


def test_a_claim_that_a_kill_left_before_the_second_count_is_given_back(db: Database) -> None:
    mail = queue(db)
    left, cancelled, confirmed = task(db, mail), task(db, mail), task(db, mail)
    claims = Claims(db, "oak")
    claims._mark({left: mail, cancelled: mail}, -1)  # and then the process was killed
    (taken,) = Claims(db, "oak").take([{"_id": mail, "threads": 4}], 1, None)
    db["tasks"].update_one({"_id": cancelled}, {"$set": {"wish": "cancel"}})

    claimed = node(db).claimed()

    assert [claim.entry for claim in claimed] == [str(confirmed)] == [str(taken["_id"])]
    assert states(db) == {
        left: (-2, None, False),
        cancelled: (-5, "oak", False),
        confirmed: (-1, "oak", True),
    }


def test_a_second_store_under_the_same_name_is_refused_until_the_first_is_gone(db: Database) -> None:
    mail, first = queue(db), node(db)
    begun(first)
    running = task(db, mail)
    assert [claim.entry for claim in first.claim(4)] == [str(running)]
    second = node(db)
    with pytest.raises(ForeignAway, match=r"another store.*--name"):
        begun(second, "two")
    begun(node(db), "one")  # the first one, started again

    old = datetime.now(UTC) - timedelta(seconds=400)
    db["nodes"].update_one({"node": "oak"}, {"$set": {"spinney.seen": old}})
    begun(second, "two")

    assert states(db) == {running: (-6, "oak", False)}
    assert list(second.claimed()) == []
    waiting = task(db, mail)
    for each in (first.tend, first.claimed, lambda: first.claim(4)):
        with pytest.raises(ForeignAway, match=r"another store.*--name"):
            each()
    assert states(db)[waiting] == (-2, None, False)


def test_after_an_outage_hosts_have_their_time_to_beat_again(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``elm`` runs a task of a queue that was deleted; its document does not change."""
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("spinney.bridges.disbatch.registration.time", clock)
    db["nodes"].insert_one({"node": "elm", "timestamp": datetime.now(UTC)})
    running, waiting = task(db, ObjectId(), node="elm", status=0), task(db, ObjectId(), node="elm", status=-2)
    oak = node(db)._registration

    def status_after(seconds: float) -> int:
        now[0] += seconds
        oak.mark_orphans(orphaned_after=60)
        return states(db)[running][0]

    assert [status_after(5) for _ in range(10)] == [0] * 10
    assert status_after(600) == 0  # the database was away meanwhile
    assert [status_after(5) for _ in range(11)] == [0] * 11
    assert status_after(5) == -6
    assert states(db)[waiting][0] == -2


def test_another_database_of_the_same_name_is_refused_while_jobs_belong_to_tasks(db: Database) -> None:
    with pytest.raises(ForeignAway, match="spinney bridges --forget"):
        begun(node(db), linked=True)

    begun(node(db), linked=False)
    begun(node(db), linked=True)
    db["nodes"].delete_one({"node": "oak"})
    db["nodes"].insert_one({"node": "oak", "timestamp": datetime.now(UTC), "maxthreads": 3})  # of a release
    with pytest.raises(ForeignAway, match="spinney bridges --forget"):
        begun(node(db), linked=True)


def test_fields_of_the_configuration_are_judged_one_by_one(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    ignored, served = queue(db, name="slow"), queue(db)
    task(db, ignored)
    wanted = task(db, served)
    oak = node(db)
    db["config"].insert_one({"plugins": [DEMO], "ignorequeues": ["slow"], "gfs": "nonsense"})

    begun(oak)

    assert [claim.entry for claim in oak.claim(4)] == [str(wanted)]
    assert [record.message.count("plugins") for record in caplog.records if record.levelname == "ERROR"] == [
        1,
        0,
    ]


def test_queues_may_share_a_name_and_other_indexes_are_made(db: Database) -> None:
    queue(db), queue(db)

    ensure_indexes(db)

    assert "node_1" in db["nodes"].index_information()
    assert "name_1" not in db["queues"].index_information()


@pytest.mark.usefixtures("short_reach")
def test_a_server_that_does_not_answer_is_away(mongo_server: MongoServer) -> None:
    db = connect(mongo_server.url, "own", timeout_s=0.5)
    mongo_server.stop_answering()
    try:
        with pytest.raises(ForeignAway, match="MongoDB"):
            begun(node(db))
    finally:
        mongo_server.answer_again()
        db.client.close()


@pytest.mark.parametrize(
    ("threads", "limit"),
    [(4, 4), ("4", 4), (4.0, 4), (-1, 0), ("-1", 0), ("four", 0), (None, 0), (True, 0), (float("nan"), 0)],
)
def test_limits(threads: object, limit: int) -> None:
    assert limits.threads({"threads": threads}) == limit


class AtOnce(Claims):
    """Chooses, marks and counts at the same moments as another node."""

    moments: ClassVar[threading.Barrier]

    def _mark(self, *words: Any) -> list[dict[str, Any]]:
        self.moments.wait(60)
        marked = super()._mark(*words)
        self.moments.wait(60)
        self.has_marked = True
        return marked

    def _count(self, tasks: dict[str, Any]) -> int:
        count = super()._count(tasks)
        if self.__dict__.pop("has_marked", False):
            self.moments.wait(60)
        return count


def test_of_two_nodes_that_see_the_same_free_place_one_keeps_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.bridges.disbatch.claims.COUNTS", 10_000)  # however busy the machine is
    mail = queue(db, threads=1)
    for _ in range(20):
        task(db, mail)
    AtOnce.moments = threading.Barrier(2)
    kept = []
    with ThreadPoolExecutor() as pool:
        for name, order in (("oak", "fifo"), ("elm", "lifo")):  # so that they mark different tasks
            limited = {"_id": mail, "threads": 1, "sort": order}
            kept.append(pool.submit(AtOnce(db, name).take, [limited], 1, None))

    assert sorted(len(each.result()) for each in kept) == [0, 1]
    assert db["tasks"].count_documents({"status": -1}) == 1


def test_nodes_that_claim_at_once_stay_within_the_limit_and_never_share_a_task(db: Database) -> None:
    mail = queue(db, threads=3)
    ids = {task(db, mail) for _ in range(45)}
    ran: list[ObjectId] = []
    held: set[ObjectId] = set()
    at_once: list[int] = []

    def work(name: str) -> None:
        claims = Claims(db, name)
        while len(ran) < len(ids):
            for each in (
                taken := [each["_id"] for each in claims.take([{"_id": mail, "threads": 3}], 2, None)]
            ):
                held.add(each)
                ran.append(each)
            at_once.append(len(held))
            held.difference_update(taken)
            db["tasks"].update_many({"_id": {"$in": taken}}, {"$set": {"status": 1}})

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(work, name) for name in ("oak", "elm", "ash")]:
            done.result()

    assert sorted(ran) == sorted(ids)
    assert 0 < max(at_once) <= 3


def test_what_another_node_was_faster_to_take_is_replaced_at_once(db: Database) -> None:
    mail = queue(db)
    ids = [task(db, mail) for _ in range(4)]

    class Slow(Claims):
        def _mark(self, chosen: dict[Any, Any], claim: int) -> list[dict[str, Any]]:
            if self.node == "oak" and not fast:
                fast.extend(Claims(db, "elm").take([fifo], 2, None))
            return super()._mark(chosen, claim)

    fast: list[Any] = []
    fifo = {"_id": mail, "sort": "fifo", "threads": 9}

    taken = Slow(db, "oak").take([fifo], 2, None)

    assert [each["_id"] for each in (*fast, *taken)] == ids


def test_each_claim_reads_the_order_anew(db: Database) -> None:
    mail = queue(db)
    lifo, claims = {"_id": mail, "sort": "lifo", "threads": 9}, Claims(db, "oak")
    for _ in range(3):
        task(db, mail)
        newest = task(db, mail)
        assert [each["_id"] for each in claims.take([lifo], 1, None)] == [newest]


def test_without_an_order_nodes_choose_different_tasks(db: Database) -> None:
    mail = queue(db)
    for _ in range(20):
        task(db, mail)
    claims = Claims(db, "oak")

    choices = [claims._free({"_id": mail, "threads": 9}, 2) for _ in range(20)]

    assert {len(each) for each in choices} == {2}
    assert len({each for choice in choices for each in choice}) > 2


def test_tasks_with_other_ids_do_not_block_an_ordered_queue(db: Database) -> None:
    mail = queue(db)
    free = {"queue": mail, "node": None, "status": -2}
    db["tasks"].insert_many([{"_id": each, **free} for each in range(300)])
    good = task(db, mail)

    taken = Claims(db, "oak").take([{"_id": mail, "sort": "fifo", "threads": 2}], 2, None)

    assert [each["_id"] for each in taken] == [good]


def test_a_claim_reads_no_more_queues_than_it_has_slots_for(db: Database, mongo_server: MongoServer) -> None:
    ids = [queue(db, name=f"q{number}") for number in range(100)]
    queues = [{"_id": each, "threads": 2} for each in ids]
    for each in ids:
        task(db, each)
    commands: list[str] = []

    class Listener(CommandListener):
        def started(self, event: CommandStartedEvent) -> None:
            commands.append(event.command_name)

        def succeeded(self, event: CommandSucceededEvent) -> None: ...

        def failed(self, event: CommandFailedEvent) -> None: ...

    with MongoClient[Any](mongo_server.url, event_listeners=[Listener()]) as client:
        assert len(Claims(client[db.name], "oak").take(queues, 1, None)) == 1

    assert len(commands) < 10, commands


def test_one_claim_serves_several_queues_within_all_limits(db: Database) -> None:
    ids = [queue(db, name=name) for name in ("one", "two", "three")]
    for each in ids * 3:
        task(db, each)
    queues = [{"_id": each, "threads": 2} for each in ids]
    claims = Claims(db, "oak")

    taken = claims.take(queues, 9, 5)

    assert sorted(Counter(each["queue"] for each in taken).values()) == [1, 2, 2]
    assert list(claims.take(queues, 9, 5)) == []


def test_documents_with_wrong_types_are_passed_by(db: Database) -> None:
    """Each of them stands beside a good task, which is claimed all the same."""
    mail = queue(db)
    good = task(db, mail)
    strange = [1, "text", 4.5, {"a": {}}, None, True, datetime.now(UTC)]
    db["tasks"].insert_many([{"_id": 1, "queue": mail, "node": None, "status": -2}, {"queue": mail}])
    for each in strange:
        task(db, mail, status=each)
        task(db, ObjectId(), queue=each)
        task(db, mail, node=each if each is not None else 7, status=0, claim=each)
        task(db, mail, node="oak", status=-6, claim=each, complete=True)
        db["queues"].insert_one({"name": f"q{each}", "plugin": each, "threads": each, "sort": each})
        db["nodes"].insert_one({"node": f"n{each}", "timestamp": each, "maxthreads": each, "spinney": each})
    db["queues"].insert_many([{"_id": {"a": 1}, "name": 5}, {"_id": "text", "name": "t", "plugin": DEMO}])
    db["nodes"].insert_one({"node": "oak", "spinney": "text", "maxthreads": None})
    db["config"].insert_one(
        {"activequeues": 5, "plugins": 5, "gfs": [], "orphaned_after": {}, "log4perl": {}}
    )
    db["queues"].update_one({"_id": mail}, {"$set": {"threads": 100}})
    oak = node(db)

    begun(oak)
    oak._registration._looked_s = -1e9
    oak.tend()

    assert list(oak.claimed()) == []
    assert [claim.entry for claim in oak.claim(4)] == [str(good)]


def test_hosts_with_wrong_clocks_do_not_give_a_name_away(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time by which a name is in use is that of MongoDB's server."""

    def host_clock(days: int) -> None:
        clock = "spinney.bridges.disbatch.registration.utc_now"
        monkeypatch.setattr(clock, lambda: datetime.now(UTC) + timedelta(days=days))

    host_clock(-1)
    begun(node(db), "one")
    assert (db["nodes"].find_one({"node": "oak"}) or {})["timestamp"] < datetime.now(UTC) - timedelta(
        hours=23
    )

    host_clock(1)
    with pytest.raises(ForeignAway, match="another store"):
        begun(node(db), "two")


def test_beats_are_written_by_a_thread_of_their_own(db: Database) -> None:
    oak = node(db)
    with oak.beating():
        begun(oak)  # and then the bridge's own thread is busy
        beats: set[datetime] = set()

        def seen() -> bool:
            beats.add((db["nodes"].find_one({"node": "oak"}) or {})["timestamp"])
            return len(beats) >= 3

        until(seen)


def test_a_result_that_the_database_refuses_is_replaced_by_the_reason(db: Database) -> None:
    oak, large = node(db), task(db, queue(db), padding="x" * (10 << 20))
    begun(oak)
    (claim,) = oak.claim(1)

    oak.reject(claim, "y" * (7 << 20))

    ended = db["tasks"].find_one({"_id": large}, {"padding": False}) or {}
    assert (ended["status"], ended["complete"]) == (2, True)
    assert "MongoDB refused the result" in ended["stderr"]


def test_a_result_waits_while_the_disk_of_the_database_is_full(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    oak, waiting = node(db), task(db, queue(db))
    begun(oak)
    (claim,) = oak.claim(1)

    # A short reason in place of the result would find room.
    errors, update_one = [WriteError("out of disk space", 14031)], Collection.update_one

    def full_at_first(*args: Any, **kwargs: Any) -> Any:
        if errors:
            raise errors.pop()
        return update_one(*args, **kwargs)

    monkeypatch.setattr(Collection, "update_one", full_at_first)
    with pytest.raises(ForeignAway, match="out of disk space"):
        oak.reject(claim, "the reason")
    oak.reject(claim, "the reason")

    assert (db["tasks"].find_one({"_id": waiting}) or {})["stderr"] == "the reason"


def test_tasks_with_odd_claims_and_queues_do_not_stop_the_others(db: Database) -> None:
    oak = node(db)
    mail = queue(db)
    begun(oak)
    for odd in (float("inf"), 2.5, "text"):
        task(db, mail, node="oak", status=0, claim=odd)
    sound = task(db, mail, node="oak", status=0, claim=7)
    copied = task(db, mail, node="oak", status=0, claim=8.0)  # by a program that has no integers
    lost = task(db, mail, node="oak", status=0, claim=9)
    db["tasks"].update_one({"_id": lost}, {"$set": {"queue": [{"name": "mail"}]}})

    claims = {each.entry: (each.claim, each.type) for each in oak.claimed()}

    assert claims == {
        str(sound): ("7", "demo"),
        str(copied): ("8", "demo"),
        str(lost): ("9", "unknown plugin "),  # it waits until somebody has corrected it
    }


def test_a_check_says_which_tasks_another_program_has_claimed_under_the_name(db: Database) -> None:
    oak, mail = node(db), queue(db)
    ours = task(db, mail, node="oak", status=-1, claim=7)
    others = task(db, mail, node="oak", status=0)

    differences = dict(oak.differences({}))

    assert "has no job here: the bridge makes one" in differences[str(ours)]
    assert "another program has claimed it" in differences[str(others)]


@pytest.mark.usefixtures("short_reach")
def test_a_server_that_is_away_is_told_of_in_one_sentence() -> None:
    with (
        MongoClient("127.0.0.1:1", serverSelectionTimeoutMS=50) as client,
        pytest.raises(ForeignAway) as away,
    ):
        node(client["t"]).tend()

    assert str(away.value) == (
        "no primary of MongoDB answers (127.0.0.1:1: [Errno 111] Connection refused); start it, or repair the network. "
        "The bridge connects again by itself"
    )


@pytest.mark.timeout(120)
def test_an_absent_database_is_noticed_long_before_an_operation_has_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (database, registration):
        monkeypatch.setattr(module, "REACH_S", 0.1)
    db = connect("mongodb://127.0.0.1:1", "t", timeout_s=3600)
    oak = node(db)

    for step in (lambda: begun(oak), oak.tend, oak.claimed, lambda: oak.claim(1)):
        with pytest.raises(ForeignAway, match="no primary of MongoDB answers"):
            step()
    db.client.close()
