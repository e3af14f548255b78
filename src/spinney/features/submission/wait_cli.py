"""The command ``wait``: waiting for jobs to settle, with a live picture on a terminal and plain lines
elsewhere.

It polls: at every look it reads the jobs again and, for a few jobs, counts those below them; it pauses for longer where
a look takes longer. A long list is only counted. Every other second it also asks why pending and held jobs do not go
on, and ends when only an operator can let them go on. It needs no node and changes nothing, so it may be interrupted
and started again, and it goes on after the store was away for a while, as it does with a server.
"""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from spinney.features.explain.obstacle_messages import NO_NODE, obstacle_messages
from spinney.model.jobs import Job
from spinney.model.states import ENDED, LEASED, OPEN, SETTLED, State
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import JobsArgument, JsonOption, StoreOption
from spinney.terminal.output import display
from spinney.terminal.patience import PatientPerformer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from spinney.commands import Performs

REST = 4
"""A look that took long (a big tree, a busy machine) is followed by a pause so many times as long."""
LINE_EVERY_S = 2.0
"""The least time in seconds between two looks at the jobs that are stuck, and between two lines."""
SHOWN_RUNNING = 6
"""How many running jobs, and jobs that do not go on, are named in the picture."""
SHOWN_ENDS = 20
"""How many ends of jobs are reported one by one."""
COUNTED_TREES = 20
"""The most jobs whose trees are counted, too. In a longer list only the jobs themselves are counted, and only the first
open one is shown with its progress, or with the reason why it does not go on."""
LOOKED_AT = 500
"""How many jobs of a longer list one query counts, and how many jobs below one are listed."""


app = typer.Typer()


