"""Tasks of a Disbatch database on nodes of ours: real processes, a real server that speaks MongoDB's protocol."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import PyMongoError

import waiting
from bridges.mongo import MongoServer
from cli.shell import Shell
from long_tests import LONG, long_alone
from spinney.bridges.disbatch.database import Database, Status, connect
from spinney.bridges.disbatch.output import stored

pytestmark = pytest.mark.timeout(1800)
DEADLINE_S = 600.0
"""Only for what never happens: on a busy machine everything may take many times as long as on an idle one."""
TESTS = Path(__file__).parents[2]
DEMO = "Disbatch::Plugin::Demo"
SETTINGS = f"""
[plugins]
"{DEMO}" = "demo"
"""


class Node:
    """One node of ours, with a store and a folder of its own."""

    def __init__(
        self, place: Path, db: Database, server: MongoServer, name: str, settings: str = SETTINGS
    ) -> None:
        self.place, self.db, self.name = place / name, db, name
        self.place.mkdir()
        (self.place / "disbatch.toml").write_text(settings)
        self.own_environment = {
            "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
            "TASK_NOTES": str(place / "notes"),
            "DISBATCH_MONGO": server.url,
            "DISBATCH_DATABASE": db.name,
        }
        self.environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("SPINNEY_", "DISBATCH_"))
        } | self.own_environment
        self.processes: list[subprocess.Popen[bytes]] = []
        self.spinney("init")

    def spinney(self, *words: str, code: int = 0) -> str:
        result = Shell(self.place).call(*words, **self.own_environment)
        assert result.returncode == code, (words, result.stdout, result.stderr)
        return result.stdout

    def start(self, *options: str, slots: int = 2) -> None:
        words = [
            "disbatch",
            "node",
            "bridges.disbatch.node_tasks:app",
            "--name",
            self.name,
            "--slots",
            str(slots),
        ]
        with (self.place / "log").open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "spinney", *words, *options],
                    cwd=self.place,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def kill_bridge(self) -> None:
        """End the bridge alone without a warning; its node works on."""
        self.processes[-1].kill()
        self.processes[-1].wait()

    def kill(self) -> None:
        """End the bridge and the node and all that they run, without a warning."""
        process = self.processes[-1]
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        process = self.processes[-1]
        process.terminate()
        assert process.wait(DEADLINE_S) == 0, self.log()

    def log(self) -> str:
        return (self.place / "log").read_text()

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
                process.wait(DEADLINE_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the node of a bridge that was killed


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    """Nodes that are ended after the test."""
    made: list[Node] = []
    yield made
    for node in made:
        node.close()


@pytest.fixture(scope="module")
def kept(mongo_server: MongoServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node for tests that do no more with it than ``working`` puts right again."""
    with mongo_server.database() as db:
        node = Node(tmp_path_factory.mktemp("kept"), db, mongo_server, "oak")
        yield node
        node.close()


@pytest.fixture
def working(kept: Node) -> Node:
    """``kept`` at work, with a bridge that has started its node."""
    if not kept.processes or kept.processes[-1].poll() is not None:
        kept.start()
        finished(kept.db, kept, tasks(kept.db, queue(kept.db, f"start-{len(kept.processes)}"), {}))
    return kept


@pytest.fixture
def own_db(own_server: MongoServer) -> Iterator[Database]:
    """A database there, which is gone with it."""
    db = connect(own_server.url, "own", timeout_s=10)
    yield db
    db.client.close()


def queue(
    db: Database, name: str = "mail", threads: int | None = 2, plugin: str = DEMO, **fields: Any
) -> ObjectId:
    document = {"name": name, "plugin": plugin, "threads": threads, **fields}
    inserted: ObjectId = db["queues"].insert_one(document).inserted_id
    return inserted


