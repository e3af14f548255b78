"""``spinney queues`` and ``spinney queue``, and submitting by a queue's name."""

import json
import re
from typing import Any

import pytest

from spinney.model.jobs import NodeInfo
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.model.settings.queues import QueueSpec
from spinney.terminal.connection import now_us, open_local_store

from .shell import Shell


@pytest.fixture
def queued(shell: Shell) -> Shell:
    """It knows the queue ``net``, of type ``double``, limited to 3, which ``elm`` may not serve."""
    with open_local_store(_url(shell)) as store:
        store.register([], [QueueSpec(name="net", limit=3, type="double", barred=("elm",))])
    return shell


def node(shell: Shell, name: str, *types: str, serves: QueueSelection = ALL) -> None:
    info = NodeInfo(
        id=0,
        name=name,
        boot_id="",
        host="",
        pid=1,
        slots=8,
        state="active",
        beat=0,
        started_us=now_us(),
        seen_us=now_us(),
        version="",
        types=types or ("double",),
        serves=serves,
    )
    with open_local_store(_url(shell)) as store:
        store.join(info, now_us=now_us())


def _url(shell: Shell) -> str:
    return f"sqlite:///{shell.folder}/spinney.db"


def facts(text: str) -> dict[str, str]:
    return {line[:12].strip(): line[13:].strip() for line in text.splitlines()}


def test_queues_are_listed_with_what_stands_in_them_and_who_serves_them(queued: Shell) -> None:
    node(queued, "oak")
    queued.ok("submit", "--queue", "net", "-p", "n=1")
    queued.ok("queue", "net", "--limit", "none", "--by", "ann")

    heading, first, second = (re.split(r"  +", line.strip()) for line in queued.ok("queues").splitlines())

    assert heading == ["QUEUE", "LIMIT", "TYPE", "NODES", "PENDING", "RUNNING", "SET BY"]
    assert first == ["default", "none", "any", "0", "0"]
    assert second == ["net", "none", "double", "not elm", "1", "0", "ann"]


def test_programs_get_a_line_for_each(queued: Shell) -> None:
    node(queued, "oak")

    _, net = queued.listed("queues")

    assert (net["queue"], net["in_force"]["limit"], net["in_force"]["barred"]) == ("net", 3, ["elm"])
    assert (net["settings"], net["nodes"], net["types"], net["unknown"]) == ({}, ["oak"], ["double"], [])
    assert json.loads(queued.ok("queue", "net", "--json")) == net


def test_what_is_set_is_shown_with_what_is_declared(queued: Shell) -> None:
    output = facts(
        queued.ok("queue", "net", "--limit", "5", "--pin", "oak", "--by", "ann", "--reason", "disk")
    )

    assert output["limit"] == "5 (set; declared: 3)"
    assert output["nodes"] == "only oak (set; declared: not elm)"
    assert output["type"] == "double"
    assert output["set by"].startswith("ann, ")
    *_, entry = queued.listed("audit")
    assert (entry["verb"], entry["by"], entry["reason"]) == ("queue", "ann", "disk")
    assert entry["what"] == {"queue": "net", "limit": 5, "pinned": ["oak"]}


def test_a_part_of_the_slots_is_shown_with_what_it_comes_to(queued: Shell) -> None:
    node(queued, "oak")

    output = facts(queued.ok("queue", "net", "--limit", "30%"))

    assert output["limit"] == "30% (3) (set; declared: 3)"
    assert "net       30% (3)" in re.sub(r"^(net) +", r"\1       ", queued.ok("queues"), flags=re.MULTILINE)
    assert "30% (3)" in queued.ok("stats")
    assert "from '1%' to '100%'" in queued.refused(2, "queue", "net", "--limit", "200%")


