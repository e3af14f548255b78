"""Verbs for many jobs, as an operator types them: by filter, asked about, cut off, beside a node at work."""

import json
import random
import re
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.everything import STANDS, Everything, copied, filled
from contract.words import ONE, Clock, Site
from long_tests import LONG, long_alone
from spinney.features.bulk import cli as bulk
from spinney.features.bulk.service import Bulk
from spinney.folders import folders
from spinney.model.errors import StoreUnavailable
from spinney.store.sql import open_store
from spinney.terminal.connection import open_local_store
from waiting import until

from .shell import Shell


@pytest.fixture
def made(bare: Shell) -> Everything:
    """A store with something of everything, in the folder of ``bare``."""
    folders.write_token(bare.folder / "spinney.folders", "token")
    return copied(bare.folder / "spinney.db")


def url(shell: Shell) -> str:
    return f"sqlite:///{shell.folder}/spinney.db"


def states(shell: Shell, *jobs: int) -> list[str]:
    with open_local_store(url(shell)) as store:
        return [str(store.job(job).state) for job in jobs]


def count(shell: Shell, *words: str) -> dict[str, int]:
    document: dict[str, int] = json.loads(shell.ok("list", "--count", "--json", *words))
    return document


# --- each verb on a store with everything ---------------------------------------------------

