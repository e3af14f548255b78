"""The skeleton of bridges, between a real store and another system made for these tests: a dict that may be away."""

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from contract.words import RealClock, Site, kind
from server.conftest import store_at
from spinney.bridges.bridge import TEND_S, Bridge
from spinney.bridges.disbatch import results
from spinney.bridges.foreign import Claim, ClaimLost, ForeignAway, Order, Report, Wish
from spinney.command_line import resolve_settings
from spinney.errors import StoreUnusable
from spinney.features.files.job_folder import output_path
from spinney.features.jobs.commands import RetryJob
from spinney.jobs import SETTLED, Filter, Job, Outcome, job_folder
from spinney.operations import CancelJob, Control, DeleteJob, now_us, open_store
from spinney.tracing import current

NAME = "shelf:books:oak"


@dataclass
class Shelf:
    """The other system: entries with their states, as text."""

    entries: dict[str, str]
    """``free``, then what was reported."""
    claims: dict[str, str] = field(default_factory=dict)
    away: bool = False
    wished: list[Wish] = field(default_factory=list)
    reports: list[tuple[str, str]] = field(default_factory=list)
    stages: dict[str, list[str]] = field(default_factory=dict)
    """Those that were reported as ended, by entry."""
    params: Mapping[str, object] = field(default_factory=dict)
    type: str = "one"
    system: str = "shelf"
    database: str = "books"
    name: str = NAME
    parked: int = 0

    def _reach(self) -> None:
        if self.away:
            raise ForeignAway("the shelf is away")

    def begin(self, mark: str, *, linked: bool) -> None:
        self._reach()

    def tend(self) -> None:
        self._reach()

    def _claim(self, entry: str) -> Claim:
        return Claim(entry=entry, claim=self.claims[entry], type=self.type, params=self.params)

    def claimed(self, linked: Container[tuple[str, str]] = ()) -> Iterable[Claim]:
        self._reach()
        return [self._claim(entry) for entry in self.claims]

    def claim(self, room: int) -> Sequence[Claim]:
        self._reach()
        taken = [entry for entry, state in self.entries.items() if state == "free"][:room]
        for entry in taken:
            self.claims[entry] = str(time.monotonic_ns())
            self.entries[entry] = "claimed"
        return [self._claim(entry) for entry in taken]

    def reject(self, claim: Claim, reason: str) -> None:
        self.entries[claim.entry] = f"rejected: {reason}"
        del self.claims[claim.entry]

    def report(self, reports: Sequence[Report]) -> Mapping[str, ClaimLost]:
        self._reach()
        lost = {}
        for each in reports:
            if self.claims.get(each.entry) != each.claim and each.entry not in self.entries:
                lost[each.entry] = ClaimLost("it is gone")
                continue
            state = "deleted" if each.job is None else str(each.job.state)
            self.entries[each.entry] = state
            self.reports.append((each.entry, state))
            self.stages[each.entry] = [attempt.stage for attempt in each.attempts]
            if state in ("completed", "failed", "cancelled", "deleted"):
                self.claims.pop(each.entry, None)
        return lost

    def wishes(self) -> Iterable[Wish]:
        self._reach()
        wished, self.wished = self.wished, []
        return wished

    def differences(self, jobs: Mapping[str, Job | None]) -> Iterator[tuple[str, str]]:
        yield from ((entry, "no link") for entry in self.claims.keys() - jobs.keys())


@dataclass
class Beside:
    """Both sides, and the bridge between them, which each test moves round by round."""

    site: Site
    shelf: Shelf
    control: Control
    bridge: Bridge

    def anew(self) -> Bridge:
        """The bridge after a crash."""
        return Bridge(self.shelf, self.control, room=10)

    def round(self) -> None:
        self.bridge._tended_s = self.bridge._recovered_s = self.bridge._settled_s = -1e9
        self.bridge.round()

    def jobs(self) -> list[Job]:
        return self.control.queries.jobs(Filter(submitter=NAME))


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[Beside]:
    store = open_store(store_at(tmp_path / "spinney.db"))
    site = Site(store, RealClock())
    control = Control(store=store, clock=now_us, wake_nodes=lambda: None, by=NAME)
    shelf = Shelf(entries={"a": "free", "b": "free"})
    made = Beside(site, shelf, control, Bridge(shelf, control, room=10))
    made.bridge.take()
    yield made
    store.close()