@app.command()
def wait(jobs: JobsArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Wait until jobs have settled; exit code 1 unless all completed."""
    with open_commands(store) as performer:
        completed = wait_for(performer, list(dict.fromkeys(jobs)), json=json)
    raise typer.Exit(0 if completed else 1)


def wait_for(performer: "Performs", jobs: Sequence[int], *, json: bool = False) -> bool:
    """Wait until all jobs have settled; print how they ended, and return whether all completed.

    The wait ends early, with False, when everything that is open is held by a circuit breaker, or waits for
    such jobs below it: only an operator's release makes it go on. It does not when more than ``LOOKED_AT``
    jobs wait below one of the jobs. ``json``: print the jobs as lines of JSON on stdout when all have
    settled, and the progress of the wait on stderr. Raises NoSuchJob, and StoreUnavailable when the store does
    not answer at all, or is away for too long (``terminal.patience``).
    """
    performer = PatientPerformer(performer)
    out = display.console(stderr=json)
    line, stuck = _Line(performer, jobs), _Stuck(performer)
    with _picture(out) as picture:
        while True:
            begun = time.monotonic()
            # Looked at first: what is counted after it is at least as new.
            settled = line.look()
            few = len(jobs) <= COUNTED_TREES
            reached = line.last if few else line.reached
            counts, running = _below(performer, reached) if few else (line.counts, _at_work(reached))
            picture.update(counts, running, stuck.among(reached, running), last=settled)
            if settled:
                break
            held = stuck.held_for_good(line.open_jobs())
            if held is not None:
                typer.echo(f"spinney: {held}", err=True)
                return False
            time.sleep(max(performer.poll_s, REST * (time.monotonic() - begun)))
    if json:
        display.print_json_lines(_job(performer, job) for job in sorted(jobs))
        return line.all_completed
    for job in line.last[:SHOWN_ENDS]:
        message = f": {display.safe(display.state_message(job))}" if display.state_message(job) else ""
        out.print(f"job {job.id} {job.type} {display.state_text(job)}{message}")
    return line.all_completed


class _Line:
    """The jobs that the command waits for. A long list is counted in pages, and of its jobs only the first open one is
    read, and in the end those that did not complete."""

    def __init__(self, performer: "Performs", jobs: Sequence[int]) -> None:
        self._performer, self._at, self._given_up_at = performer, 0, 0
        self._few = len(jobs) <= COUNTED_TREES
        self._jobs = jobs if self._few else sorted(jobs)
        self.counts: Counter[str] = Counter()
        """How many of the jobs are in each state."""
        self.last: list[Job] = []
        """The jobs as they were last seen; for a long list, some of those that did not complete, when all have
        settled."""
        self.reached: list[Job] = []
        """In a long list, the first open job."""

    def look(self) -> bool:
        """Look at the jobs again, and return whether all have settled. Raises NoSuchJob."""
        if self._few:
            self.last = [_job(self._performer, j) for j in self._jobs]
            self.counts = Counter(j.state for j in self.last)
        else:
            self._count()
        settled = all(state in SETTLED for state, n in self.counts.items() if n)
        if settled and not self._few:
            self.last = self._ends()
        return settled

    def _count(self) -> None:
        """Count a long list by states, and read its first open job."""
        from spinney.commands.job_queries import CountJobs

        self.counts, self.reached = Counter(), []
        for page in self._pages():
            counts = self._performer.do(CountJobs(ids=page))
            if sum(counts.values()) < len(page):
                for job_id in page:
                    _job(self._performer, job_id)
            self.counts.update(counts)
            if not self.reached and not SETTLED.issuperset(counts):
                self.reached = self._listed(page, OPEN, 1)
        self._at = bisect_left(self._jobs, self.reached[0].id) if self.reached else len(self._jobs)

    def _ends(self) -> list[Job]:
        """Return the first jobs of a long list that have settled and did not complete."""
        ends: list[Job] = []
        if not self.all_completed:
            for page in self._pages():
                if len(ends) < SHOWN_ENDS:
                    ends += self._listed(page, SETTLED - {State.COMPLETED}, SHOWN_ENDS - len(ends))
        return ends

    def _listed(self, page: list[int], states: Iterable[State], limit: int) -> list[Job]:
        """Return the first jobs of a page that are in one of these states."""
        from spinney.commands.job_queries import ListJobs

        jobs = self._performer.do(ListJobs(ids=page, state=[*states], newest=False, limit=limit))
        return [*jobs.items]

    def _pages(self) -> Iterator[list[int]]:
        """Yield the numbers of a long list in pages."""
        for start in range(0, len(self._jobs), LOOKED_AT):
            yield [*self._jobs[start : start + LOOKED_AT]]

    def open_jobs(self) -> Iterator[Job]:
        """Yield the jobs that have not settled, each read when it is wanted.

        It begins where the last reading was given up, because what goes on there probably still does. So in a
        list that goes on a reading costs one job, most times.
        """
        start = self._given_up_at = max(self._at, self._given_up_at)
        for at in (*range(start, len(self._jobs)), *range(self._at, start)):
            job = _job(self._performer, self._jobs[at])
            if job.state not in SETTLED:
                self._given_up_at = at
                yield job

    @property
    def all_completed(self) -> bool:
        """Whether all of the jobs had completed at the last look."""
        return self.counts[State.COMPLETED] == len(self._jobs)


class _Stuck:
    """Finds the jobs that do not go on by themselves: they wait for people, for a node that knows their
    type, or for a release, or their node gives no sign of life. It looks every other second, and repeats
    its last answer in between, since a look takes several queries."""

    def __init__(self, performer: "Performs") -> None:
        self._performer, self._lines, self._read_s = performer, list[str](), float("-inf")
        self._checked_s = float("-inf")

    def among(self, jobs: Sequence[Job], running: Sequence[Job]) -> Sequence[str]:
        """Return a line for each of them, for held jobs below them, and for those of the running jobs whose
        node is silent: which job, and why it does not go on. At most ``SHOWN_RUNNING`` lines. If there is no such
        line, no job runs, and no node does either, the only line says that no node is running."""
        aside = [job for job in jobs if job.state in (State.PENDING, State.HELD)]
        waiting = [job for job in jobs if job.state is State.WAITING]
        if not running and all(job.state in SETTLED for job in jobs):
            return ()
        if (now := time.monotonic()) - self._read_s >= LINE_EVERY_S:
            aside += _listed_below(self._performer, waiting, State.HELD, SHOWN_RUNNING)
            aside = aside[:SHOWN_RUNNING] + list(running[:SHOWN_RUNNING])
            reason = obstacle_messages(self._performer, aside)
            self._lines = [
                display.safe(f"  {job.id} {job.type} {job.state}: {reason(job)}")
                for job in aside
                # The own message of a running job tells how far it is, not that it has stopped.
                if reason(job)
                and (job.state in (State.PENDING, State.HELD) or reason(job) != display.state_message(job))
            ][:SHOWN_RUNNING]
            if not (self._lines or running or self._has_nodes()):
                self._lines = [f"  {NO_NODE}"]
            self._read_s = now
        return self._lines

    def _has_nodes(self) -> bool:
        """Return whether a node is running, as far as the store knows."""
        from spinney.features.nodes.commands import ListNodes

        return any(node.is_running for node in self._performer.do(ListNodes()).items)

    def held_for_good(self, jobs: Iterable[Job]) -> str | None:
        """Return what an operator has to do when circuit breakers hold all these open jobs, or jobs below
        them for which they wait.

        None when one may go on by itself, when a person has laid the hold, who may lift it, or when the
        last check was less than ``LINE_EVERY_S`` ago. No job is taken from ``jobs`` after the first that
        may go on.
        """
        if (now := time.monotonic()) - self._checked_s < LINE_EVERY_S:
            return None
        self._checked_s = now
        held: Job | None = None
        for job in jobs:
            job_held = self._held_at(job)
            if job_held is None:
                return None
            held = held or job_held
        return None if held is None else self._advice(held)

    def _held_at(self, job: Job) -> Job | None:
        """Return the job if a circuit breaker holds it, or the first such job below it if it can only wait for those.

        None when it may go on by itself: then something else is open below it, or it waits for a lock, say.
        """
        from spinney.commands.job_queries import CountJobs

        if job.state is State.HELD:
            return job if self._is_held_by_breaker(job) else None
        if job.state is not State.WAITING or job.waits_for != "children":
            return None
        counts = self._performer.do(CountJobs(below=job.id))
        if not _only_held(counts):
            return None
        waiting = _listed_below(self._performer, [job], State.WAITING, LOOKED_AT)
        # Jobs beyond the listed ones may wait for something else.
        if len(waiting) != counts.get(State.WAITING, 0) or any(j.waits_for != "children" for j in waiting):
            return None
        held = _listed_below(self._performer, [job], State.HELD, SHOWN_RUNNING)
        if not held or not all(map(self._is_held_by_breaker, held)):
            return None
        # The last one that ran below it may have ended before they were counted.
        return held[0] if _job(self._performer, job.id).state is State.WAITING else None

    def _is_held_by_breaker(self, job: Job) -> bool:
        from spinney.features.holds.commands import ListHoldsOn

        return any(hold.automatic for hold in self._performer.do(ListHoldsOn(job=job.id)).items)

    def _advice(self, held: Job) -> str:
        from spinney.features.explain.commands import ExplainJob

        explanation = self._performer.do(ExplainJob(job=held.id))
        command = f"; {explanation.command}" if explanation.command else ""
        return display.safe(
            f"the wait ends: a circuit breaker holds job {held.id}. {explanation.sentence}{command}"
        )


def _only_held(counts: Mapping[str, int]) -> bool:
    """Return whether jobs are held, and no job is open that neither is held nor waits."""
    is_open = {state for state, n in counts.items() if n and state in OPEN}
    return State.HELD in is_open and not is_open - {State.HELD, State.WAITING}


def _listed_below(performer: "Performs", jobs: Sequence[Job], state: State, limit: int) -> list[Job]:
    """Return jobs of this state below some jobs, up to ``limit`` of them in all."""
    from spinney.commands.job_queries import ListJobs

    listed: list[Job] = []
    for job in jobs:
        if len(listed) >= limit:
            break
        page = performer.do(ListJobs(below=job.id, state=[state], newest=False, limit=limit - len(listed)))
        listed += page.items
    return listed


def _job(performer: "Performs", job_id: int) -> Job:
    from spinney.commands.job_details import plain_job
    from spinney.commands.job_queries import ShowJob

    return plain_job(performer.do(ShowJob(job=job_id)))


def _below(performer: "Performs", jobs: Sequence[Job]) -> tuple[dict[str, int], list[Job]]:
    """Return how many of the jobs and of those below them are in each state, and up to ``SHOWN_RUNNING`` of
    those that nodes have.

    A job that is below another one of the list counts twice, as its tree and as itself.
    """
    from spinney.commands.job_queries import CountJobs, ListJobs

    counts: Counter[str] = Counter(j.state for j in jobs)
    running = _at_work(jobs)
    for job in jobs:
        counts.update(performer.do(CountJobs(below=job.id)))
        if job.state not in SETTLED and len(running) < SHOWN_RUNNING:
            rest = SHOWN_RUNNING - len(running)
            page = performer.do(ListJobs(below=job.id, state=[*LEASED], newest=False, limit=rest))
            running += page.items
    return dict(counts), running


def _at_work(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that nodes have claimed or run."""
    return [job for job in jobs if job.state in LEASED]


@contextmanager
def _picture(out: "Console") -> "Iterator[_Lines | _Live]":
    """Yield what shows progress: a picture on a terminal that is drawn anew, or else lines."""
    if not out.is_terminal:
        yield _Lines(out)
        return
    from rich.live import Live

    with Live(console=out, refresh_per_second=10, transient=True) as live:
        yield _Live(live)


def summary(counts: Mapping[str, int]) -> str:
    """Return the progress of a wait as text: ``62 of 205 settled: 61 completed, 1 failed; 2 running, 141 pending``."""
    whole = {state: n for state, n in counts.items() if n and state != State.DELETED}
    ended = {state: n for state, n in whole.items() if state in SETTLED}
    open_ = {state: n for state, n in whole.items() if state not in SETTLED}
    return (
        f"{sum(ended.values()):,} of {sum(whole.values()):,} settled"
        + (f": {_listed(ended)}" if ended else "")
        + (f"; {_listed(open_)}" if open_ else "")
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {state}" for state, n in counts.items())


class _Lines:
    """Shows progress as a line when something changed, at most every two seconds; the last state is
    always shown."""

    def __init__(self, out: "Console") -> None:
        self._out, self._last_text, self._at = out, "", float("-inf")

    def update(
        self, counts: Mapping[str, int], running: Sequence[Job], stuck: Sequence[str], *, last: bool
    ) -> None:
        """Print how many jobs are in each state, and sentences about those that do not go on by themselves (``stuck``),
        if they have changed and the last line is not too recent. ``last``: the wait has ended. Running jobs are not
        named here."""
        text, now = "\n".join([summary(counts), *stuck]), time.monotonic()
        if text != self._last_text and (last or now - self._at >= LINE_EVERY_S):
            self._out.print(text)
            self._last_text, self._at = text, now


class _Live:
    """Shows progress as a bar, the counts, and what runs now; the picture vanishes when the wait ends."""

    def __init__(self, live: "Live") -> None:
        self._live = live

    def update(
        self, counts: Mapping[str, int], running: Sequence[Job], stuck: Sequence[str], *, last: bool
    ) -> None:
        """Draw the bar and the lines below it anew; long lines are cut."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        whole = sum(n for state, n in counts.items() if state != State.DELETED)
        ended = sum(n for state, n in counts.items() if state in ENDED)
        texts = [*map(_running_line, running), *stuck]
        lines = [Text(text, style="dim", no_wrap=True, overflow="ellipsis") for text in texts]
        bar = ProgressBar(total=max(1, whole), completed=ended, width=60)
        # The padding ends the bar's line, which it does not do itself.
        self._live.update(Group(Padding(bar), Text(summary(counts)), *lines))


def _running_line(job: Job) -> str:
    """Return a job that runs as a line: number, type, stage, and its progress message or else its
    parameters."""
    done = f" {job.progress:.0%}" if job.progress is not None else ""
    message = f" {job.progress_message}" if job.progress_message else f" {display.short_json(job.params)}"
    return display.safe(f"  {job.id} {job.type} {job.stage}{done}{message}")