SAID: dict[str, tuple[list[str], str, dict[str, str]]] = {
    "retry": (
        ["retry", "--type", "three", "--state", "failed"],
        "2 retried; 2 wait for them again",
        {
            "failed late": "pending",
            "deep leaf": "pending",
            "deep branch": "waiting",
            "deep root": "waiting",
            "failed": "failed",
        },
    ),
    "retry by message": (
        ["retry", "--message", "DISK full"],
        "2 retried; 1 waits for them again",
        {
            "failed": "pending",
            "failed keyed": "pending",
            "failed for a need": "waiting",
            "failed late": "failed",
        },
    ),
    "retry into a queue": (
        ["retry", "--collection", "beta", "--stage", "third", "--queue", "urgent"],
        "1 retried into queue urgent",
        {"failed late": "pending"},
    ),
    "rerun": (
        ["rerun", "--batch", "{done batch}"],
        "1 run again; 1 left as it is",
        {
            "done batch": "pending",
            "done child": "completed",
        },
    ),
    "rerun from": (
        ["rerun", "--type", "three", "--state", "completed", "--from", "second"],
        "1 run again",
        {
            "completed three": "pending",
        },
    ),
    "run now": (["run-now", "--type", "one"], "1 run now", {"scheduled": "pending"}),
    "cancel": (["cancel", "--type", "patient"], "1 cancelled", {"resting": "cancelled"}),
    "cancel a tree": (
        ["cancel", "--batch", "{waiting batch}", "--reason", "wrong list"],
        "2 cancelled",
        {
            "waiting batch": "cancelled",
            "waiting batch held": "cancelled",
            "waiting batch failed": "failed",
        },
    ),
    "delete": (
        ["delete", "--collection", "alpha"],
        "3 deleted",
        {
            "completed": "deleted",
            "failed": "deleted",
            "completed three": "deleted",
            "waiting batch ok": "completed",
            "waiting batch failed": "failed",
        },
    ),
    "move": (
        ["move", "--to", "urgent", "--state", "pending", "--queue", "narrow"],
        "1 moved into queue urgent",
        {},
    ),
    "priority": (
        ["priority", "--to", "0", "--state", "pending", "--submitter", "ann"],
        "1 given priority 0",
        {},
    ),
    "hold": (
        ["hold", "--state", "pending", "--type", "three", "--reason", "look first"],
        "2 held",
        {
            "pending second": "held",
            "pending urgent": "held",
            "pending": "pending",
        },
    ),
    "release": (
        ["release", "--state", "held", "--type", "three"],
        "1 released",
        {
            "held": "pending",
            "rerun parent": "held",
        },
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_a_verb_is_done_to_what_fits_and_told_in_a_line(bare: Shell, made: Everything, case: str) -> None:
    words, sentence, after = SAID[case]

    out = bare.ok(*(word.format(**made.jobs) for word in words))

    assert out == sentence + "\n"
    assert dict(zip(after, states(bare, *(made[n] for n in after)), strict=True)) == after
    untouched = {
        n: s for n, s in STANDS.items() if n in ("running", "orphaned", "superseded failed", "deleted")
    }
    assert dict(zip(untouched, states(bare, *(made[n] for n in untouched)), strict=True)) == untouched


@pytest.mark.parametrize("case", SAID)
def test_a_dry_run_says_how_many_and_does_nothing(bare: Shell, made: Everything, case: str) -> None:
    words = [word.format(**made.jobs) for word in SAID[case][0]]
    before = bare.ok("list", "--json", "--limit", "1000")

    out = bare.ok(*words, "--dry-run")
    document = json.loads(bare.ok(*words, "--dry-run", "--json"))

    assert bare.ok("list", "--json", "--limit", "1000") == before
    assert " would be " in out
    assert out.startswith(f"{document['jobs']} job")
    assert document["more"] is False


def test_a_preview_names_the_stages_that_run_again(bare: Shell, made: Everything) -> None:
    out = bare.ok("retry", "--batch", str(made["bad batch"]), "--dry-run")

    assert out.splitlines() == [
        "2 jobs would be retried",
        "  one would run stage 'work' of 2 jobs",
        "  batch would run stage 'report' of 1 job",
    ]


def test_a_preview_says_why_jobs_would_be_refused(bare: Shell, made: Everything) -> None:
    words = ["retry", str(made["failed for a need"]), str(made["completed"]), str(made["done batch"])]

    preview = bare.call(*words, "--dry-run")
    document = json.loads(bare.ok(*words, "--dry-run", "--json"))
    done = bare.call(*words, "--json")

    assert (preview.returncode, preview.stdout) == (0, "0 of 3 jobs would be retried\n")
    assert done.returncode == 1
    assert document["refused"] == json.loads(done.stdout)["refused"]
    assert preview.stderr == done.stderr.replace("refused:", "would be refused:")
    assert preview.stderr.count("\n") == 2, "a line for each reason"


def test_a_preview_says_that_no_job_fits(bare: Shell, made: Everything) -> None:
    out = bare.ok("retry", "--batch", str(made["done batch"]), "--dry-run")

    assert out == "0 jobs would be retried; no job fits\n"


def test_a_preview_of_one_named_job_counts_all_that_is_done_because_of_it(
    bare: Shell, made: Everything
) -> None:
    out = bare.ok("delete", str(made["bad batch"]), "--dry-run")

    assert out == "5 jobs would be deleted\n"


def test_of_named_jobs_each_is_told_with_what_it_brings_about(bare: Shell, made: Everything) -> None:
    leaf, branch, root = made["deep leaf"], made["deep branch"], made["deep root"]

    assert bare.ok("retry", str(leaf)) == f"job {leaf} goes on; {branch}, {root} wait for it again\n"
    assert bare.ok("move", str(leaf), "--to", "urgent") == f"job {leaf} is moved into queue urgent\n"
    assert bare.ok("priority", str(leaf), "--to", "3") == f"job {leaf} is given priority 3\n"


def test_of_a_named_job_several_steps_are_told_as_one(
    bare: Shell, made: Everything, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.features.bulk.verb_step.ENOUGH_S", -1.0)  # each step ends after one job
    batch, first, second = made["bad batch"], made["bad batch failed"], made["bad batch failed too"]

    out = bare.ok("retry", str(batch))

    assert out == f"job {first} goes on; the same goes for {second}; {batch} waits for it again\n"


def test_of_named_jobs_those_that_cannot_are_told_and_the_others_done(bare: Shell, made: Everything) -> None:
    jobs = [made["failed"], made["completed"], 4711, made["failed late"]]

    result = bare.call("retry", *map(str, jobs))

    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"job {jobs[0]} goes on; {made['failed for a need']} waits for it again",
        f"job {jobs[3]} goes on",
    ]
    assert sorted(result.stderr.splitlines()) == [
        f"spinney: job {jobs[1]} has completed, so there is nothing to retry; "
        f"'spinney rerun {jobs[1]}' runs it again",
        "spinney: there is no job 4711; check its number in the list of jobs",
    ]


def test_a_retry_of_a_scheduled_job_names_what_lets_it_run_now(bare: Shell, made: Everything) -> None:
    job = made["scheduled"]

    result = bare.call("retry", str(job))
    for command in re.findall("'spinney (.*?)'", result.stderr):
        bare.ok(*command.split())

    assert result.returncode == 1
    assert json.loads(bare.ok("show", str(job), "--json"))["job"]["state"] == "pending"


def test_refusals_are_told_in_groups_of_the_same_reason(bare: Shell, made: Everything) -> None:
    many = [str(n) for n in range(5000, 5030)]

    result = bare.call("retry", str(made["completed"]), str(made["failed"]), *many)

    assert result.returncode == 1
    assert result.stdout == "1 retried; 1 waits for them again; 31 refused\n"
    assert result.stderr.splitlines()[0].endswith("(and 29 like it)")
    assert result.stderr.startswith("spinney: refused: there is no job 5000")
    assert len(result.stderr.splitlines()) == 2


def test_a_summary_for_programs(bare: Shell, made: Everything) -> None:
    result = bare.call("retry", str(made["failed"]), str(made["completed"]), "--json")

    document = json.loads(result.stdout)
    assert result.returncode == 1
    assert (document["verb"], document["touched"], document["reopened"], list(document["refused"])) == (
        "retry",
        1,
        1,
        [str(made["completed"])],
    )


def test_numbers_with_a_filter_are_narrowed_down_by_it(bare: Shell, made: Everything) -> None:
    jobs = [str(made[n]) for n in ("failed", "completed", "running")]

    assert bare.ok("retry", *jobs, "--state", "failed") == "1 retried; 1 waits for them again\n"


def test_nothing_that_fits_is_no_error(bare: Shell, made: Everything) -> None:
    assert bare.ok("retry", "--type", "patient") == "no job fits; nothing was done\n"


def test_cancel_says_whether_something_has_to_end_first(bare: Shell, made: Everything) -> None:
    later = "is cancelled, or will be when what runs has ended, unless that completes it"

    held, running = (f"job {made[name]} " for name in ("held", "running"))
    assert bare.ok("cancel", str(made["held"])) == f"{held}is cancelled\n"
    assert bare.ok("cancel", str(made["running"])) == f"{running}{later}\n"
    (first,) = bare.ok("cancel", str(made["serial root"]), "--tree").splitlines()
    assert first.startswith(f"job {made['serial root']} {later}; the same goes for ")


def test_jobs_are_held_singly_where_a_filter_says_which(bare: Shell, made: Everything) -> None:
    bare.ok("hold", "--queue", "default", "--each", "--state", "pending", "--reason", "look")

    with open_local_store(url(bare)) as store:
        assert {hold.scope for hold in store.holds.all()} == {"job"}
    assert bare.ok("submit", "one", "--queue", "default"), "what comes later is not held"
    assert count(bare, "--state", "pending", "--queue", "default") == {"pending": 1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hold", "--tree", "1", "--state", "pending", "--reason", "x"], "leave them out"),
        (["release", "--each"], "name the jobs to release"),
        (["release", "--hold", "1", "--state", "held"], "leave them out"),
        (["retry"], "name the jobs to retry"),
        (["retry", "--queue", "urgent"], "--in-queue finds them"),
        (["cancel"], "name the jobs to cancel"),
        (["delete"], "name the jobs to delete"),
        (["move", "1"], "--to"),
        (["move", "--to", "urgnt", "--state", "pending"], "did you mean 'urgent'"),
        (["priority", "1"], "--to"),
        (["priority", "--to", "100", "1"], "a whole number from 0"),
        (["retry", "--state", "faild"], "did you mean 'failed'"),
        (["retry", "--state", "completed"], "'spinney rerun' runs such jobs again"),
        (["retry", "--type", "pateint"], "did you mean 'patient'"),
        (["retry", "--in-queue", "narow"], "did you mean 'narrow'"),
        (["retry", "--stage", "secnd"], "did you mean 'second'"),
        (["retry", "--node", "okk"], "did you mean 'oak'"),
        (["retry", "--collection", "alhpa"], "did you mean 'alpha'"),
        (["retry", "--from", "thrid", "--state", "failed"], "did you mean 'third'"),
        (["list", "--type", "pateint"], "did you mean 'patient'"),
        (["list", "--queue", "narow", "--count"], "did you mean 'narrow'"),
        (["cancel", "--older-than", "soon"], "--older-than 'soon' is no time"),
        (["cancel", "--since", "2030-13-01"], "is no time"),
        (["cancel", "--message", ""], "--message needs a text"),
        (["cancel", "--message", "x" * 2001], "--message needs a text"),
        (["retry", "--state", "failed", "--stop-at", "5%"], "belong to --canary"),
        (["retry", "--state", "failed", "--canary", "5", "--stop-at", "5"], "write it as 5% or 0.05"),
        (["retry", "--state", "failed", "--canary", "5", "--stop-at", "many"], "write it as 5% or 0.05"),
        (["retry", "--state", "failed", "--canary", "0"], "--canary"),
        (["retry", "--state", "failed", "--canary", "5", "--canary-wait", "long"], "is no length of time"),
        (["retry", "--state", "failed", "--canary", "5", "--and-after"], "a canary is for"),
        (["retry", "--failure", "zz!"], "fingerprint"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_done(
    bare: Shell, made: Everything, words: list[str], message: str
) -> None:
    before = bare.ok("list", "--json", "--limit", "1000")

    assert message in bare.refused(2, *words)
    assert bare.ok("list", "--json", "--limit", "1000") == before


def test_a_collection_that_has_no_job_yet_may_be_listed(bare: Shell, made: Everything) -> None:
    assert bare.ok("list", "--collection", "alhpa", "--json") == ""


def test_ages_are_spans_or_times(bare: Shell) -> None:
    """The groups of jobs are a minute apart, the last less than a minute old."""
    made = filled(url(bare))

    def listed_ids(*words: str) -> set[int]:
        return {
            json.loads(line)["id"]
            for line in bare.ok("list", "--json", "--limit", "1000", *words).splitlines()
        }

    all_ = listed_ids()
    assert listed_ids("--newer-than", "3d") == all_
    assert listed_ids("--older-than", "99999w") == set()
    young, old = listed_ids("--since", "150s"), listed_ids("--older-than", "150s")
    assert young | old == all_
    assert not young & old
    assert made["pending"] in young
    assert made["failed"] in old
    assert listed_ids("--since", "1999-12-31T23:59+00:00") == all_
    assert listed_ids("--older-than", "1999-12-31") == set()


def test_a_failure_is_named_by_the_beginning_of_its_fingerprint(bare: Shell, made: Everything) -> None:
    with open_local_store(url(bare)) as store:
        groups = {g.fingerprint: g for g in store.failures.groups().items}
    assert groups
    fingerprint, group = next((f, g) for f, g in groups.items() if g.jobs == 1)

    out = bare.ok("retry", "--failure", fingerprint[:10])

    assert out.startswith(f"{group.jobs} retried")


# --- the question ---------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are many already."""
    monkeypatch.setattr(bulk, "CONFIRM_ABOVE", 1)


def test_more_than_a_thousand_are_not_touched_unasked(bare: Shell) -> None:
    jobs = failed(bare, 1001)

    result = bare.call("retry", "--state", "failed")

    assert result.returncode == 2
    assert (
        result.stderr
        == "spinney: this would retry 1,001 jobs; look first with --dry-run, then confirm with --yes\n"
    )
    assert count(bare) == {"failed": 1001}
    assert bare.ok("retry", "--state", "failed", "--yes") == "1,001 retried\n"
    assert len(jobs) == 1001


@pytest.mark.parametrize(
    ("answer", "code", "message"), [("y\n", 0, "7 retried"), ("n\n", 1, "nothing was done")]
)
def test_on_a_terminal_it_asks_without_trying_the_verb(
    bare: Shell,
    made: Everything,
    few: None,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    message: str,
) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(Bulk, "_tried", None)

    result = bare.call("retry", "--state", "failed")

    assert result.returncode == code
    assert message in (result.stdout if code == 0 else result.stderr)
    assert "retry 11 jobs?" in result.stderr + result.stdout


def test_an_interrupted_verb_says_how_far_it_came_and_goes_on_when_asked_again(
    bare: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(bare, 160)
    steps = iter(range(100))
    step = bulk._Progress.step

    def interrupted(shown: Any, report: Any) -> None:
        step(shown, report)
        if next(steps) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(bulk._Progress, "step", interrupted)

    result = bare.call("retry", "--state", "failed")

    assert result.returncode == 130
    so_far = count(bare)["pending"]
    assert 0 < so_far < 160
    assert f"interrupted: {so_far} retried; the same command goes on with the rest" in result.stderr
    assert bare.ok("retry", "--state", "failed") == f"{160 - so_far} retried\n"


def test_an_interrupted_rerun_says_with_which_option_it_leaves_out_what_has_run_again(
    bare: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(bare, 160)
    run = ("rerun", "--type", "one", "--state", "failed", "--state", "completed")
    step = bulk._Progress.step

    def interrupted(shown: Any, report: Any) -> None:
        step(shown, report)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bulk._Progress, "step", interrupted)
        result = bare.call(*run).stderr
        so_far = count(bare)["pending"]
        assert 0 < so_far < 160
        assert f"interrupted: {so_far} run again; the same command with --settled-before " in result
        option = ["--settled-before", result.partition("--settled-before ")[2].split()[0]]
        run_to_the_end(bare)
        assert "; the same command goes on with the rest" in bare.call(*run, *option).stderr
        once_more = bare.call("rerun", "1", "--json").stderr
    assert "interrupted: 1 run again; the same command would run those once more" in once_more

    run_to_the_end(bare)
    bare.ok(*run, *option)
    run_to_the_end(bare)
    with open_local_store(url(bare)) as store:
        ran = [len(store.attempts(job)) for job in range(1, 161)]
    assert ran == [3] + [2] * 159, "the first one was named once more"


def test_a_rerun_that_an_error_ends_says_how_to_leave_out_what_has_run_again(
    bare: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(bare, 160)
    run = ("rerun", "--type", "one", "--state", "failed", "--state", "completed")
    step = bulk._Progress.step

    def cut_off(shown: Any, report: Any) -> None:
        step(shown, report)
        raise StoreUnavailable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(bulk._Progress, "step", cut_off)
        result = bare.call(*run)
    so_far = count(bare)["pending"]
    assert 0 < so_far < 160
    how, why = result.stderr.splitlines()
    assert how.startswith(f"spinney: cut off: {so_far} run again; the same command with --settled-before ")
    assert why == "spinney: the database is away"
    assert result.returncode == 1

    option = how.partition("--settled-before ")[2].split()[0]
    run_to_the_end(bare)
    assert bare.ok(*run, "--settled-before", option) == f"{160 - so_far} run again\n"


# --- killed -----------------------------------------------------------------------------------


def failed(shell: Shell, n: int, **fields: Any) -> list[int]:
    """A store with so many jobs that failed, once each."""
    clock = Clock()
    clock.now_us = time.time_ns() // 1000
    store = open_store(url(shell))
    store.create()
    site = Site(store, clock)
    site.knows(ONE)
    ids = site.submit(n=n, **fields)
    node = site.node("n", slots=n)
    while leases := site.claim(node):
        for start in range(0, len(leases), 500):
            site.fail(*leases[start : start + 500])
    store.close()
    return ids


def run_to_the_end(shell: Shell) -> None:
    """What a node would do with all that is pending."""
    store = open_store(url(shell))
    site = Site(store, Clock())
    site.clock.now_us = time.time_ns() // 1000
    node = site.node("n2", slots=5_000)
    while leases := site.claim(node):
        for start in range(0, len(leases), 500):
            site.pass_(*leases[start : start + 500])
    store.close()


ROUNDS, JOBS = (6, 3_000) if LONG else (3, 1_000)
KILLED: dict[str, tuple[list[str], str]] = {
    "retry": (["retry", "--state", "failed", "--yes"], "pending"),
    "rerun": (["rerun", "--state", "failed", "--yes"], "pending"),
    "delete": (["delete", "--state", "failed", "--yes"], "deleted"),
}


@pytest.mark.parametrize(
    "verb", ["retry", pytest.param("rerun", marks=long_alone), pytest.param("delete", marks=long_alone)]
)
def test_killed_anywhere_and_given_again_each_job_is_done_once(bare: Shell, verb: str) -> None:
    (words, after), n = KILLED[verb], JOBS
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    draw = random.Random(seed)
    ids = failed(bare, n)
    kills = 0

    for _ in range(ROUNDS):
        before = count(bare).get("failed", 0)
        process = bare.start(*words)
        # Not before it has begun, so that blows fall within its work and not within its imports.
        until(
            lambda process=process, before=before: (  # type: ignore[misc]
                process.poll() is not None or count(bare).get("failed", 0) < before
            )
        )
        time.sleep(draw.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        kills += process.returncode == -signal.SIGKILL
        left = count(bare)
        assert left.get("failed", 0) + left.get(after, 0) == n, "nothing is anything else, nothing is gone"
        if not left.get("failed", 0):
            break
    assert kills

    assert bare.call(*words).returncode == 0

    assert count(bare) == {after: n}
    bare.ok("audit", "verify")
    with open_local_store(url(bare)) as store:
        touched: Counter[int] = Counter()
        for entry, _ in store.audit.entries(limit=100_000):
            if entry.verb == verb:
                touched.update(json.loads(entry.what)["jobs"])
        assert touched == Counter(ids), "each once, and each in the audit"
    with sqlite3.connect(bare.folder / "spinney.db") as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    if after == "pending":
        run_to_the_end(bare)
        with open_local_store(url(bare)) as store:
            assert {tuple(a.outcome for a in store.attempts(j)) for j in ids} == {("error", "ok")}


def test_two_who_give_the_same_command_do_each_job_once(bare: Shell) -> None:
    ids = failed(bare, 800)

    both = [bare.start("retry", "--state", "failed", "--yes", "--json") for _ in range(2)]
    document = [json.loads(process.communicate(timeout=60)[0]) for process in both]

    assert [process.returncode for process in both] == [0, 0]
    assert sum(each["touched"] for each in document) == len(ids)
    assert [each["refused"] for each in document] == [{}, {}]
    bare.ok("audit", "verify")
    assert count(bare) == {"pending": len(ids)}


def test_on_a_terminal_a_line_says_how_far_it_is(bare: Shell) -> None:
    import os
    import pty
    import subprocess

    failed(bare, 400)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", "retry", "--state", "failed"],
        cwd=bare.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=bare.environment(TERM="xterm"),
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # nobody has the other end any more
            break
        if not piece:
            break
        shown += piece
    os.close(ours)

    assert process.wait(30) == 0
    text = shown.decode()
    assert " retried …" in text
    assert text.rstrip().endswith("400 retried")


# --- beside a node at work ----------------------------------------------------------------------


@pytest.fixture
def flagless(working: Shell, tmp_path: Path) -> Iterator[Path]:
    """A flag that is not up, and nothing else left to do."""
    yield tmp_path / "flag"
    working.ok("delete", "--state", "failed", "--state", "completed", "--yes")


def submitted(shell: Shell, flag: Path, n: int) -> list[str]:
    """So many jobs that fail unless the flag is up, settled."""
    lines = "".join(json.dumps({"flag": str(flag)}) + "\n" for _ in range(n))
    done = shell.submit_lines(lines, "fragile", "--wait")
    return [word for word in done.stdout.split() if word.isdigit()][:n]


def outcomes(shell: Shell, job: str) -> list[str]:
    return [a["outcome"] for a in json.loads(shell.ok("show", job, "--json"))["attempts"]]


def test_all_that_failed_is_retried_while_a_node_works(working: Shell, flagless: Path) -> None:
    jobs = submitted(working, flagless, 40)
    flagless.touch()

    assert working.ok("retry", "--type", "fragile", "--since", "1h") == "40 retried\n"

    assert working.call("wait", *jobs).returncode == 0
    assert {tuple(outcomes(working, job)) for job in jobs} == {("error", "ok")}
    assert working.ok("retry", "--type", "fragile") == "no job fits; nothing was done\n"


@long_alone
def test_verbs_by_filter_leave_a_node_and_its_jobs_in_order(working: Shell, flagless: Path) -> None:
    """Moved, prioritized, held and released while they run; each runs once and completes."""
    flagless.touch()
    lines = "".join(json.dumps({"flag": str(flagless)}) + "\n" for _ in range(150))
    jobs = working.submit_lines(lines, "fragile").stdout.split()

    for words in (
        ["priority", "--to", "20"],
        ["hold", "--reason", "x", "--state", "pending"],
        ["release", "--each"],
        ["priority", "--to", "60"],
    ):
        result = working.call(*words, "--type", "fragile")
        assert result.returncode == 0, result.stderr

    assert working.call("wait", *jobs).returncode == 0
    assert {tuple(outcomes(working, job)) for job in jobs} == {("ok",)}


@long_alone
def test_canaries_that_fail_stop_a_retry(working: Shell, flagless: Path) -> None:
    jobs = submitted(working, flagless, 40)

    result = working.call("retry", "--type", "fragile", "--canary", "5", "--stop-at", "20%")

    assert result.returncode == 1
    assert result.stdout == "5 retried\n"
    assert "stopped: " in result.stderr
    assert "goes on only below 20%" in result.stderr
    assert Counter(len(outcomes(working, job)) for job in jobs) == {2: 5, 1: 35}
    flagless.touch()
    assert working.call("retry", "--type", "fragile", "--canary", "5").stdout == "40 retried\n"
    assert working.call("wait", *jobs).returncode == 0
