"""``spinney nodes``, ``drain``, ``resume`` and ``slots``."""

import json
from dataclasses import replace

import pytest

from spinney.features.submission.wait_cli import COUNTED_TREES
from spinney.model.fleet import Load
from spinney.model.jobs import ClaimRequest, LaneRequest, NodeInfo, SlotRequest
from spinney.model.queue_selection import QueueSelection
from spinney.terminal.connection import now_us, open_local_store

from .shell import Shell

INFO = NodeInfo(
    id=0,
    name="elm",
    boot_id="",
    host="forest",
    pid=1,
    slots=4,
    state="active",
    beat=0,
    started_us=1,
    seen_us=1,
    version="1.2",
    types=("double", "b", "c", "d", "e"),
    serves=QueueSelection(ignored=("slow",)),
)


@pytest.fixture
def staffed(shell: Shell) -> Shell:
    """Node elm beats, leads and runs one job; node oak drains."""
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        elm = store.join(INFO, now_us=now_us())
        oak = store.join(replace(INFO, name="oak", serves=QueueSelection(), types=()), now_us=now_us())
        store.update_node(oak, state="draining", now_us=now_us())
        load = Load(one_minute=0.5, cpus=2, memory_bytes=2**31, memory_free_bytes=2**30)
        # An hour ahead, so that it is not silent however slow the test is.
        store.beat(elm, load=load, trouble="the database answers slowly", now_us=now_us() + 3_600_000_000)
        store.beat(oak, now_us=now_us() + 3_600_000_000)
        store.elect_leader(elm, now_us=now_us())
        shell.ok("submit", "double", "-p", "n=1")
        (stage,) = store.types()["double"].stages
        lanes = {("double", stage.name): LaneRequest()}
        want = ClaimRequest(node_id=elm, slots=[SlotRequest(0, 1, 1e5, True)], lanes=lanes)
        assert len(store.flush_and_claim([], want, now_us=now_us()).leases) == 1
    return shell


def test_nodes_are_listed_with_what_they_do(staffed: Shell) -> None:
    heading, elm, oak = staffed.ok("nodes").splitlines()

    assert heading.split() == ["NODE", "HOST", "STATE", "SLOTS", "LOAD", "VERSION", "TYPES", "QUEUES"]
    for word in (
        "forest",
        "degraded",
        "1/4",
        "0.50 of 2, 1.1 GB free",
        "1.2",
        "double, b, c, d and 1 more",
        "all but slow",
        "leader; the database answers slowly",
    ):
        assert word in elm
    assert oak.split()[:4] == ["oak", "forest", "draining", "0/4"]


def test_a_silent_node_is_listed_with_its_lease(shell: Shell) -> None:
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.join(replace(INFO, lease_s=600.0), now_us=now_us() - 120_000_000)

    (elm,) = shell.ok("nodes").splitlines()[1:]

    assert "silent since" in elm
    assert "(lease 600 s)" in elm


def test_programs_get_a_line_for_each(staffed: Shell) -> None:
    elm, _ = staffed.listed("nodes")

    assert {k: elm[k] for k in ("node", "state", "used", "slots", "is_leader", "drained_by")} == {
        "node": "elm",
        "state": "degraded",
        "used": 1,
        "slots": 4,
        "is_leader": True,
        "drained_by": None,
    }
    assert elm["load"]["cpus"] == 2
    assert elm["serves"]["ignored"] == ["slow"]


def test_where_no_node_is_that_is_told(shell: Shell) -> None:
    assert "start one with 'spinney node'" in shell.ok("nodes")
    assert shell.ok("nodes", "--json") == ""


def test_a_node_is_drained_and_resumed(staffed: Shell) -> None:
    output = staffed.ok("drain", "elm", "--reason", "new disk", "--by", "ann")
    assert output == (
        "node elm takes no new jobs; 1 of its slots is still at work; 'spinney resume elm' lets it go on\n"
    )
    drained = staffed.ok("nodes").splitlines()[1]
    assert " drained " in drained
    assert "drained by ann: new disk" in drained

    assert staffed.ok("resume", "elm", "--by", "bob") == "node elm goes on\n"
    assert "drained" not in staffed.ok("nodes").splitlines()[1]
    assert [(e["by"], e["verb"], e["reason"]) for e in staffed.listed("audit")] == [
        ("ann", "drain", "new disk"),
        ("bob", "resume", None),
    ]


def test_lists_say_so_when_what_could_run_a_job_is_drained(staffed: Shell) -> None:
    staffed.ok("drain", "elm")
    staffed.ok("submit", "double", "-p", "n=2")

    assert "node elm is drained; 'spinney resume elm' lets it go on" in staffed.ok("list")
    assert "node elm, which knows job type 'double', is drained by" in staffed.ok("explain", "2")
    assert "drained" in staffed.ok("stats")


