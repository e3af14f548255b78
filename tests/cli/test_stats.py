"""``stats``: figures for people and for programs."""

import json

import pytest

from spinney.features.stats import tables as stats_tables

from .shell import Shell


def test_figures_of_what_stands(shell: Shell) -> None:
    for n in range(3):
        shell.ok("submit", "double", "-p", f"n={n}")
    shell.ok("queue", "net", "--create")
    shell.ok("submit", "double", "-p", "n=4", "--queue", "net", "--at", "2999-01-01")

    output = shell.ok("stats")
    document = json.loads(shell.ok("stats", "--json"))

    assert output.splitlines()[0] == "4 jobs: 1 scheduled, 3 pending"
    assert document["states"] == {"pending": 3, "scheduled": 1}
    queues = {q["queue"]: q for q in document["queues"]}
    assert (queues["default"]["pending"], queues["net"]["scheduled"]) == (3, 1)
    assert {"type": "double", "pending": 3, "wait_s": None}.items() <= next(
        s for s in document["stages"] if s["type"] == "double"
    ).items()


def test_figures_of_one_queue_or_type(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    shell.ok("queue", "net", "--create")
    shell.ok("submit", "tell", "-p", "text=x", "--queue", "net")

    of_queue = json.loads(shell.ok("stats", "--json", "--queue", "net"))
    of_type = json.loads(shell.ok("stats", "--json", "--type", "double"))

    assert (of_queue["states"], [q["queue"] for q in of_queue["queues"]]) == ({"pending": 1}, ["net"])
    assert (of_type["states"], [s["type"] for s in of_type["stages"]]) == ({"pending": 1}, ["double"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--type", "dubble"], "did you mean 'double'"),
        (["--queue", "defalt"], "did you mean 'default'"),
        (["--window", "1"], "--window"),
    ],
)
def test_what_is_not_there_is_refused(untouched: Shell, words: list[str], message: str) -> None:
    assert message in untouched.refused(2, "stats", *words)


def test_figures_of_work(working: Shell) -> None:
    working.ok("submit", "double", "-p", "n=1", "--wait")

    document = json.loads(working.ok("stats", "--json"))

    stage = next(s for s in document["stages"] if s["type"] == "double")
    assert stage["ended"] == stage["sampled"] >= 1
    assert stage["rate"] > 0
    assert stage["run_s"][0] >= 0
    assert [(n["node"], n["state"], n["slots"]) for n in document["nodes"]] == [("n1", "active", 2)]
    output = working.ok("stats")
    assert "n1" in output
    assert "in the last" in output


def test_watching_prints_a_line_each_time_and_ends_with_its_reader(shell: Shell) -> None:
    watching = shell.start("stats", "--watch", "--json")
    assert watching.stdout is not None

    first = json.loads(watching.stdout.readline())
    shell.ok("submit", "double", "-p", "n=1")
    second = json.loads(watching.stdout.readline())
    watching.stdout.close()

    assert (first["states"], second["states"]) == ({}, {"pending": 1})
    assert second["at_us"] > first["at_us"]
    assert watching.wait(20) == 0
    assert watching.stderr is not None
    assert watching.stderr.read() == ""


def test_a_table_ends_quietly_with_its_reader(shell: Shell) -> None:
    watching = shell.start("stats", "--watch")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "0 jobs\n"

    watching.stdout.close()

    assert watching.wait(20) == 0
    assert watching.stderr is not None
    assert watching.stderr.read() == ""


def test_ctrl_c_ends_watching(shell: Shell) -> None:
    watching = shell.start("stats", "--watch", "--json")
    assert watching.stdout is not None
    watching.stdout.readline()

    watching.send_signal(2)

    _, err = watching.communicate(timeout=20)
    assert (watching.returncode, err) == (130, "")


@pytest.mark.parametrize(
    ("per_second", "shown"),
    [(0, ""), (0.01, "0.6/min"), (0.5, "30/min"), (1, "1.0/s"), (9.94, "9.9/s"), (1234.5, "1,234/s")],
)
def test_a_rate_is_told_in_a_unit_that_fits(per_second: float, shown: str) -> None:
    assert stats_tables.rate(per_second) == shown


def test_percentiles_are_told_as_lengths_of_time() -> None:
    assert stats_tables.times((0.0412, 75, 7_260)) == "41.2 ms / 1 min 15 s / 2 h 01 min"
    assert stats_tables.times(None) == ""
    assert stats_tables.states({"pending": 1}) == "1 job: 1 pending"