def test_entries_become_jobs_and_jobs_results(sides: Beside) -> None:
    sides.round()
    assert [job.state for job in sides.jobs()] == ["pending", "pending"]
    sides.round()
    first, second = sides.site.claim()
    sides.site.pass_(first)
    sides.site.fail(second)

    sides.round()

    assert sides.shelf.entries == {"a": "completed", "b": "failed"}
    assert sides.control.store.bridges.links(NAME) == []
    sides.round()
    assert len(sides.jobs()) == 2


def test_jobs_of_entries_are_not_in_the_trace_of_whoever_started_the_bridge(sides: Beside) -> None:
    context = copy_context()
    context.run(current.enter, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

    context.run(sides.round)

    assert [job.trace for job in sides.jobs()] == [None, None]


@pytest.mark.parametrize("left", ["claim", "link", "job"])
def test_a_crash_behind_each_write_makes_no_second_job(left: str, sides: Beside) -> None:
    claims = sides.shelf.claim(10)
    if left != "claim":
        sides.control.store.bridges.link(NAME, [(claim.entry, claim.claim) for claim in claims])
    if left == "job":
        for claim in claims:
            sides.bridge._submitted(claim)

    sides.bridge = sides.anew()
    sides.round()
    sides.bridge = sides.anew()
    sides.round()

    assert len(sides.jobs()) == 2
    assert {link.job_id for link in sides.control.store.bridges.links(NAME)} == {
        job.id for job in sides.jobs()
    }


def test_a_shelf_that_is_away_costs_nothing_but_time(sides: Beside) -> None:
    sides.round()
    sides.shelf.away = True
    for lease in sides.site.claim():
        sides.site.pass_(lease)

    with pytest.raises(ForeignAway):
        sides.round()
    sides.bridge.flush()
    (status,) = sides.control.store.bridges.statuses()
    assert (status.links, status.behind, status.in_trouble) == (2, 2, True)

    sides.shelf.away = False
    sides.round()
    assert sides.shelf.entries == {"a": "completed", "b": "completed"}
    sides.round()
    (status,) = sides.control.store.bridges.statuses()
    assert (status.links, status.behind, status.in_trouble, status.trouble) == (
        0,
        0,
        False,
        "the shelf is away",
    )


def test_output_that_cannot_be_read_holds_back_no_other_result(
    sides: Beside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, tuple[str, str]] = {}
    plain = sides.shelf.report

    def report(reports: Sequence[Report]) -> Mapping[str, ClaimLost]:
        ended = [each for each in reports if each.job is not None and each.job.state in SETTLED]
        written.update({each.entry: results.result(each)[1:3] for each in ended})
        return plain(reports)

    monkeypatch.setattr(sides.shelf, "report", report)
    sides.bridge.store = f"sqlite:///{tmp_path}/spinney.db"
    sides.round()
    sides.round()
    for lease in sides.site.claim():
        sides.site.pass_(lease)
    for job, kind_of_file in zip(sides.jobs(), ("link", "plain"), strict=True):
        (attempt,) = sides.control.store.attempts(job.id)
        folder = resolve_settings(sides.bridge.store).folders / job_folder(job.id)
        place = folder / output_path(attempt, "stdout")
        place.parent.mkdir(parents=True)
        if kind_of_file == "link":
            place.symlink_to("/etc/hostname")
        else:
            place.write_text("all well\n")
    sides.shelf.entries["c"] = "free"

    sides.round()

    assert sides.shelf.entries == {"a": "completed", "b": "completed", "c": "claimed"}
    assert written["a"][0].startswith("[output cannot be read: ")
    assert written["a"][1] == ""
    assert written["b"] == ("all well\n", "")


ANSWER = {"status": 7, "stdout": "of the stage"}


@pytest.mark.parametrize(
    ("stages", "status", "stdout"),
    [
        ([(Outcome.OK, None), (Outcome.OK, ANSWER)], 7, "of the stage"),
        ([(Outcome.OK, ANSWER), (Outcome.OK, None)], 1, ""),
        ([(Outcome.OK, ANSWER), (Outcome.NOT_APPLICABLE, None)], 1, ""),
        ([(Outcome.FINISH, ANSWER)], 7, "of the stage"),
    ],
)
def test_the_answer_of_a_task_is_what_the_last_stage_returned(
    sides: Beside,
    monkeypatch: pytest.MonkeyPatch,
    stages: Sequence[tuple[Outcome, object]],
    status: int,
    stdout: str,
) -> None:
    written: list[results.Result] = []
    plain = sides.shelf.report

    def report(reports: Sequence[Report]) -> Mapping[str, ClaimLost]:
        written.extend(results.result(each) for each in reports if each.job and each.job.state in SETTLED)
        return plain(reports)

    monkeypatch.setattr(sides.shelf, "report", report)
    sides.site.knows(kind("two", "check", "tidy"))
    sides.shelf.type, sides.shelf.entries = "two", {"a": "free"}
    sides.round()
    for outcome, value in stages:
        sides.site.record(sides.site.claim_one(), outcome, **({} if value is None else {"result": value}))

    sides.round()

    assert [(each.status, each.stdout) for each in written] == [(status, stdout)]


def test_the_last_report_ends_with_a_sentence_when_the_store_is_unusable(
    sides: Beside, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unusable(*args: object, **more: object) -> None:
        raise StoreUnusable("the store is damaged")

    sides.round()
    for name in ("advance", "report"):
        monkeypatch.setattr(sides.control.store.bridges, name, unusable)

    sides.bridge.flush()

    assert caplog.text.count("the store is damaged") == 1


def test_what_ends_while_the_shelf_is_away_is_shown_as_behind(sides: Beside) -> None:
    sides.round()
    sides.round()
    sides.site.pass_(sides.site.claim_one())
    sides.shelf.away = True
    behind: list[int] = []

    class Pauses(Event):
        """Stands for the bridge's pauses: another job ends in the first one, the shelf is back after the second."""

        def wait(self, timeout: float | None = None) -> bool:
            (status,) = sides.control.store.bridges.statuses()
            behind.append(status.behind)
            if len(behind) == 1:
                sides.site.pass_(sides.site.claim_one())
            elif len(behind) == 2:
                sides.shelf.away = False
            else:
                self.set()
            return self.is_set()

    sides.bridge.run(Pauses())

    assert behind[:2] == [1, 2]
    assert set(sides.shelf.entries.values()) == {"completed"}


def test_stages_that_pass_between_two_rounds_are_all_reported_in_their_order(sides: Beside) -> None:
    sides.shelf.type, sides.shelf.entries = "three", {"a": "free"}
    sides.round()
    for _ in range(2):
        (lease,) = sides.site.claim()
        sides.site.pass_(lease)

    sides.round()

    assert sides.shelf.stages == {"a": ["first", "second"]}


def test_an_entry_whose_type_comes_later_gets_its_job_with_the_next_tending(sides: Beside) -> None:
    sides.shelf.type, sides.shelf.entries = "late", {"a": "free"}
    sides.round()
    sides.site.knows(kind("late", "work"))
    assert sides.jobs() == []

    sides.bridge._recovered_s = time.monotonic() - TEND_S
    sides.bridge.round()

    assert [job.type for job in sides.jobs()] == ["late"]
    sides.bridge._recovered_s = time.monotonic() - TEND_S
    del sides.shelf.claims["a"]
    sides.bridge.round()
    assert sides.bridge._links.keys() == {"a"}  # now all have jobs, entries are compared less often


def test_an_entry_that_waits_for_its_type_is_shown_to_operators_and_can_be_cancelled(sides: Beside) -> None:
    sides.shelf.type, sides.shelf.entries = "late", {"a": "free"}
    sides.round()
    sides.round()
    (status,) = sides.control.store.bridges.statuses()
    assert (status.links, status.in_trouble) == (1, True)
    assert "entry a waits, and takes a slot: no job type 'late'" in (status.trouble or "")

    sides.shelf.wished = [Wish(entry="a", order=Order.CANCEL, reason="not wanted")]
    sides.round()

    assert sides.shelf.entries == {"a": "rejected: not wanted"}
    assert sides.control.store.bridges.links(NAME) == []
    sides.round()
    (status,) = sides.control.store.bridges.statuses()
    assert not status.in_trouble


@pytest.mark.parametrize("changed", [{"type": "late"}, {"params": {"n": object()}}])
def test_a_job_that_was_made_is_linked_although_its_entry_means_another_one_by_now(
    changed: Mapping[str, object], sides: Beside
) -> None:
    """As when the bridge was killed before the link named the job, and the entry's queue has been deleted since."""
    sides.shelf.entries = {"a": "free"}
    (claim,) = sides.shelf.claim(1)
    sides.bridge._submitted(claim)
    sides.site.pass_(sides.site.claim_one())
    vars(sides.shelf).update(changed)

    sides.bridge = sides.anew()
    sides.round()
    sides.round()

    assert sides.shelf.entries == {"a": "completed"}
    assert sides.control.store.bridges.links(NAME) == []


def test_wishes_are_obeyed(sides: Beside) -> None:
    sides.round()
    sides.shelf.wished = [
        Wish(entry="a", order=Order.HOLD, reason="wait"),
        Wish(entry="b", order=Order.PRIORITY, reason="urgent", priority=3),
    ]
    sides.round()
    assert [(job.state, job.priority) for job in sides.jobs()] == [("held", 50), ("pending", 3)]
    sides.shelf.wished = [
        Wish(entry="b", order=Order.PRIORITY, reason="a number that nobody can give", priority=150),
        Wish(entry="a", order=Order.RELEASE, reason="go"),
        Wish(entry="b", order=Order.CANCEL, reason="held by\n" + "x" * 600),
        Wish(entry="nobody", order=Order.CANCEL, reason="no"),
    ]
    sides.round()
    assert [job.state for job in sides.jobs()] == ["pending", "cancelled"]
    sides.round()
    assert sides.shelf.entries["b"] == "cancelled"


def test_an_entry_that_is_gone_cancels_its_job_and_one_that_is_reset_gets_another(sides: Beside) -> None:
    sides.round()
    sides.round()
    del sides.shelf.claims["a"], sides.shelf.entries["a"]
    sides.shelf.entries["b"] = "free"
    del sides.shelf.claims["b"]

    sides.round()
    sides.round()

    assert [job.state for job in sides.jobs()] == ["cancelled", "cancelled", "pending"]
    (link,) = sides.control.store.bridges.links(NAME)
    assert (link.entry, link.job_id) == ("b", sides.jobs()[2].id)


def test_what_happens_to_jobs_here_is_passed_on(sides: Beside) -> None:
    sides.round()
    first, second = sides.jobs()
    sides.control.do(CancelJob(job=first.id))
    sides.control.do(CancelJob(job=second.id))
    sides.round()
    assert set(sides.shelf.entries.values()) == {"cancelled"}
    sides.control.do(DeleteJob(job=second.id))

    sides.control.do(RetryJob(job=first.id))
    (lease,) = sides.site.claim()
    sides.site.pass_(lease)  # between two rounds
    sides.round()
    sides.round()
    assert sides.shelf.entries["a"] == "completed"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda shelf: setattr(shelf, "params", {"n": object()}), "rejected"),
    ],
)
def test_an_entry_of_which_no_job_can_be_made_is_rejected(
    change: Callable[[Shelf], None], sentence: str, sides: Beside
) -> None:
    change(sides.shelf)
    sides.round()
    assert all(state.startswith("rejected") and sentence in state for state in sides.shelf.entries.values())
    assert (sides.jobs(), sides.control.store.bridges.links(NAME)) == ([], [])
