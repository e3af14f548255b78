"""What is done through a server is done, and told as it is at hand."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cli.shell import furnish
from spinney.folders import folders

from .conftest import Both


@contextmanager
def idle(folder: Path) -> Iterator[Both]:
    """A server on a store on which nothing runs, so that all that changes is what is asked for."""
    both = Both(furnish(folder))
    with both.listening():
        yield both


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with idle(tmp_path_factory.mktemp("still")) as idle_site:
        for queue in ("other", "slow"):
            idle_site.shell.ok("queue", queue, "--create")
        yield idle_site


def alike(text: str) -> str:
    """Without numbers, which differ from job to job, and whole times."""
    return re.sub(r"\d+", "#", text)


# Each is said twice, at hand and through the server, of a job of its own ({job}).
VERBS = (
    "hold {job} --reason why",
    "hold {job} --reason why --until 2h",
    "cancel {job}",
    "cancel {job} --json",
    "priority {job} --to 7",
    "move {job} --to other",
    "delete {job}",
    "hold {job} --reason why --json",
)


@pytest.mark.parametrize("words", VERBS)
def test_a_verb_on_one_job_is_told_as_at_hand(still: Both, words: str) -> None:
    # given
    still.shell.ok("submit", "double", "-p", "n=1", "--queue", "other")
    first, second = (still.shell.ok("submit", "double", "-p", "n=1").strip() for _ in range(2))
    if words.startswith("delete"):
        still.shell.ok("cancel", first, second)

    # when
    here, afar = (
        side(*words.format(job=job).split()) for side, job in ((still.here, first), (still.afar, second))
    )

    # then
    assert here.returncode == 0
    assert (afar.returncode, alike(afar.stdout), alike(afar.stderr)) == (
        0,
        alike(here.stdout),
        alike(here.stderr),
    )
    shown = [still.shell.call("show", job, "--json").stdout for job in (first, second)]
    states = [json.loads(text)["job"]["state"] if text else None for text in shown]
    assert states[0] == states[1]


def test_a_job_is_submitted_in_every_way(still: Both) -> None:
    # given
    lines = still.shell.folder / "lines"
    line = '{"type": "tell", "params": {"text": "x"}}'
    lines.write_text(f'{{"type": "double", "params": {{"n": 1}}, "priority": 3}}\n{line}\n')
    rows = still.shell.folder / "rows"
    rows.write_text('{"n": 5}\n\n{"n": 6}\n')
    params = still.shell.folder / "params"
    params.write_text('{"n": 1}')
    options = (
        "--priority",
        "9",
        "--collection",
        "beta",
        "--share",
        "lab",
        "--submitter",
        "bo",
        "--queue",
        "slow",
    )

    # when
    one = still.done(
        "submit",
        "double",
        "-p",
        "n=7",
        "--params-file",
        str(params),
        *options,
        "--key",
        "k",
        "--at",
        "2040-01-01T00:00+01:00",
    )
    needing = still.done("submit", "tell", "-p", "text=1", "--needs", one.strip())
    many = still.done("submit", "--jobs", str(lines), *options).split()
    typed = still.done("submit", "double", "--jobs", str(rows), *options).split()

    # then
    job = json.loads(still.shell.ok("show", one.strip(), "--json"))["job"]
    facts = {
        name: job[name] for name in ("params", "priority", "collection", "share", "submitter", "queue", "key")
    }
    assert facts == {
        "params": {"n": 7},
        "priority": 9,
        "collection": "beta",
        "share": "lab",
        "submitter": "bo",
        "queue": "slow",
        "key": "k",
    }
    assert (job["state"], job["wake_us"]) == ("scheduled", 2_208_985_200_000_000)
    assert json.loads(still.shell.ok("show", needing.strip(), "--json"))["job"]["state"] == "waiting"
    jobs = [json.loads(still.shell.ok("show", n, "--json"))["job"] for n in (*many, *typed)]
    assert [j["priority"] for j in jobs] == [3, 9, 9, 9]
    assert [j["params"] for j in jobs] == [{"n": 1}, {"text": "x"}, {"n": 5}, {"n": 6}]
    assert {(j["collection"], j["share"], j["submitter"], j["queue"]) for j in jobs} == {
        ("beta", "lab", "bo", "slow")
    }


def test_a_wrong_line_is_told_by_its_number_and_nothing_is_submitted(still: Both) -> None:
    # given
    lines = still.shell.folder / "wrong"
    lines.write_text('{"type": "double", "params": {"n": 1}}\n{"type": "dobule"}\n{nonsense\n')
    before = still.shell.ok("list", "--count", "--json")

    # when
    here = still.here("submit", "--jobs", str(lines))
    plain, with_options = (
        still.afar("submit", "--jobs", str(lines), *more) for more in ((), ("--priority", "3"))
    )

    # then
    assert here.stderr == plain.stderr == with_options.stderr
    assert here.returncode == plain.returncode == with_options.returncode == 2
    assert still.shell.ok("list", "--count", "--json") == before


def test_a_verb_on_many_asks_first_and_tells_what_it_came_to(still: Both) -> None:
    # given
    rows = still.shell.folder / "many"
    rows.write_text('{"n": 5}\n' * 1_200)
    still.shell.ok("submit", "double", "--jobs", str(rows), "--collection", "many")
    which = ("--collection", "many")

    # when
    unsaid = still.refused(2, "cancel", *which)
    looked = still.done("cancel", *which, "--dry-run")
    done = still.done("cancel", *which, "--yes", "--reason", "too many")
    again = json.loads(still.done("rerun", *which, "--state", "cancelled", "--yes", "--json"))

    # then
    assert "--dry-run" in unsaid
    assert looked == "1,200 jobs would be cancelled\n"
    assert done == "1,200 cancelled\n"
    assert (again["verb"], again["touched"], again["refused"]) == ("rerun", 1_200, {})
    assert still.shell.listed("list", *which, "--limit", "1")[0]["state"] == "pending"
    assert still.shell.listed("audit", "list", "--verb", "cancel")[-1]["reason"] == "too many"
    assert len(still.done("list", *which, "--limit", "1100").splitlines()) == 1_101


def test_several_named_jobs_are_told_one_by_one(still: Both) -> None:
    # given
    pairs = [[still.shell.ok("submit", "double", "-p", "n=1").strip() for _ in range(2)] for _ in range(2)]
    still.shell.ok("cancel", pairs[0][0], pairs[1][0])

    # when: of each pair one cannot be cancelled again
    here, afar = still.here("cancel", *pairs[0], "99999"), still.afar("cancel", *pairs[1], "99999")

    # then
    assert (afar.returncode, alike(afar.stdout), alike(afar.stderr)) == (
        here.returncode,
        alike(here.stdout),
        alike(here.stderr),
    )
    assert still.shell.listed("list", "--limit", "1")[0]["state"] == "cancelled"


# Each in turn on the same store, here and there: what the one does the other takes back.
SETTING = (
    ("hold --queue late --reason why", "release --queue late"),
    ("hold --all --reason why", "release --all"),
    ("queue default --limit 3 --json", "queue default --limit declared"),
    ("queue fresh --create --limit 2 --order fifo", "queue fresh --delete"),
    ("lock radio --capacity 4", "lock radio --default"),
    ("keep tell failed 3d", "keep tell failed declared"),
    ("schedule add hourly double --every 1h -p n=1 --paused", "schedule drop hourly"),
    ("inbox add drop /srv/drop double -p n=1 --rest 1m --paused", "inbox remove drop"),
    ("webhook pause archive", "webhook resume archive"),
    ("user set bo --role operator", "user set bo --role viewer"),
    ("user disable bo", "user enable bo"),
)


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """One of its own, with one job: the server goes on lifting a hold of many behind the command, and what is told of
    queues would not stand still."""
    with idle(tmp_path_factory.mktemp("set-up")) as idle_site:
        for words in (
            "webhook add archive https://example.org/hook",
            "user add bo --role viewer --no-password",
            "queue late --create",
            "submit double -p n=1 --queue late",
        ):
            idle_site.shell.ok(*words.split())
        yield idle_site


@pytest.mark.parametrize(("do", "undo"), SETTING)
def test_what_is_set_is_set_and_taken_back(set_up: Both, do: str, undo: str) -> None:
    # when
    here, back = set_up.here(*do.split()), set_up.here(*undo.split())
    afar, undone = set_up.afar(*do.split()), set_up.afar(*undo.split())

    # then
    assert here.returncode == back.returncode == 0, (here.stderr, back.stderr)
    for is_local, through in ((here, afar), (back, undone)):
        outcome = (through.returncode, _timeless(through.stdout), _timeless(through.stderr))
        assert outcome == (0, _timeless(is_local.stdout), _timeless(is_local.stderr))


def _timeless(text: str) -> str:
    text = re.sub(r"hold \d+", "hold #", text.replace("socket:", ""))
    return re.sub(r'_us": ?\d+', '_us": 0', re.sub(r"\d\d:\d\d:\d\d", "…", text))


def test_pins_and_bars_go_as_they_came(still: Both) -> None:
    # when
    still.done("queue", "default", "--bar", "n7", "--bar", "n8")
    pinned = json.loads(still.done("queue", "default", "--pin", "n9", "--json"))
    cleared = json.loads(still.done("queue", "default", "--nodes", "any", "--bar", "n8", "--json"))

    # then
    assert (pinned["in_force"]["barred"], pinned["in_force"]["pinned"]) == (["n7", "n8"], ["n9"])
    assert (cleared["in_force"]["barred"], cleared["in_force"]["pinned"]) == (["n8"], [])


def test_secrets_are_told_once(still: Both) -> None:
    # when
    token = still.done("token", "make", "robot", "--role", "viewer").strip()
    webhook = still.done("webhook", "add", "other", "https://example.org/other").strip()
    still.done("user", "add", "cy", "--role", "viewer", "--no-password")
    link = still.done("user", "link", "cy").strip()
    still.done("token", "revoke", "robot")

    # then
    assert token.startswith("spn_")
    assert webhook.startswith("whs_")
    assert link.startswith("/welcome?link=")
    assert still.shell.listed("token", "list")[-1]["revoked_us"] is not None


def test_a_lock_is_asked_about_and_a_schedule_run(still: Both) -> None:
    # given
    still.done("schedule", "add", "weekly", "double", "--cron", "@weekly", "-p", "n=1", "--queue", "late")

    # when
    job = still.done("schedule", "run", "weekly").strip()
    paused = still.done("schedule", "pause", "weekly", "--reason", "rest")

    # then
    assert json.loads(still.shell.ok("show", job, "--json"))["job"]["queue"] == "late"
    assert paused == still.here("schedule", "pause", "weekly").stdout


def damaged(both: Both) -> None:
    """A job that stands nowhere, and a folder without a job."""
    both.shell.ok("submit", "double", "-p", "n=1")
    with closing(sqlite3.connect(both.shell.folder / "spinney.db", isolation_level=None)) as database:
        assert database.execute("delete from ready").rowcount
    folders.make(both.shell.folder / "spinney.folders", 9_999)


def test_the_doctor_examines_and_repairs_through_a_server(tmp_path: Path) -> None:
    with idle(tmp_path) as both:
        assert both.done("doctor") == "healthy: nothing is wrong\n"
        damaged(both)

        here, afar = both.here("doctor"), both.afar("doctor")
        assert (afar.returncode, afar.stdout) == (1, here.stdout)
        assert "pending-nowhere:" in afar.stdout
        assert "folder-orphan:" in afar.stdout
        assert both.afar("doctor", "--json").stdout == both.here("doctor", "--json").stdout
        assert both.done("doctor", "--rules") == both.here("doctor", "--rules").stdout

        repaired = both.done("doctor", "--repair", "--yes").splitlines()
        assert [line.rpartition(": ")[2] for line in repaired[:-1]] == ["pending-nowhere", "folder-orphan"]
        assert repaired[-1] == "healthy: nothing is wrong"
        assert both.here("doctor").stdout == "healthy: nothing is wrong\n"


def test_rehome_through_a_server_says_what_it_says_on_the_store(tmp_path: Path) -> None:
    with idle(tmp_path) as both:
        both.shell.ok("submit", "double", "-p", "n=1")
        for words in (("rehome", "1", "--yes"), ("rehome", "--host", "thor", "--yes")):
            here, afar = both.here(*words), both.afar(*words)
            assert here.returncode == 1
            assert (afar.returncode, afar.stderr) == (here.returncode, here.stderr)


NOT_DONE = (
    "keep --sweep",
    "user password bo --no-password",
    "webhook deliver",
    "retry 1 --by somebody",
    "list --store sqlite:///other.db",
    "init",
    "doctor --repair --dead oak --yes",
    "store version",
    "node jobs:app",
)


@pytest.mark.parametrize("words", NOT_DONE)
def test_what_no_server_does_is_refused_in_a_sentence(set_up: Both, words: str) -> None:
    assert ";" in set_up.refused(2, *words.split())