def test_what_is_set_is_taken_back(queued: Shell) -> None:
    queued.ok("queue", "net", "--limit", "0", "--type", "none", "--nodes", "any", "--bar", "oak")

    back = facts(
        queued.ok("queue", "net", "--limit", "declared", "--type", "declared", "--nodes", "declared")
    )

    assert (back["limit"], back["type"], back["nodes"]) == ("3", "double", "not elm")
    assert "set by" not in back


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["--limit", "0"], "shut: its limit is 0"),
        (["--pin", "yew"], "no node that it is pinned to is active (yew)"),
        (["--bar", "oak", "--bar", "ash"], "no active node may serve it"),
        (["--type", "steps"], "no active node knows type steps"),
        (["--type", "tell", "--bar", "ash"], "no node that may serve it knows type tell"),
        (["--limit", "1"], None),
    ],
)
def test_a_queue_that_is_not_served_is_shown_as_such(
    queued: Shell, words: list[str], note: str | None
) -> None:
    node(queued, "oak")
    node(queued, "ash", "tell")

    shown = facts(queued.ok("queue", "net", *words))

    assert shown.get("note") == note
    if words == ["--limit", "1"]:
        assert shown["served by"] == "ash (knows none of its types), oak"


def test_where_no_node_runs_that_is_told(queued: Shell) -> None:
    assert facts(queued.ok("queue", "net"))["note"] == "no node is running"


def test_nodes_own_lists_are_told_too(queued: Shell) -> None:
    node(queued, "oak", serves=QueueSelection(ignored=("net", "default")))

    assert [line.rstrip().split("  ")[-1] for line in queued.ok("queues").splitlines()[1:]] == [
        "no active node serves it",
        "no active node may serve it",
    ]


def test_a_node_that_nobody_has_seen_is_taken_and_told(queued: Shell) -> None:
    node(queued, "oak")

    result = queued.call("queue", "net", "--pin", "oka")

    assert result.returncode == 0
    assert result.stderr == "spinney: no node 'oka' has ever joined this store (did you mean 'oak'?)\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nett"], 2, "did you mean 'net'?"),
        (["nett", "--limit", "3"], 2, "did you mean 'net'?"),
        (["net", "--limit", "many"], 2, "write --limit 4, 50%, 'none' or 'declared'"),
        (["net", "--limit", "99999999999"], 2, "is not a number of slots"),
        (["net", "--limit", "9999999999"], 2, "limit must be 0 or more"),
        (["net", "--type", "doubel"], 2, "did you mean 'double'?"),
        (["net", "--pin", "a b"], 2, "cannot name a node"),
        (["net", "--nodes", "oak"], 2, "name nodes with --pin and --bar"),
        (["net", "--unpin", "oak"], 1, "is not pinned to node 'oak'; it is pinned to: none"),
        (["net", "--unbar", "elms"], 1, "did you mean 'elm'?"),
        (["net", "--pin", "oak", "--bar", "oak"], 1, "is pinned to oak: no other node serves it"),
        (["net", "--reason", "why"], 2, "add the change"),
    ],
)
def test_what_cannot_be_meant_is_refused(queued: Shell, words: list[str], code: int, message: str) -> None:
    before = queued.ok("queue", "net")

    assert message in queued.refused(code, "queue", *words)

    assert queued.ok("queue", "net") == before


def test_a_queue_is_made_and_deleted(queued: Shell) -> None:
    output = facts(
        queued.ok("queue", "new", "--create", "--limit", "2", "--order", "fifo", "--type", "double")
    )
    assert (output["limit"], output["order"], output["type"]) == ("2", "fifo, sharing none", "double")

    assert "queue new is deleted" in queued.ok("queue", "new", "--delete", "--reason", "a typo")
    assert [row["queue"] for row in queued.listed("queues")] == ["default", "net"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["net", "--create"], 1, "there is a queue 'net' already"),
        (["new", "--create", "--limit", "declared"], 2, "has no declared settings"),
        (["new", "--create", "--pin", "oak", "--bar", "elm"], 1, "a bar has no effect"),
        (["new", "--create", "--unpin", "oak"], 2, "no pins and bars to remove"),
        (["new", "--create", "--order", "random"], 2, "order must be default, fifo or lifo"),
        (["new", "--create", "--delete"], 2, "leave the other options out"),
        (["net", "--delete", "--limit", "3"], 2, "leave the other options out"),
        (["net", "--order", "fifo"], 2, "give them with --create"),
        (["default", "--delete"], 1, "always exists"),
        (["nett", "--delete"], 2, "did you mean 'net'?"),
    ],
)
def test_what_cannot_be_made_or_deleted_is_refused(
    queued: Shell, words: list[str], code: int, message: str
) -> None:
    assert message in queued.refused(code, "queue", *words)
    assert [row["queue"] for row in queued.listed("queues")] == ["default", "net"]


