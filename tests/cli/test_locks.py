"""``spinney locks`` and ``spinney unlock``."""

import json
import os
import pty
import subprocess
import sys

import pytest

from spinney.model.jobs import ClaimRequest, LaneRequest, NodeInfo, SlotRequest
from spinney.model.settings.capacities import LockCapacity
from spinney.model.types import LockSpec, StageSpec, TypeSpec
from spinney.terminal.connection import now_us, open_local_store

from .shell import Shell

LOCK = "receiver:SG-1"
REASON = ("--reason", "it was rebooted")


@pytest.fixture
def locked(shell: Shell) -> Shell:
    """Job 1 has the lock and is said to run; jobs 2 and 3 wait for it."""
    spec = TypeSpec(
        name="read", stages=(StageSpec(name="fetch", locks=(LockSpec(template="receiver:{serno}"),)),)
    )
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.register([spec], [])
        for _ in range(3):
            shell.ok("submit", "read", "-p", "serno=SG-1")
        info = NodeInfo(
            id=0,
            name="oak",
            boot_id="",
            host="",
            pid=1,
            slots=8,
            state="active",
            beat=0,
            started_us=1,
            seen_us=1,
            version="",
            types=(),
        )
        node = store.join(info, now_us=now_us())
        lanes = {("read", "fetch"): LaneRequest(locks=(("receiver:{serno}", "attempt"),))}
        want = ClaimRequest(node_id=node, slots=[SlotRequest(n, 1, 1e5, True) for n in range(3)], lanes=lanes)
        (lease,) = store.flush_and_claim([], want, now_us=now_us()).leases
        store.started([lease.fence], now_us=now_us())
    return shell


def states(shell: Shell) -> dict[int, str]:
    return {j["id"]: j["state"] for j in shell.listed("list")}


def test_locks_are_listed_with_owner_node_and_who_waits(locked: Shell) -> None:
    heading, line = locked.ok("locks").splitlines()

    assert heading.split() == ["LOCK", "JOB", "AMOUNT", "USED", "CAPACITY", "NODE", "SINCE", "WAITING"]
    assert line.split()[:6] == [LOCK, "1", "1", "1", "1", "oak"]
    assert line.split()[-1] == "2"


def test_programs_get_a_line_for_each(locked: Shell) -> None:
    (lock,) = locked.listed("locks")

    assert {
        k: lock[k] for k in ("name", "owner_id", "until", "node", "waiting", "amount", "used", "capacity")
    } == {
        "name": LOCK,
        "owner_id": 1,
        "until": "attempt",
        "node": "oak",
        "waiting": 2,
        "amount": 1,
        "used": 1,
        "capacity": 1,
    }
    assert isinstance(lock["since_us"], int)


def test_where_nothing_is_locked_that_is_told(shell: Shell) -> None:
    assert shell.ok("locks") == "no job has a lock or waits for one\n"
    assert shell.ok("locks", "--json") == ""


def test_a_lock_is_taken_away_and_the_next_goes_on(locked: Shell) -> None:
    output = locked.ok("unlock", LOCK, *REASON, "--yes", "--by", "ann")

    assert output == f"the lock {LOCK} is taken from job 1; it is with job 2 now\n"
    assert states(locked) == {1: "running", 2: "pending", 3: "waiting"}
    assert "2 (about to start)" in locked.ok("locks")


def test_programs_are_told_who_lost_it_and_who_has_it_now(locked: Shell) -> None:
    before = locked.listed("locks")

    document = json.loads(locked.ok("unlock", LOCK, *REASON, "--yes", "--json"))

    assert (document["lock"], document["taken_from"]) == (
        LOCK,
        [i["owner_id"] for i in before if i["name"] == LOCK],
    )
    assert document["now_with"] == [i["owner_id"] for i in locked.listed("locks") if i["name"] == LOCK]


def test_it_is_in_the_audit(locked: Shell) -> None:
    locked.ok("unlock", LOCK, *REASON, "--yes", "--by", "ann")

    *_, entry = locked.listed("audit")
    assert (entry["by"], entry["verb"], entry["count"], entry["reason"]) == ("ann", "unlock", 1, REASON[1])
    assert entry["what"] == {"lock": LOCK, "jobs": [1]}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([LOCK], 2, "--reason"),
        ([LOCK, "--reason", ""], 2, "cannot be a reason"),
        ([LOCK, "--reason", "a\nb"], 2, "cannot be a reason"),
        ([LOCK, *REASON], 2, "add --yes"),
        (["receiver:SG-2", *REASON, "--yes"], 1, f"did you mean '{LOCK}'"),
        (["../etc", *REASON, "--yes"], 2, "cannot name a lock"),
        ([LOCK, *REASON, "--yes", "--job", "2"], 1, "job 1 has it"),
    ],
)
def test_what_is_refused_changes_nothing(locked: Shell, words: list[str], code: int, message: str) -> None:
    before = locked.ok("audit")

    assert message in locked.refused(code, "unlock", *words)

    assert states(locked) == {1: "running", 2: "waiting", 3: "waiting"}
    assert locked.ok("audit") == before