def tasks(db: Database, queue_id: ObjectId, *params: Mapping[str, Any], **fields: Any) -> Sequence[ObjectId]:
    now = datetime.now(UTC)
    documents = [
        {
            "queue": queue_id,
            "ctime": now,
            "mtime": now,
            "node": None,
            "status": int(Status.QUEUED),
            "params": dict(each),
            "stdout": None,
            "stderr": None,
            **fields,
        }
        for each in params
    ]
    return db["tasks"].insert_many(documents).inserted_ids


def beaten_at(db: Database) -> datetime:
    """When the node oak has sent its last heartbeat."""
    node = db["nodes"].find_one({"node": "oak"})
    assert node is not None
    beaten: datetime = node["timestamp"]
    return beaten


def until(what: str, node: Node, look: Callable[[], Any]) -> Any:
    return waiting.until(look, lambda: f"{what}\n{node.log()[-3000:]}", DEADLINE_S)


def finished(db: Database, node: Node, ids: Sequence[ObjectId]) -> list[dict[str, Any]]:
    """The tasks, when all have a result."""
    until(
        "results",
        node,
        lambda: not db["tasks"].count_documents({"_id": {"$in": ids}, "complete": {"$ne": True}}),
    )
    tasks = {task["_id"]: task for task in db["tasks"].find({"_id": {"$in": ids}})}
    return [tasks[each] for each in ids]


def notes(place: Path) -> list[tuple[float, str, str]]:
    lines = (place / "notes").read_text().splitlines() if (place / "notes").exists() else []
    return [(float(at), what, task) for at, what, task in (line.split() for line in lines)]


def most_at_once(place: Path, ids: Sequence[ObjectId]) -> int:
    """How many of these tasks ran at the same time, by what they noted themselves."""
    wanted, running, most = {str(each) for each in ids}, 0, 0
    for _, what, task in sorted(notes(place)):
        if task in wanted:
            running += 1 if what == "begin" else -1
            most = max(most, running)
    return most


