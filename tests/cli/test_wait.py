"""What people see while they wait."""

import io
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from contract.behind import damage, refresh
from contract.words import USUAL, Clock, Site
from new_store import new_store
from server.pages.sample_jobs import job
from spinney.commands import Performs
from spinney.commands.job_queries import CountJobs, ListJobs, ShowJob
from spinney.features.explain.commands import ExplainJob
from spinney.features.explain.explanation import Explanation
from spinney.features.holds.commands import LayHold, ListHoldsOn
from spinney.features.nodes.commands import ListNodes
from spinney.features.submission import wait_cli as wait
from spinney.model.errors import StoreUnavailable
from spinney.model.fleet import NodeStatus
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.model.values.lists import All, Page
from spinney.store.sql import open_store
from spinney.terminal import patience
from spinney.terminal.connection import open_commands

from .shell import Shell


def test_a_summary_counts_what_has_ended_and_what_is_open() -> None:
    counts = {"completed": 61, "failed": 1, "running": 2, "pending": 1141, "deleted": 5, "held": 0}

    assert wait.summary(counts) == "62 of 1,205 settled: 61 completed, 1 failed; 2 running, 1,141 pending"
    assert wait.summary({"pending": 1}) == "0 of 1 settled; 1 pending"


def test_the_live_picture_has_a_bar_the_counts_and_what_runs(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    with open_commands(f"sqlite:///{shell.folder}/spinney.db") as performer:
        job = replace(
            performer.do(ShowJob(job=1)), state=State.RUNNING, progress=0.5, progress_message="half\x1b[2J"
        )
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, legacy_windows=False)

    with Live(console=console, auto_refresh=False, transient=False) as live:
        wait._Live(live).update({"running": 1, "completed": 3}, [job], [], last=False)
        live.refresh()

    lines = [line for line in out.getvalue().splitlines() if line.strip()]
    assert any(line.rstrip().endswith("3 of 4 settled: 3 completed; 1 running") for line in lines)
    assert "1 double double 50% half\\x1b[2J" in out.getvalue()


@pytest.mark.parametrize(
    ("hold", "message"),
    [
        (False, "1 double pending: no node is running"),
        (True, "1 double held: hold 1 on job 1 by ann: not yet"),
    ],
)
def test_what_does_not_go_on_by_itself_is_told_to_who_waits(shell: Shell, hold: bool, message: str) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    if hold:
        shell.ok("hold", "1", "--reason", "not yet", "--by", "ann")

    lines_printed = shell.first_two_lines("wait", "1")

    assert lines_printed[0].startswith("0 of 1 settled; 1 ")
    assert lines_printed[1].strip().startswith(message), lines_printed