# --- submitting by a queue's name -------------------------------------------------------------


def submitted(shell: Shell) -> list[tuple[Any, ...]]:
    return [(j["type"], j["queue"], j["params"]) for j in shell.listed("list", "--oldest")]


def test_a_queue_with_a_default_type_takes_parameters_alone(queued: Shell) -> None:
    assert queued.ok("submit", "--queue", "net", "-p", "n=1", "-p", "name=7") == "1\n"
    queued.ok("queue", "net", "--type", "tell")
    queued.ok("submit", "--queue", "net", "-p", "text=hello")
    queued.ok("submit", "double", "--queue", "net", "-p", "n=2")

    assert submitted(queued) == [
        ("double", "net", {"n": 1, "name": "7"}),
        ("tell", "net", {"text": "hello"}),
        ("double", "net", {"n": 2}),
    ]


def test_a_submission_into_a_queue_that_nobody_knows_is_refused(queued: Shell) -> None:
    refused = queued.refused(2, "submit", "double", "--queue", "nte", "-p", "n=1")

    assert "no queue 'nte' is known to this store (did you mean 'net'?)" in refused
    assert "create it with 'spinney queue nte --create'" in refused
    queued.ok("queue", "nte", "--create")
    queued.ok("submit", "double", "--queue", "nte", "-p", "n=1")
    assert submitted(queued) == [("double", "nte", {"n": 1})]


def test_lines_may_name_a_queue_instead_of_a_type(queued: Shell) -> None:
    (queued.folder / "lines").write_text(
        '{"queue": "net", "params": {"n": 1}}\n{"type": "tell", "queue": "net", "params": {"text": "t"}}\n'
    )
    (queued.folder / "bare").write_text('{"params": {"n": 2}}\n')
    queued.ok("submit", "--jobs", "lines")
    queued.ok("submit", "--jobs", "bare", "--queue", "net")

    assert submitted(queued) == [
        ("double", "net", {"n": 1}),
        ("tell", "net", {"text": "t"}),
        ("double", "net", {"n": 2}),
    ]
    assert "default type" in queued.refused(2, "submit", "--jobs", "bare")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--queue", "net"], "n"),
        (["--queue", "net", "-p", "n=many"], "n"),
        (
            ["--queue", "default", "-p", "n=1"],
            "queue 'default' has no default job type; name the type, or give the ",
        ),
        (["--queue", "nett", "-p", "n=1"], "no queue 'nett' is known to this store (did you mean 'net'?)"),
        (["-p", "n=1"], "or a queue that has a default type"),
    ],
)
def test_a_submission_that_does_not_fit_stores_nothing(queued: Shell, words: list[str], message: str) -> None:
    assert message in queued.refused(2, "submit", *words)
    assert submitted(queued) == []


# --- what else tells of it --------------------------------------------------------------------


def test_a_job_that_no_node_may_serve_says_so_in_lists(queued: Shell) -> None:
    node(queued, "elm")
    queued.ok("submit", "--queue", "net", "-p", "n=1")

    assert "no running node may serve queue net; 'spinney explain 1' says why" in queued.ok("list")
    assert "queue 'net' is barred from node elm" in queued.ok("explain", "1")


def test_a_node_is_started_for_some_queues_or_without_some(queued: Shell) -> None:
    output = queued.refused(2, "node", "jobs:app", "--active", "net", "--ignore", "default")

    assert "not both" in output


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["queue"], ["default", "net"]),
        (["queue", "net", "--limit"], ["declared", "none"]),
        (["queue", "net", "--nodes"], ["any", "declared"]),
        (["queue", "net", "--pin"], ["oak"]),
        (
            ["queue", "net", "--type"],
            ["double", "fragile", "missing", "parent", "steps", "tell", "unheard", "until"],
        ),
        (["node", "jobs:app", "--ignore"], ["default", "net"]),
    ],
)
def test_names_are_completed(
    queued: Shell, monkeypatch: pytest.MonkeyPatch, line: list[str], offered: list[str]
) -> None:
    from spinney.cli.completer import suggestions

    node(queued, "oak")
    monkeypatch.chdir(queued.folder)

    assert [offer.value for offer in suggestions(line, "")] == offered