def test_lists_say_so_when_all_that_could_run_a_job_are_silent(shell: Shell) -> None:
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.join(INFO, now_us=now_us() - 120_000_000)
    shell.ok("submit", "double", "-p", "n=1")

    assert "node elm gives no sign of life; 'spinney explain 1' says since when" in shell.ok("list")
    assert "given no sign of life" in shell.ok("explain", "1")


def test_lists_say_so_when_all_that_know_the_type_have_other_code_for_it(shell: Shell) -> None:
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.join(replace(INFO, stages=("double/former",)), now_us=now_us())
    shell.ok("submit", "double", "-p", "n=1")

    assert "no running node has code with stage 'double' of 'double'; start one" in shell.ok("list")


def test_a_running_job_whose_node_is_silent_is_listed_and_waited_for_with_that_message(
    staffed: Shell,
) -> None:
    """Its state alone would say that it runs; a progress message says where it was when the node was heard of last."""
    assert "no sign of life" not in staffed.ok("list")
    with open_local_store(f"sqlite:///{staffed.folder}/spinney.db") as store:
        elm = next(node for node in store.nodes() if node.name == "elm")
        store.beat(elm.id, now_us=now_us() - 120_000_000)
    message = "node elm gives no sign of life; 'spinney explain 1' says since when"

    for command in ("list", "show", "tree"):
        assert message in staffed.ok(*((command,) if command == "list" else (command, "1")))
    assert "node elm has it in slot 0, but has given no sign of life" in staffed.ok("explain", "1")
    lines = staffed.first_two_lines("wait", "1")
    assert lines[0].startswith("0 of 1 settled; 1 ")
    assert message in lines[1]


def test_the_attempt_of_a_claimed_job_is_not_said_to_run(staffed: Shell) -> None:
    shown = staffed.ok("show", "1")

    assert "claimed" in shown.partition("OUTCOME")[2]
    assert "running" not in shown


def test_a_wait_for_a_long_list_that_stands_at_such_a_job_says_so(staffed: Shell) -> None:
    numbers = range(2, COUNTED_TREES + 2)
    staffed.submit_lines("".join(f'{{"n": {n}}}\n' for n in numbers), "double")
    staffed.ok("cancel", *map(str, numbers))
    with open_local_store(f"sqlite:///{staffed.folder}/spinney.db") as store:
        elm = next(node for node in store.nodes() if node.name == "elm")
        store.beat(elm.id, now_us=now_us() - 120_000_000)

    lines = staffed.first_two_lines("wait", *map(str, numbers), "1")

    assert lines[0].startswith(f"{len(numbers)} of {len(numbers) + 1} settled: ")
    assert "node elm gives no sign of life; 'spinney explain 1' says since when" in lines[1]


def test_a_job_of_a_node_that_is_being_replaced_has_no_such_message(staffed: Shell) -> None:
    with open_local_store(f"sqlite:///{staffed.folder}/spinney.db") as store:
        elm = next(node for node in store.nodes() if node.name == "elm")
        store.beat(elm.id, now_us=now_us() - 120_000_000)
        successor = store.join(INFO, now_us=now_us())
        store.beat(successor, now_us=now_us() + 3_600_000_000)

    assert "no sign of life" not in staffed.ok("list")


def test_slots_are_set_and_as_started_again(staffed: Shell) -> None:
    assert staffed.ok("slots", "elm", "1") == "node elm has 1 slot\n"
    assert staffed.ok("slots", "elm", "9") == "node elm has 9 slots\n"
    assert "1/9" in staffed.ok("nodes")
    assert "started with 4 slots" in staffed.ok("nodes")
    assert staffed.ok("slots", "elm", "default") == "node elm has the slots that it was started with\n"
    assert json.loads(staffed.ok("slots", "elm", "2", "--json")) == {"drained": False, "slots": 2}


def test_a_node_that_left_keeps_its_orders(staffed: Shell) -> None:
    with open_local_store(f"sqlite:///{staffed.folder}/spinney.db") as store:
        oak = next(n for n in store.nodes() if n.name == "oak")
        store.update_node(oak.id, state="left", now_us=now_us())

    assert "is not running; when it starts it takes no jobs before 'spinney resume oak'" in staffed.ok(
        "drain", "oak"
    )
    assert "when it starts it takes jobs" in staffed.ok("resume", "oak")
    assert json.loads(staffed.ok("drain", "oak", "--json")) == {"drained": True, "slots": None}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["drain", "elmm"], 1, "did you mean 'elm'"),
        (["resume", "elm"], 1, "node elm is not drained"),
        (["slots", "elm", "0"], 2, "spinney drain elm"),
        (["slots", "elm", "many"], 2, "is not a number of slots"),
        (["drain", "../etc"], 2, "cannot name a node"),
        (["drain", "elm", "--reason", "a\nb"], 2, "cannot be a reason"),
    ],
)
def test_what_is_refused_changes_nothing(staffed: Shell, words: list[str], code: int, message: str) -> None:
    assert message in staffed.refused(code, *words)
    assert staffed.listed("audit") == []
