"""``spinney locks`` and ``spinney unlock``."""

import json
import os
import pty
import subprocess
import sys

import pytest

from spinney.cli.session import now_us, opened
from spinney.model.jobs import LaneWant, NodeInfo, SlotWant, Want
from spinney.model.types import LockSpec, StageSpec, TypeSpec

from .shell import Shell

LOCK = "receiver:SG-1"
REASON = ("--reason", "it was rebooted")


@pytest.fixture
def locked(shell: Shell) -> Shell:
    """Job 1 has the lock and is said to run; jobs 2 and 3 wait for it."""
    spec = TypeSpec(name="read", stages=(StageSpec(name="fetch", locks=(LockSpec(template="receiver:{serno}"),)),))
    with opened(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.register([spec], [])
        for _ in range(3):
            shell.ok("submit", "read", "-p", "serno=SG-1")
        info = NodeInfo(
            id=0, name="oak", boot_id="", host="", pid=1, slots=8, state="active", beat=0, started_us=1, seen_us=1,
            version="", types=(),
        )  # fmt: skip
        node = store.join(info, now_us=now_us())
        lanes = {("read", "fetch"): LaneWant(locks=(("receiver:{serno}", "attempt"),))}
        want = Want(node_id=node, slots=[SlotWant(n, 1, 1e5, True) for n in range(3)], lanes=lanes)
        (lease,) = store.exchange([], want, now_us=now_us()).leases
        store.started([lease.fence], now_us=now_us())
    return shell


def states(shell: Shell) -> dict[int, str]:
    return {j["id"]: j["state"] for j in shell.listed("list")}


def test_locks_are_listed_with_owner_node_and_who_waits(locked: Shell) -> None:
    heading, line = locked.ok("locks").splitlines()

    assert heading.split() == ["LOCK", "JOB", "NODE", "SINCE", "WAITING"]
    assert line.split()[:3] == [LOCK, "1", "oak"]
    assert line.split()[-1] == "2"


def test_programs_get_a_line_for_each(locked: Shell) -> None:
    (found,) = locked.listed("locks")

    assert {k: found[k] for k in ("name", "owner_id", "until", "node", "waiting")} == {
        "name": LOCK, "owner_id": 1, "until": "attempt", "node": "oak", "waiting": 2,
    }  # fmt: skip
    assert isinstance(found["since_us"], int)


def test_where_nothing_is_locked_that_is_told(shell: Shell) -> None:
    assert shell.ok("locks") == "no job has a lock or waits for one\n"
    assert shell.ok("locks", "--json") == ""


def test_a_lock_is_taken_away_and_the_next_goes_on(locked: Shell) -> None:
    said = locked.ok("unlock", LOCK, *REASON, "--yes", "--by", "ann")

    assert said == f"the lock {LOCK} is taken from job 1; it is with job 2 now\n"
    assert states(locked) == {1: "running", 2: "pending", 3: "waiting"}
    assert "2 (about to start)" in locked.ok("locks")


def test_programs_are_told_who_lost_it_and_who_has_it_now(locked: Shell) -> None:
    before = locked.listed("locks")

    told = json.loads(locked.ok("unlock", LOCK, *REASON, "--yes", "--json"))

    assert (told["lock"], told["taken_from"]) == (LOCK, [i["owner_id"] for i in before if i["name"] == LOCK])
    assert told["now_with"] == [i["owner_id"] for i in locked.listed("locks") if i["name"] == LOCK]


def test_it_is_in_the_audit(locked: Shell) -> None:
    locked.ok("unlock", LOCK, *REASON, "--yes", "--by", "ann")

    *_, entry = locked.listed("audit")
    assert (entry["by"], entry["verb"], entry["count"], entry["reason"]) == ("ann", "unlock", 1, REASON[1])
    assert entry["what"] == {"lock": LOCK, "jobs": [1]}


@pytest.mark.parametrize(
    ("words", "code", "said"),
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
def test_what_is_refused_changes_nothing(locked: Shell, words: list[str], code: int, said: str) -> None:
    before = locked.ok("audit")

    assert said in locked.refused(code, "unlock", *words)

    assert states(locked) == {1: "running", 2: "waiting", 3: "waiting"}
    assert locked.ok("audit") == before


def test_who_cannot_be_asked_is_told_who_has_it(locked: Shell) -> None:
    said = locked.refused(2, "unlock", LOCK, *REASON)

    assert "job 1 (read, stage fetch, running on oak); 2 jobs wait for it" in said


@pytest.mark.parametrize(("answer", "code", "taken"), [("y", 0, True), ("n", 1, False)])
def test_somebody_at_a_terminal_is_asked(locked: Shell, answer: str, code: int, taken: bool) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", "unlock", LOCK, *REASON], cwd=locked.folder, env=locked.environment(),
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
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

    assert "nobody waits for it" in locked.ok("unlock", LOCK, *REASON, "--yes")
    assert locked.ok("locks") == "no job has a lock or waits for one\n"