def test_who_cannot_be_asked_is_told_who_has_it(locked: Shell) -> None:
    output = locked.refused(2, "unlock", LOCK, *REASON)

    assert "job 1 (read, stage fetch, running on oak); 2 jobs wait for it" in output


@pytest.mark.parametrize(("answer", "code", "taken"), [("y", 0, True), ("n", 1, False)])
def test_somebody_at_a_terminal_is_asked(locked: Shell, answer: str, code: int, taken: bool) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", "unlock", LOCK, *REASON],
        cwd=locked.folder,
        env=locked.environment(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    out, err = process.communicate(timeout=60)
    os.close(ours)

    assert process.returncode == code, err
    assert "job 1 (read, stage fetch, running on oak); 2 jobs wait for it" in err
    assert ("taken from job 1" in out) is taken
    assert states(locked)[2] == ("pending" if taken else "waiting")


def test_names_are_printed_without_moving_the_terminal(locked: Shell) -> None:
    assert "\x1b" not in locked.refused(2, "unlock", "a\x1b[31m", *REASON, "--yes")


def test_a_lock_that_nobody_waits_for_is_told_so(locked: Shell) -> None:
    locked.ok("cancel", "2", "3")

    assert "no job waits for it" in locked.ok("unlock", LOCK, *REASON, "--yes")
    assert locked.ok("locks") == "no job has a lock or waits for one\n"


# --- capacities ---------------------------------------------------------------------------------


def test_a_capacity_is_set_and_who_waits_goes_on(locked: Shell) -> None:
    output = locked.ok("lock", LOCK, "--capacity", "2", "--by", "ann")

    assert output.splitlines()[0].split() == ["lock", LOCK]
    assert "capacity     2 (set by ann, " in output
    assert "used         2" in output
    assert "job          2 (about to start) has 1" in output
    assert states(locked) == {1: "running", 2: "pending", 3: "waiting"}


def test_a_family_is_set_and_taken_back(locked: Shell) -> None:
    locked.ok("lock", "receiver:*", "--capacity", "1000")
    assert "capacity     1,000" in locked.ok("lock", LOCK)
    assert locked.ok("locks", "--capacities").splitlines()[1].split()[:2] == ["receiver:*", "1,000"]

    locked.ok("lock", "receiver:*", "--default")

    assert "capacity     1\n" in locked.ok("lock", LOCK)
    assert "every lock has a capacity of 1" in locked.ok("locks", "--capacities")


def test_what_an_application_declares_is_shown_beside_what_is_set(locked: Shell) -> None:
    with open_local_store(f"sqlite:///{locked.folder}/spinney.db") as store:
        store.register([], [], [LockCapacity(name="receiver:*", capacity=4)])
    assert "capacity     4 (declared)" in locked.ok("lock", "receiver:*")

    locked.ok("lock", "receiver:*", "--capacity", "2", "--by", "ann", "--reason", "they are slow")

    (capacity,) = locked.listed("locks", "--capacities")
    assert {k: capacity[k] for k in ("name", "capacity", "declared", "by")} == {
        "name": "receiver:*",
        "capacity": 2,
        "declared": 4,
        "by": "ann",
    }
    assert "; declared: 4)" in locked.ok("lock", "receiver:*")
    *_, entry = locked.listed("audit")
    assert (entry["by"], entry["verb"], entry["reason"]) == ("ann", "lock", "they are slow")
    assert entry["what"] == {"lock": "receiver:*", "capacity": 2}


def test_programs_are_told_how_a_lock_stands(locked: Shell) -> None:
    document = json.loads(locked.ok("lock", LOCK, "--json"))

    assert {k: document[k] for k in ("lock", "capacity", "set", "used", "waiting")} == {
        "lock": LOCK,
        "capacity": 1,
        "set": None,
        "used": 1,
        "waiting": 2,
    }
    assert [i["owner_id"] for i in document["owners"]] == [1]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([LOCK, "--capacity", "0"], 2, "--capacity"),
        ([LOCK, "--capacity", str(2**63)], 2, "--capacity"),
        ([LOCK, "--capacity", "2", "--default"], 2, "give only one of them"),
        ([LOCK, "--reason", "because"], 2, "add the change"),
        ([LOCK, "--default"], 1, "no capacity has been set"),
        (["*", "--capacity", "2"], 2, "names no lock and no family"),
        (["../etc*", "--capacity", "2"], 2, "names no lock and no family"),
        ([LOCK, "--capacity", "2", "--reason", "a\nb"], 2, "reason"),
    ],
)
def test_what_is_no_capacity_changes_nothing(
    locked: Shell, words: list[str], code: int, message: str
) -> None:
    before = locked.ok("audit")

    assert message in locked.refused(code, "lock", *words)

    assert locked.ok("audit") == before
    assert "every lock has a capacity of 1" in locked.ok("locks", "--capacities")