def test_a_wait_for_jobs_that_wait_themselves_tells_that_no_node_is_running(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    shell.ok("submit", "double", "-p", "n=2", "--needs", "1")

    lines_printed = shell.first_two_lines("wait", "2")

    assert lines_printed == [
        "0 of 1 settled; 1 waiting\n",
        "  no node is running; start one with 'spinney node'\n",
    ]


@pytest.mark.parametrize(("state", "is_running"), [("active", True), ("draining", True), ("left", False)])
def test_a_node_that_has_left_is_none_that_runs_while_its_leases_are_taken_back(
    state: str, is_running: bool
) -> None:
    class Nodes:
        def do(self, command: object) -> object:
            return All(items=[node] if isinstance(command, ListNodes) else [])

    node = NodeStatus(
        id=1,
        node="n1",
        host="n1",
        pid=1,
        version="1",
        state=state,
        seen_us=0,
        started_us=0,
        slots=1,
        slots_started=1,
        used=1,
        leases=1,
        types=("double",),
    )

    lines = wait._Stuck(Nodes()).among([job(state=State.SCHEDULED, stage="double")], [])  # type: ignore[arg-type]

    assert lines == ([] if is_running else ["  no node is running; start one with 'spinney node'"])


def test_a_wait_for_a_long_list_names_the_job_at_which_it_stands(shell: Shell) -> None:
    numbers = range(1, wait.COUNTED_TREES + 2)
    shell.submit_lines("".join(f'{{"n": {n}}}\n' for n in numbers), "double")
    shell.ok("cancel", "1", *map(str, numbers[2:]))
    shell.ok("hold", "2", "--reason", "not yet", "--by", "ann")

    lines_printed = shell.first_two_lines("wait", *map(str, numbers))

    assert lines_printed[0] == "20 of 21 settled: 20 cancelled; 1 held\n"
    assert lines_printed[1].strip().startswith("2 double held: hold 1 on job 2 by ann: not yet")


class _Tree:
    """Does the commands of a wait for job 1, which waits for job 2.

    ``below``: the open jobs below it by state; ``then``: its state when it is read again.
    """

    def __init__(
        self, shell: Shell, waits_for: str, *, automatic: bool, below: dict[str, int], then: State
    ) -> None:
        with open_commands(f"sqlite:///{shell.folder}/spinney.db") as performer:
            job = performer.do(ShowJob(job=1))
        self.top = replace(job, state=State.WAITING, waits_for=waits_for)
        self._held = replace(job, id=2, state=State.HELD)
        self._automatic, self._below, self._then = automatic, below, then

    def do(self, command: object) -> object:
        match command:
            case ShowJob():
                return replace(self.top, state=self._then)
            case CountJobs():
                return self._below
            case ListJobs():
                return Page(items=[self._held] if command.state == [State.HELD] else [], next=None)
            case ListHoldsOn():
                hold = Hold(
                    id=3,
                    scope=Scope.TYPE,
                    name="double",
                    reason="five in a row",
                    by="circuit breaker",
                    since_us=0,
                    automatic=self._automatic,
                )
                return All(items=[hold])
            case ExplainJob():
                return Explanation(
                    job_id=2,
                    cause="hold",
                    sentence="it is held by hold 3",
                    command="spinney release --hold 3",
                )
        raise AssertionError(command)


@pytest.mark.parametrize(
    ("waits_for", "automatic", "below", "then", "ends"),
    [
        ("children", True, {"held": 1}, State.WAITING, True),
        ("children", True, {"held": 1, "completed": 2}, State.WAITING, True),
        ("children", True, {"held": 1, "pending": 1}, State.WAITING, False),
        # A job waits there that is not listed, so nobody knows for what.
        ("children", True, {"held": 1, "waiting": 1}, State.WAITING, False),
        ("children", False, {"held": 1}, State.WAITING, False),
        ("lock", True, {"held": 1}, State.WAITING, False),
        # The child that counts has ended; the one that is held is superseded.
        ("children", True, {"held": 1}, State.PENDING, False),
    ],
)
def test_the_wait_ends_when_a_circuit_breaker_holds_all_that_is_open(
    shell: Shell, waits_for: str, automatic: bool, below: dict[str, int], then: State, ends: bool
) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    tree = _Tree(shell, waits_for, automatic=automatic, below=below, then=then)

    held = wait._Stuck(tree).held_for_good([tree.top])  # type: ignore[arg-type]

    assert (held is not None) is ends
    if held is not None:
        assert "circuit breaker holds job 2. it is held by hold 3; spinney release --hold 3" in held


@pytest.mark.parametrize("number", [wait.COUNTED_TREES, wait.COUNTED_TREES + 1])
def test_the_wait_for_few_and_for_many_ends_when_a_circuit_breaker_holds_them(
    shell: Shell, number: int
) -> None:
    shell.submit_lines("".join(f'{{"n": {n}}}\n' for n in range(number)), "double")
    shell.ok("cancel", "1")
    shell.ok("hold", "--type", "double", "--reason", "five in a row")
    with sqlite3.connect(shell.folder / "spinney.db") as database:
        assert database.execute("update holds set automatic = 1").rowcount == 1
        database.execute("update counters set value = value + 1 where name = 'registry'")
    database.close()

    waits = shell.run("wait", *map(str, range(1, number + 1)))

    assert waits.returncode == 1
    assert "the wait ends: a circuit breaker holds job 2." in waits.stderr


class _Observed:
    """Does commands, counts them, and calls ``after`` with each that was done."""

    def __init__(self, performer: Performs, after: Callable[[object], None] = lambda _: None) -> None:
        self._performer, self._after = performer, after
        self.count = 0

    def do(self, command: Any) -> Any:
        self.count += 1
        value = self._performer.do(command)
        self._after(command)
        return value


class _Store:
    """A store with usual types, some of which a circuit breaker holds, as the contract's tests use it and
    as commands see it."""

    def __init__(self, folder: Path) -> None:
        self.url = new_store(folder / "spinney.db")
        self.site = Site(open_store(self.url), Clock())
        self.site.knows(*USUAL)

    def hold(self, type_: str, *, automatic: bool) -> None:
        with open_commands(self.url) as performer:
            performer.do(LayHold(scope=Scope.TYPE, name=type_, reason="five in a row"))
        if automatic:
            damage(self.site.store, "update holds set automatic = 1 where name = ?", type_)
            refresh(self.site.store)

    def is_over(self, performer: _Observed, line: wait._Line) -> bool:
        """Return whether a wait ends here."""
        return wait._Stuck(performer).held_for_good(line.open_jobs()) is not None  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[_Store]:
    store = _Store(tmp_path)
    yield store
    store.site.store.close()


class _Away:
    """Performs commands on a store that does not answer calls of these numbers, counted from 0."""

    poll_s = 0.01

    def __init__(self, performer: Performs, away: range) -> None:
        self._performer, self._away, self._count = performer, away, count()

    def do(self, command: Any, *, tell: Any = None) -> Any:
        if next(self._count) in self._away:
            raise StoreUnavailable("the database is restarted")
        return self._performer.do(command, tell=tell)


def test_a_wait_goes_on_when_the_store_is_back(
    store: _Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(patience, "AGAIN_S", 0.0)
    (job,) = store.site.submit("one")
    store.site.pass_(store.site.run(job))

    with open_commands(store.url) as performer:
        assert wait.wait_for(_Away(performer, range(1, 4)), [job])

    assert capsys.readouterr().err == "spinney: the database is restarted; waiting for it\n"


@pytest.mark.parametrize(("first", "limit_s"), [(0, 60.0), (1, 0.0)])
def test_a_wait_ends_when_the_store_never_answered_or_is_away_for_too_long(
    store: _Store, monkeypatch: pytest.MonkeyPatch, first: int, limit_s: float
) -> None:
    monkeypatch.setattr(patience, "OUTAGE_LIMIT_S", limit_s)
    (job,) = store.site.submit("one")

    with open_commands(store.url) as performer, pytest.raises(StoreUnavailable):
        wait.wait_for(_Away(performer, range(first, 1_000)), [job])


MANY = wait.COUNTED_TREES + 1


@pytest.mark.parametrize("number", [2, MANY])
def test_a_parent_whose_last_child_ends_during_the_check_goes_on(store: _Store, number: int) -> None:
    # Given a parent whose only child runs, and others that a circuit breaker holds
    parent, (child,) = store.site.family("parent", 1)
    lease = store.site.run(child)
    ids = [parent, *store.site.submit("three", n=number - 1)]
    store.hold("three", automatic=True)

    def end_child(command: object) -> None:
        if command == ShowJob(job=parent) and store.site.state(child) is State.RUNNING:
            store.site.pass_(lease)

    # When the child ends as soon as the parent was read
    with open_commands(store.url) as performer:
        observed = _Observed(performer, end_child)
        is_over = store.is_over(observed, wait._Line(observed, ids))  # type: ignore[arg-type]

    # Then the wait goes on, as the parent does
    assert store.site.state(parent) is State.PENDING
    assert not is_over


@pytest.mark.parametrize("open_", ["for_another_job", "held_by_a_person", "parents", "last_one_is_ready"])
def test_a_check_of_a_long_list_that_goes_on_costs_few_commands(store: _Store, open_: str) -> None:
    # Given many jobs, of which one at least goes on by itself or by the person who holds it
    site = store.site
    match open_:
        case "for_another_job":
            ids = site.submit("one", n=MANY, needs=(site.run(site.submit_one()).job_id,))
        case "held_by_a_person":
            ids = site.submit("three", n=MANY)
            store.hold("three", automatic=False)
        case "parents":
            ids = [site.family("parent", 1)[0] for _ in range(MANY)]
        case _:
            ids = [*site.submit("three", n=MANY - 1), site.submit_one()]
            store.hold("three", automatic=True)
    with open_commands(store.url) as performer:
        observed = _Observed(performer)
        line = wait._Line(observed, ids)  # type: ignore[arg-type]
        # When it was checked once, and is checked again
        assert not store.is_over(observed, line)
        observed.count = 0
        assert not store.is_over(observed, line)
    # Then only the job that goes on is looked at
    assert observed.count <= 2


def test_a_wait_for_more_parents_than_one_look_reads_ends(
    store: _Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "LOOKED_AT", MANY)
    ids = [store.site.family("parent", 1, child="three")[0] for _ in range(MANY + 1)]
    store.hold("three", automatic=True)

    with open_commands(store.url) as performer:
        observed = _Observed(performer)

        assert store.is_over(observed, wait._Line(observed, ids))  # type: ignore[arg-type]


def test_a_long_list_is_counted_whole_at_each_look(store: _Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "LOOKED_AT", 8)  # several pages
    ids = store.site.submit("one", n=MANY)
    for number in ids[:5]:
        store.site.cancel(number)
    first, *others = store.site.claim(slots=3)
    with open_commands(store.url) as performer:
        line = wait._Line(performer, ids[::-1])

        assert not line.look()
        assert line.counts == {"cancelled": 5, "claimed": 3, "pending": MANY - 8}
        assert [reached.id for reached in line.reached] == [first.job_id]

        # One that had settled is opened again, and all others settle.
        store.site.retry(ids[0])
        store.site.fail(first)
        store.site.pass_(*others)
        for number in ids[8:]:
            store.site.cancel(number)
        assert not line.look()
        assert [reached.id for reached in line.reached] == [ids[0]]

        store.site.cancel(ids[0])
        assert line.look()
        assert [last.id for last in line.last] == sorted({*ids} - {lease.job_id for lease in others})
        assert not line.all_completed


def test_a_long_list_with_a_job_that_is_not_there_is_refused(shell: Shell) -> None:
    shell.submit_lines("".join(f'{{"n": {n}}}\n' for n in range(MANY)), "double")

    message = shell.refused(1, "wait", *map(str, range(2, MANY + 2)))

    assert f"there is no job {MANY + 1}" in message


def test_what_was_waited_for_is_told_as_json_and_the_waiting_on_stderr(shell: Shell) -> None:
    shell.submit_lines("".join(f'{{"n": {n}}}\n' for n in range(30)), "double")
    shell.ok("cancel", *map(str, range(1, 31)))

    few = shell.call("wait", "2", "1", "--json")
    many = shell.call("wait", *map(str, range(1, 31)), "--json")

    assert (few.returncode, many.returncode) == (1, 1)
    assert [(job["id"], job["state"]) for job in map(json.loads, few.stdout.splitlines())] == [
        (1, "cancelled"),
        (2, "cancelled"),
    ]
    assert [json.loads(line)["id"] for line in many.stdout.splitlines()] == [*range(1, 31)]
    assert "2 of 2 settled" in few.stderr