def test_results_output_and_failures(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak"))
    mail = queue(db, threads=4)
    unknown = tasks(db, queue(db, "foreign", plugin="Disbatch::Plugin::Other"), {})
    ids = tasks(
        db,
        mail,
        {"commands": "*", "user": "ann"},
        {"commands": "7"},
        {"commands": "0"},
        {"commands": "fail"},
        {"wrong": 1},
    )
    (array,) = tasks(db, mail, {})
    db["tasks"].update_one({"_id": array}, {"$set": {"params": ["*"]}})
    blocked = tasks(db, mail, {}, status=-4)
    node.start()

    plain, own, zero, failed, wrong = finished(db, node, ids)

    assert (plain["status"], plain["stdout"], plain["stderr"], plain["node"]) == (1, "user ann\n", "", "oak")
    assert (own["status"], own["stdout"]) == (7, "of the plugin")
    assert (zero["status"], "the status 0" in zero["stderr"]) == (2, True)
    assert (failed["status"], "it broke" in failed["stderr"]) == (2, True)
    assert (wrong["status"], wrong["stdout"]) == (2, "Unable to start")
    assert "wrong" in wrong["stderr"]
    (array_task,) = finished(db, node, [array])
    assert (array_task["status"], "params" in array_task["stderr"]) == (2, True)
    assert [task["status"] for task in db["tasks"].find({"_id": {"$in": [*unknown, *blocked]}})] == [-2, -4]
    assert beaten_at(db) > datetime.now(UTC) - timedelta(seconds=30)
    assert "disbatch:" in node.spinney("bridges")
    node.spinney("bridges", "--forget", f"disbatch:{db.name}:oak", code=1)
    node.stop()
    assert "both sides agree" in node.spinney("bridge", "check", "disbatch", "--name", "oak")
    (taken,) = tasks(db, mail, {}, node="oak", status=0, claim=1)
    assert str(taken) in node.spinney("bridge", "check", "disbatch", "--name", "oak", code=1)
    assert "both sides agree" in node.spinney("bridge", "check", "disbatch", "--name", "oak", "--repair")
    node.spinney("bridge", "check", "nothing", code=2)


def test_a_repair_leaves_the_name_to_a_bridge_at_work_on_another_host(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak"))
    mail = queue(db)
    node.start()
    finished(db, node, tasks(db, mail, {}))
    # Another host does not see the lock of this one.
    (lock,) = tmp_path.rglob(".bridges/*.lock")
    lock.unlink()

    result = Shell(node.place).call("disbatch", "check", "--repair", "--name", "oak", **node.own_environment)

    assert result.returncode == 1
    assert f"the bridge disbatch:{db.name}:oak has just reported, so it is at work" in result.stderr
    assert [task["status"] for task in finished(db, node, tasks(db, mail, {}))] == [1]


@pytest.mark.parametrize(
    ("gfs", "sizes", "inline"),
    [
        ("auto", (10, 10), (True, True)),
        ("auto", (16 << 20, 10), (False, True)),
        ("auto", (10, 16 << 20), (False, False)),
        ("always", (10, 300_000), (False, False)),
    ],
)
def test_large_output_stands_in_files_as_the_releases_read_them(
    gfs: str, sizes: tuple[int, int], inline: tuple[bool, bool], db: Database
) -> None:
    task, texts = ObjectId(), ["ä" * (size // 2) for size in sizes]
    if "always" in gfs:
        texts = [text + "end" for text in texts]

    for _ in range(2):  # the second time changes nothing
        fields = stored(db, task, "1", *texts, gfs=gfs)

    for name, text, is_inline in zip(("stdout", "stderr"), texts, inline, strict=True):
        if is_inline:
            assert fields[name] == text
            continue
        (file,) = db["tasks.files"].find({"filename": name, "metadata.task_id": task})
        chunks = list(db["tasks.chunks"].find({"files_id": file["_id"]}).sort("n", 1))
        assert (fields[name], file["length"]) == (file["_id"], len(text.encode()))
        assert all(
            isinstance(chunk["data"], str) and len(chunk["data"]) <= file["chunkSize"] for chunk in chunks
        )
        assert "".join(chunk["data"] for chunk in chunks) == text


def test_limits_sorts_and_node_limits(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak"))
    db["nodes"].insert_one({"node": "oak", "timestamp": datetime.now(UTC), "maxthreads": 3})
    slow: dict[str, Any] = {"seconds": 0.2}
    first = tasks(db, queue(db, "first", threads=1, sort="fifo"), *[slow] * 4)
    last = tasks(db, queue(db, "last", threads=1, sort="lifo"), *[slow] * 4)
    two = tasks(db, queue(db, "two", threads=2), *[slow | {"meet": "two"}] * 6)
    never = tasks(db, queue(db, "never", threads=0), slow)
    unset = tasks(db, queue(db, "unset", threads=None), slow)
    node.start(slots=8)

    finished(db, node, [*first, *last, *two])

    begun = [task for _, what, task in sorted(notes(tmp_path)) if what == "begin"]
    assert [task for task in begun if task in map(str, first)] == [str(each) for each in first]
    assert [task for task in begun if task in map(str, last)] == [str(each) for each in reversed(last)]
    assert most_at_once(tmp_path, two) == 2
    assert most_at_once(tmp_path, [*first, *last, *two]) <= 3
    assert db["tasks"].count_documents({"_id": {"$in": [*never, *unset]}, "status": -2}) == 2
    db["nodes"].update_one({"node": "oak"}, {"$set": {"maxthreads": 0}})
    db["queues"].update_one({"name": "never"}, {"$set": {"threads": 1}})
    beat = beaten_at(db)
    until("beats", node, lambda: beaten_at(db) > beat + timedelta(seconds=2))
    assert db["tasks"].count_documents({"_id": {"$in": never}, "status": -2}) == 1
    db["nodes"].update_one({"node": "oak"}, {"$set": {"maxthreads": None}})
    finished(db, node, never)


def test_cancel_reset_retry_and_deleted_tasks(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak"))
    mail = queue(db, threads=4)
    cancelled, deleted, failing = tasks(db, mail, {"seconds": 50}, {"seconds": 50}, {"commands": "fail"})
    node.start(slots=4)
    running = {"_id": {"$in": [cancelled, deleted]}, "status": 0}
    until("they run", node, lambda: db["tasks"].count_documents(running) == 2)

    db["tasks"].update_one({"_id": cancelled}, {"$set": {"wish": "cancel"}})
    db["tasks"].delete_one({"_id": deleted})
    (task,) = finished(db, node, [cancelled])
    assert (task["status"], "wish" in task) == (-5, False)
    until(
        "the job of the deleted task is cancelled",
        node,
        lambda: len(node.spinney("list", "--state", "cancelled", "--json").splitlines()) == 2,
    )

    # Reset as the command interface does it: the same task is another job.
    (task,) = finished(db, node, [failing])
    assert task["status"] == 2
    db["tasks"].update_one(
        {"_id": failing},
        {"$set": {"status": -2, "node": None, "params": {"commands": "9"}}, "$unset": {"complete": ""}},
    )
    (task,) = finished(db, node, [failing])
    assert task["status"] == 9

    # A job that is rerun here writes its result again.
    (job, *_) = [
        json.loads(line)["id"] for line in node.spinney("list", "--state", "completed", "--json").splitlines()
    ]
    db["tasks"].update_one({"_id": failing}, {"$set": {"stdout": "overwritten"}})
    node.spinney("rerun", str(job), "--yes")
    until("the output again", node, lambda: db["tasks"].find_one({"_id": failing, "stdout": "of the plugin"}))


def test_programs_are_plugins(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    program = tmp_path / "migrate"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys, time\n"
        "path = sys.argv[sys.argv.index('--task') + 1]\n"
        "task = json.load(open(path))\n"
        "code = task['params'].get('exit')\n"
        "time.sleep(task['params'].get('sleep', 0))\n"
        "if code == 9: import os; os.kill(os.getpid(), 9)\n"
        "answer = {'status': task['params'].get('status', 1), 'stdout': ' '.join(sys.argv[3:]), 'stderr': ''}\n"
        "if code is not None and code < 9 or code is None:\n"
        "    json.dump(answer, open(path.replace('.json', '-response.json'), 'w'))\n"
        "sys.exit(code or 0)\n"
    )
    program.chmod(0o755)
    kinds, settings = ("default", "nomongo"), 'config = "/etc/c.json"\n[plugins]\n"/no/program" = {}\n'
    mails, endless = {}, {}
    for kind in kinds:
        usual, slow_program = tmp_path / kind, tmp_path / f"{kind}-slow"
        for each in (usual, slow_program):
            each.symlink_to(program)
        settings += (
            f'"{usual}" = {{type = "{kind}"}}\n"{slow_program}" = {{type = "{kind}", timeout = "1s"}}\n'
        )
        mail, slow_queue = (queue(db, each.name, plugin=str(each)) for each in (usual, slow_program))
        mails[kind] = tasks(db, mail, {}, {"status": 5}, {"exit": 3}, {"exit": 9})
        endless[kind] = tasks(db, slow_queue, {"sleep": 600})
    missing = tasks(db, queue(db, "missing", plugin="/no/program"), {})
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak", settings))
    node.start()

    for kind in kinds:
        passed, five, bad_exit, killed = finished(db, node, mails[kind])
        assert (passed["status"], passed["stdout"]) == (
            1,
            "--config /etc/c.json" if kind == "default" else "",
        )
        assert five["status"] == 5
        assert (bad_exit["status"], bad_exit["cmdExit"]) == (2, 3)
        assert (killed["status"], killed["cmdExit"], killed["cmdErr"]) == (2, -1, "signal 9")
        (slow,) = finished(db, node, endless[kind])
        assert (slow["status"], slow["cmdExit"], "its timeout of 1 s" in slow["stderr"]) == (2, -1, True)
    (none,) = finished(db, node, missing)
    assert (none["status"], none["cmdExit"]) == (2, -3)


def test_orphans_of_hosts_that_no_longer_beat(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    settings = 'orphaned_after = "10s"\n' + SETTINGS
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak", settings))
    old, mail = datetime.now(UTC) - timedelta(hours=1), queue(db)
    db["nodes"].insert_many(
        [{"node": "dead", "timestamp": old}, {"node": "alive", "timestamp": datetime.now(UTC)}]
    )
    dead = [
        tasks(db, mail, {}, node=host, status=status, mtime=old)[0]
        for host in ("dead", "gone")
        for status in (0, -1)
    ]
    alive = tasks(db, mail, {}, node="alive", status=0, mtime=old)
    not_ours = tasks(
        db, mail, {}, node="oak", status=-1, mtime=old
    )  # another program claimed it under our name
    node.start()

    def orphaned() -> bool:
        db["nodes"].update_one({"node": "alive"}, {"$set": {"timestamp": datetime.now(UTC)}})
        return db["tasks"].count_documents({"_id": {"$in": [*dead, *not_ours]}, "status": -6}) == 5

    until("orphans", node, orphaned)
    assert db["tasks"].count_documents({"_id": {"$in": alive}, "status": 0}) == 1


def test_the_configuration_is_read_again_while_it_runs(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak"))
    one, two = queue(db, "one"), queue(db, "two")
    db["config"].insert_one({"ignorequeues": ["two"], "label": "production"})
    node.start()
    first, second = tasks(db, one, {}), tasks(db, two, {})
    finished(db, node, first)
    assert db["tasks"].count_documents({"_id": {"$in": second}, "status": -2}) == 1

    db["config"].update_one({}, {"$set": {"activequeues": [str(two)]}})

    finished(db, node, second)
    db["config"].update_one({}, {"$set": {"gfs": "nonsense"}})
    until("the error", node, lambda: "the field is ignored" in node.log())
    finished(db, node, tasks(db, two, {}))


def test_a_new_process_takes_over_and_what_runs_goes_on(working: Node) -> None:
    node, db, old = working, working.db, working.processes[-1]
    ids = tasks(db, queue(db, "long", threads=1, sort="fifo"), {"seconds": 4}, {})
    until("it runs", node, lambda: db["tasks"].count_documents({"_id": ids[0], "status": 0}) == 1)

    node.start("--replace")

    assert [task["status"] for task in finished(db, node, ids)] == [1, 1]
    own = [what for _, what, task in notes(node.place.parent) if task in map(str, ids)]
    assert Counter(own) == {"begin": 2, "end": 2}
    assert old.wait(DEADLINE_S) == 0, node.log()
    assert node.processes[-1].poll() is None


def test_a_new_process_whose_node_cannot_start_leaves_the_old_one_at_work(working: Node) -> None:
    node, db = working, working.db

    node.start("--replace", "--drain", "a while")

    assert node.processes[-1].wait(DEADLINE_S) == 2, node.log()
    node.processes.pop()
    finished(db, node, tasks(db, queue(db, "after"), {}))
    assert node.processes[-1].poll() is None


def test_a_bridge_that_is_killed_leaves_its_node_at_work(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    nodes.append(node := Node(tmp_path, db, mongo_server, "oak"))
    ids = tasks(db, queue(db, threads=1, sort="fifo"), {"seconds": 3}, {})
    node.start()
    until("it runs", node, lambda: db["tasks"].count_documents({"_id": ids[0], "status": 0}) == 1)
    node.kill_bridge()

    node.start()

    assert [task["status"] for task in finished(db, node, ids)] == [1, 1]
    assert Counter(what for _, what, _ in notes(tmp_path)) == {"begin": 2, "end": 2}


def test_a_bridge_whose_node_has_died_says_what_to_start(working: Node) -> None:
    node, db, before = working, working.db, len(working.log())
    bridge = node.processes[-1].pid
    (guard,) = Path(f"/proc/{bridge}/task/{bridge}/children").read_text().split()

    os.kill(int(guard), signal.SIGKILL)

    assert node.processes[-1].wait(DEADLINE_S) not in (0, 2)
    own = rf"disbatch:{db.name}:oak: its node disbatch-{db.name}-oak has ended by itself"
    assert re.search(
        rf"^\d{{4}}-\d\d-\d\d [\d:,]+ ERROR spinney.bridges: {own}", node.log()[before:], re.MULTILINE
    )


def test_a_node_of_a_bridge_that_has_ended_by_itself_names_the_bridge(working: Node) -> None:
    node, db, before = working, working.db, len(working.log())
    bridge = node.processes[-1].pid
    (guard,) = Path(f"/proc/{bridge}/task/{bridge}/children").read_text().split()
    (supervisor,) = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()

    os.kill(int(supervisor), signal.SIGKILL)

    assert node.processes[-1].wait(DEADLINE_S) == 1
    assert f"Start the bridge disbatch:{db.name}:oak again by its own command" in node.log()[before:]
    assert "Start it again: spinney node" not in node.log()[before:]


@pytest.mark.parametrize("name", ["a/b", "../oak", "oak tree", "o" * 300])
def test_a_name_that_no_node_can_have_is_refused_before_anything_is_written(
    name: str, db: Database, mongo_server: MongoServer, tmp_path: Path
) -> None:
    node = Node(tmp_path, db, mongo_server, "oak")

    result = Shell(node.place).call("disbatch", "node", "--name", name, **node.own_environment)

    assert result.returncode == 2
    assert "cannot name a node" in result.stderr
    assert db["nodes"].count_documents({}) == 0
    assert "no bridge has reported yet" in node.spinney("bridges")


def test_kills_and_an_absent_database_lose_and_double_nothing(
    own_db: Database, own_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    nodes.append(node := Node(tmp_path, own_db, own_server, "oak"))
    ids = tasks(own_db, queue(own_db, threads=2, sort="fifo"), *[{"seconds": 0.02}] * 72)
    done = {"_id": {"$in": ids}, "complete": True}
    for part in (12, 30):
        node.start()
        until("some results", node, lambda part=part: own_db["tasks"].count_documents(done) >= part)
        node.kill()
    node.start()
    until("more results", node, lambda: own_db["tasks"].count_documents(done) >= 42)
    own_server.kill()
    until("the bridge misses it", node, lambda: "next try in" in node.log())
    until("it says so", node, lambda: "MongoDB" in node.spinney("bridges"))
    own_server.start()

    results = finished(own_db, node, ids)

    assert {task["status"] for task in results} <= {1, 2}
    begun = {task: at for at, what, task in sorted(notes(tmp_path)) if what == "begin"}
    assert all(begun[str(task["_id"])] < task["mtime"].timestamp() + 0.001 for task in results)
    lost = [task["stderr"] for task in results if task["status"] == 2]
    assert len(lost) <= 2 * 2, lost  # what ran when it was killed, and is not tried again
    assert not own_db["tasks"].count_documents({"status": {"$in": [-1, 0]}})


def test_nodes_of_ours_and_an_older_one_share_tasks(
    db: Database, mongo_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    """Each task runs once, and no limit is exceeded, by what the tasks noted themselves. The long form has 10,000
    tasks in portions, because this server reads all free tasks of a queue for each claim. There are more portions until
    each of the three has had tasks."""
    portions, number = (10, 500) if LONG else (1, 50)
    names = {"oak", "elm", "small"}
    queues = {
        name: queue(db, name, threads=threads, sort=sort)
        for name, threads, sort in (("first", 3, "fifo"), ("last", 5, "lifo"))
    }
    for name in ("oak", "elm"):
        nodes.append(Node(tmp_path, db, mongo_server, name))
        nodes[-1].start(slots=4)
    words = [
        sys.executable,
        "-m",
        "bridges.disbatch.small_node",
        mongo_server.url,
        db.name,
        "small",
        str(tmp_path / "notes"),
    ]
    small = subprocess.Popen(words, cwd=TESTS)
    made: dict[str, list[ObjectId]] = {"first": [], "last": []}
    try:
        until("all beat", nodes[0], lambda: {node["node"] for node in db["nodes"].find()} == names)
        while portions or {task["node"] for task in db["tasks"].find({}, {"node": True})} != names:
            portions = max(0, portions - 1)
            portion = {name: tasks(db, queues[name], *[{}] * number) for name in queues}
            for name, ids in portion.items():
                made[name] += ids
            _wait_for(db, tmp_path, sum(map(len, made.values())), nodes)
            for name, step in (("first", 1), ("last", -1)):
                assert _latest(tmp_path, portion[name][::step]) <= 20
    finally:
        small.terminate()
        assert small.wait(DEADLINE_S) == 0

    ids = [*made["first"], *made["last"]]
    assert Counter(task for _, what, task in notes(tmp_path) if what == "end") == Counter(map(str, ids))
    assert Counter(task["status"] for task in db["tasks"].find({}, {"status": True})) == {1: len(ids)}
    assert most_at_once(tmp_path, made["first"]) <= 3
    assert most_at_once(tmp_path, made["last"]) <= 5


def _wait_for(db: Database, place: Path, number: int, nodes: Sequence[Node]) -> None:
    """Wait until so many tasks have ended and are complete. The notes are read first, because counting documents takes
    this server as long as several claims."""
    waiting.until(
        lambda: (
            sum(what == "end" for _, what, _ in notes(place)) >= number
            and db["tasks"].count_documents({"complete": True}) >= number
        ),
        lambda: "".join(node.log()[-1500:] for node in nodes),
        2 * DEADLINE_S * (10 if LONG else 1),
    )


def _latest(place: Path, ids: Sequence[ObjectId]) -> int:
    """Return by how many places at most a task began earlier or later than its turn. Claims are in order; what was
    claimed together, and given back, moves a little."""
    turn = {str(task_id): index for index, task_id in enumerate(ids)}
    begun = [turn[task] for _, what, task in sorted(notes(place)) if what == "begin" and task in turn]
    return max(abs(index - at) for index, at in enumerate(begun))


def _left(db: Database) -> int:
    """How many tasks have no result; many while the server, which was just started again, does not answer."""
    try:
        return db["tasks"].count_documents({"complete": {"$ne": True}})
    except PyMongoError:
        return 1_000_000


@long_alone
def test_kills_at_random_of_nodes_bridges_and_database(
    own_db: Database, own_server: MongoServer, tmp_path: Path, nodes: list[Node]
) -> None:
    """Two nodes share 2,000 tasks, while one of node, bridge and database is killed again and again."""
    chance = random.Random(os.getpid())
    ids = tasks(own_db, queue(own_db, threads=6), *[{"seconds": 0.01}] * 2_000)
    for name in ("oak", "elm"):
        nodes.append(Node(tmp_path, own_db, own_server, name))
        nodes[-1].start(slots=4)
    give_up = time.monotonic() + 3000
    while (left := _left(own_db)) and time.monotonic() < give_up:
        time.sleep(chance.uniform(1, 6))
        node = chance.choice(nodes)
        what = chance.choice(("node", "bridge", "database"))
        print(left, what, node.name)
        if what == "database":
            own_server.kill()
            time.sleep(chance.uniform(0, 3))
            own_server.start()
        else:
            node.kill() if what == "node" else node.kill_bridge()
            node.start(slots=4)

    begun = {task: at for at, what, task in sorted(notes(tmp_path)) if what == "begin"}
    for task in own_db["tasks"].find({}):
        assert task["status"] in (1, 2), task
        # One that was killed may begin again, but none whose result is written.
        assert begun[str(task["_id"])] < task["mtime"].timestamp() + 0.001, task
    assert len(ids) == own_db["tasks"].count_documents({"complete": True})
    assert most_at_once(tmp_path, ids) <= 6 + 4  # a task that was killed has noted no end
