"""A bridge at work: claim, submit, pass on what becomes of jobs, take wishes. ``docs/bridges.md`` has its rules.

One thread goes round: it compares the jobs of all links with what was passed on, reports what has changed, and claims
as many entries as there is room for. Each second it lets the other system's class do its housekeeping, takes wishes,
and links jobs again that somebody has retried. Every ten seconds it compares all entries under its name with its links.

The links in memory are a copy of those in the store, read at the start and again after each error. Only one process
works under a bridge's name, which it finds out at the beginning of each round, so the copy is right."""

import logging
import time
import uuid
from collections.abc import Iterable, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from threading import Event
from typing import TYPE_CHECKING

from spinney.bridges.foreign import Claim, ClaimLost, Foreign, ForeignAway, Order, Report, Wish
from spinney.command_line import files_of
from spinney.errors import DuplicateKey, SpinneyError, StoreUnavailable, StoreUnusable, UnknownType
from spinney.files.paths import shown
from spinney.jobs import OPEN, SETTLED, Filter, Job, Options, State
from spinney.operations import CancelJob, HoldJob, Link, PrioritiseJob, ReleaseJob, all_jobs

if TYPE_CHECKING:
    from spinney.operations import Control

log = logging.getLogger("spinney.bridges")

PAUSE_S = 0.05
"""The pause after a round in which there was something to do."""
IDLE_S = 0.25
"""The pause after one in which there was nothing."""
TEND_S = 1.0
"""Seconds between two rounds of housekeeping in the other system, in which wishes are taken, too."""
RECOVER_S = 10.0
"""Seconds between comparisons of all entries that are claimed under the bridge's name with its links; ``TEND_S`` while
one waits for a job, because its type is not known yet."""
SETTLED_S = 20.0
"""How often jobs are looked for that were opened again here and have settled since; this reads all jobs of the bridge.
"""
AWAY_MAX_S = 30.0
"""The longest pause while the foreign store is away."""
_REASON_MAX = 500  # the most characters of a reason in the audit
_PAGE = 500  # how many jobs are read, or reported, at once


@dataclass
class Bridge:
    """A bridge to one foreign system: it brings entries as jobs and results back, in one thread. ``run``
    works until the end; ``take`` and ``round`` do one step for commands that check and repair."""

    foreign: Foreign
    control: "Control"
    """The store's operations, in the bridge's name."""
    room: int
    """The most entries that are claimed and not finished: the slots that work for it."""
    store: str | None = None
    """The store's address as the command line has it, for the folders of jobs."""
    _links: dict[str, Link] = field(default_factory=dict)
    """The open links, by entry: a copy of those in the store."""
    _behind_since_us: dict[str, int] = field(default_factory=dict)
    """Since when there is something to pass on, by entry; for operators."""
    _lost: set[tuple[str, str]] = field(default_factory=set)
    """Claims that the other system has ended, while their jobs end."""
    _reported: dict[int, int] = field(default_factory=dict)
    """When the jobs that were reported last had settled, by their numbers."""
    _settled_us: int = 0
    """Jobs that settled before this time have been looked at; 0: the bridge has not begun."""
    _settled_s: float = -1e9
    _tended_s: float = -1e9
    _recovered_s: float = -1e9
    _away_s: float = 0.0
    """The last pause after an error; 0 after a round without one. It doubles up to ``AWAY_MAX_S``."""
    _waits: str | None = None
    """Why an entry has no job yet: a sentence for operators about one of them."""
    _began: bool = False
    """Whether links are read and the other system is prepared; False again after each error."""
    _owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Names this process: who took the bridge's name last in the store may work."""

    def take(self) -> None:
        """Make this process the one that works under the bridge's name; another one sees that at its next
        round, and ends. Raises StoreUnavailable."""
        before = [each for each in self.control.store.bridges.statuses() if each.name == self.foreign.name]
        if not self._settled_us:
            self._settled_us = before[0].seen_us if before else self.control.clock()
        self.control.store.bridges.take(
            self.foreign.name, self.foreign.system, self._owner, now_us=self.control.clock()
        )

    def run(self, stop: Event) -> None:
        """Work until ``stop`` is set, or another process has taken the name. An error of the store, of the
        other system or of the bridge itself is logged, and shown to operators, and the work begins anew after
        a pause, which grows from a quarter of a second to ``AWAY_MAX_S``. Nothing is raised after the name
        was taken."""
        self.take()
        while not stop.is_set():
            pause_s = IDLE_S
            try:
                if self.control.store.bridges.owner(self.foreign.name) != self._owner:
                    log.warning("%s: another process works under this name from now on", self.foreign.name)
                    return
                pause_s = PAUSE_S if self.round() else IDLE_S
                self._away_s = 0.0
            except Exception as error:  # one unforeseen entry must not end the work on all others
                if not isinstance(error, ForeignAway | SpinneyError):
                    log.exception("%s: a fault of the bridge; please report it", self.foreign.name)
                self._away_s = min(AWAY_MAX_S, max(IDLE_S, self._away_s * 2))
                pause_s, self._began = self._away_s, False
                log.warning("%s: %s; next try in %.1f s", self.foreign.name, error, pause_s)
                self._tell(str(error))
            stop.wait(pause_s)

    def flush(self) -> None:
        """Pass on what has changed, and claim nothing: for the end, when the jobs have ended. What cannot be
        passed on now is passed on after the next start, and is no error."""
        try:
            self._pass_on()
            self._tell(None)
        except (ForeignAway, SpinneyError) as error:
            log.warning("%s: %s; it is passed on after the next start", self.foreign.name, error)
            self._tell(str(error))

    def round(self) -> bool:
        """Go round once; return whether there was something to do. Raises ForeignAway, StoreUnavailable and
        other errors of the store; whatever was done before stays, and the next round goes on.

        Results are passed on before entries are claimed, so that the room that settled jobs leave is used at
        once."""
        if not self._began:
            self._links = {link.entry: link for link in self.control.store.bridges.links(self.foreign.name)}
            self._changed()  # counted before the foreign store is needed: an operator sees how far behind it is
            mark = self.control.store.bridges.mark(self.foreign.name)
            self.foreign.begin(mark, linked=bool(self._links))
            self._recovered_s, self._began = -1e9, True
        passed = self._pass_on()
        now_s = time.monotonic()
        waits = any(link.job_id is None for link in self._links.values())
        if now_s - self._recovered_s >= (TEND_S if waits else RECOVER_S):
            self._recover()
            self._recovered_s = now_s
        if now_s - self._tended_s >= TEND_S:
            self.foreign.tend()
            self._tended_s = now_s
            self._obey(self.foreign.wishes())
            self._relink()
            self._tell(self._waits)
        room = self.room + self.foreign.parked - len(self._links)
        claimed = self._accept(self.foreign.claim(room) if room > 0 else ())
        return passed + claimed > 0

    # --- claims become jobs -------------------------------------------------------------------

    def _accept(self, claims: Iterable[Claim]) -> int:
        """Link claims and submit their jobs; return how many were new. Links are written before jobs: a link
        without a job is submitted again, while a job without a link would be found only by the search for
        reopened jobs. An older claim of the same entry is given up, and its job cancelled."""
        todo = [claim for claim in claims if not self._has_job(claim)]
        if not todo:
            return 0
        bridges = self.control.store.bridges
        old = [self._links[claim.entry] for claim in todo if claim.entry in self._links]
        replaced = {link.job_id: link for link in old if link.job_id is not None}
        for job in self._by_id(replaced).values():
            self._give_up(replaced[job.id], job, ClaimLost("it was reset, and taken again"))
        bridges.link(self.foreign.name, [(claim.entry, claim.claim) for claim in todo])
        for claim in todo:
            self._links[claim.entry] = Link(entry=claim.entry, claim=claim.claim, job_id=None, position="")
        named = [
            (claim.entry, claim.claim, job_id)
            for claim in todo
            if (job_id := self._submitted(claim)) is not None
        ]
        bridges.name_jobs(self.foreign.name, named)
        for entry, claim_text, job_id in named:
            self._links[entry] = Link(entry=entry, claim=claim_text, job_id=job_id, position="")
        return len(todo)

    def _has_job(self, claim: Claim) -> bool:
        """Return whether this claim is linked to a job already."""
        link = self._links.get(claim.entry)
        return link is not None and link.claim == claim.claim and link.job_id is not None

    def _submitted(self, claim: Claim) -> int | None:
        """Submit the job of a claim, or find it; return its number. None: no job can be made now, or none ever, and
        then the entry is rejected."""
        key = f"{self._prefix}{claim.entry}:{claim.claim}"
        options = {**claim.options, "key": key, "forever": True, "submitter": self.foreign.name}
        try:
            # In an empty context, because the trace of whoever started the bridge is not that of an entry.
            made = Context().run(
                self.control.submit, claim.type, [claim.params], Options.of(options), internal=True
            )
            return made.ids[0]
        except DuplicateKey as error:
            return error.job_id
        except StoreUnusable:
            raise
        except SpinneyError as error:
            # Type and parameters are checked before the key, so a job of this claim may be there all the same, made
            # when they were other ones.
            if jobs := self.control.store.jobs(Filter(key=key), limit=1):
                return jobs[0].id
            if isinstance(error, UnknownType):
                self._waits = f"entry {claim.entry} waits, and takes a slot: {error}, or cancel the entry"
                return None
            self._reject(claim, str(error))
            return None

    def _reject(self, claim: Claim, reason: str) -> None:
        """End an entry of which no job is made, and its link."""
        log.warning("%s: entry %s is rejected: %s", self.foreign.name, claim.entry, reason)
        self.foreign.reject(claim, reason)
        self._end([(claim.entry, claim.claim)])

    def _recover(self) -> None:
        """Compare all entries that are claimed under the bridge's name with the links: link those that have
        none, and end the links of entries that are gone, cancelling their jobs. A link whose job was never
        reported is not ended here: the other system may not have shown its entry yet, and the first report
        tells whether the claim holds."""
        self._waits = None
        linked = {(link.entry, link.claim) for link in self._links.values() if link.job_id is not None}
        claims = list(self.foreign.claimed(linked))
        held = {(claim.entry, claim.claim) for claim in claims}
        gone = [
            link
            for link in self._links.values()
            if (link.position or link.job_id is None) and (link.entry, link.claim) not in held
        ]
        jobs = self._by_id(link.job_id for link in gone)
        for link in gone:
            job = jobs.get(link.job_id or 0)
            self._give_up(link, job, ClaimLost("it no longer has our name"))
        self._end([(link.entry, link.claim) for link in gone])
        self._accept(claims)

    @property
    def _prefix(self) -> str:
        return f"bridge:{self.foreign.system}:{self.foreign.database}:"

    def _relink(self) -> None:
        """Link jobs of this bridge that have no link and are open or have settled again, because somebody has
        retried or rerun them. Open ones are looked for each time; settled ones, for which all jobs of the
        bridge are read, every ``SETTLED_S``, and with some overlap, since clocks and transactions may
        differ."""
        still_open = list(all_jobs(self.control.store, Filter(submitter=self.foreign.name, states=OPEN)))
        self._lost &= {self._taking(job) for job in still_open}
        self._link_again(still_open)
        if time.monotonic() - self._settled_s < SETTLED_S:
            return
        self._settled_s, before_us = time.monotonic(), self.control.clock()
        settled = all_jobs(
            self.control.store, Filter(submitter=self.foreign.name, settled_after_us=self._settled_us)
        )
        self._link_again(job for job in settled if self._reported.get(job.id) != job.settled_us)
        self._settled_us = before_us - int(SETTLED_S * 1e6)
        self._reported = {job: at for job, at in self._reported.items() if at >= self._settled_us}

    def _link_again(self, jobs: Iterable[Job]) -> None:
        """Link top jobs of this bridge that have no link, unless their entries were claimed again since or
        their claims are lost."""
        linked = {link.job_id for link in self._links.values()}
        for job in jobs:
            if job.id in linked or job.parent_id is not None or not (job.key or "").startswith(self._prefix):
                continue
            entry, claim = self._taking(job)
            if entry in self._links or (entry, claim) in self._lost:
                continue  # it was taken again since, and that taking counts; or its job is being cancelled
            bridges = self.control.store.bridges
            bridges.link(self.foreign.name, [(entry, claim)])
            bridges.name_jobs(self.foreign.name, [(entry, claim, job.id)])
            self._links[entry] = Link(entry=entry, claim=claim, job_id=job.id, position="")

    def _taking(self, job: Job) -> tuple[str, str]:
        """Return the entry and the claim of a job of this bridge, from the job's key."""
        entry, _, claim = (job.key or "").removeprefix(self._prefix).rpartition(":")
        return entry, claim

    # --- jobs' progress goes back -------------------------------------------------------------

    def _pass_on(self) -> int:
        """Report the jobs that have changed; return how many."""
        changed = self._changed()
        for start in range(0, len(changed), _PAGE):
            self._report(changed[start : start + _PAGE])
        return len(changed)

    def _changed(self) -> list[tuple[Link, Job | None, str]]:
        """Return the links whose jobs are ahead of their positions, with the jobs and the new positions."""
        links = {link.job_id: link for link in self._links.values() if link.job_id is not None}
        jobs = self._by_id(links)
        changed = []
        for job_id, link in links.items():
            position = _position(jobs.get(job_id))
            if position != link.position:
                changed.append((link, jobs.get(job_id), position))
                self._behind_since_us.setdefault(link.entry, self.control.clock())
        return changed

    def _report(self, changed: Sequence[tuple[Link, Job | None, str]]) -> None:
        """Report these links, then move their positions, or end the links of jobs that have settled or whose
        entries are lost. A crash between both reports the same again."""
        lost = self.foreign.report([self._made(link, job) for link, job, _ in changed])
        ended, advanced = [], []
        for link, job, position in changed:
            self._behind_since_us.pop(link.entry, None)
            if link.entry in lost:
                self._give_up(link, job, lost[link.entry])
            if link.entry in lost or job is None or job.state in SETTLED:
                ended.append((link.entry, link.claim))
                if job is not None:
                    self._reported[job.id] = job.settled_us or 0
            else:
                advanced.append((link.entry, link.claim, position))
                self._links[link.entry] = replace(link, position=position)
        self.control.store.bridges.advance(self.foreign.name, advanced)
        self._end(ended)

    def _made(self, link: Link, job: Job | None) -> Report:
        """Return the report of a job. Results and output are read only when the other system's class asks for
        them."""
        assert link.job_id is not None, "links without a job are not compared"
        job_id, store = link.job_id, self.control.store
        attempts = [] if job is None else store.attempts(job_id)
        return Report(
            entry=link.entry,
            claim=link.claim,
            job=job,
            attempts=[each for each in attempts if each.outcome is not None],
            results=lambda: self.control.queries.results(job_id),
            output=lambda attempt, stream: files_of(self.control, job_id, self.store).output(attempt, stream),
        )

    def _give_up(self, link: Link, job: Job | None, error: ClaimLost) -> None:
        """Cancel the job of an entry that is not ours any more, if it has not settled. While it ends, the
        claim counts as lost, so that the job is not linked again."""
        log.warning("%s: entry %s is lost: %s", self.foreign.name, link.entry, error)
        if job is not None and job.state not in SETTLED:
            self._lost.add((link.entry, link.claim))
            reason = f"entry {link.entry}: {error}"
            self._order(job.id, Wish(entry=link.entry, order=Order.CANCEL, reason=reason))

    def _end(self, links: Iterable[tuple[str, str]]) -> None:
        """End the links of these entries and claims, in the store and here."""
        ended = [(entry, claim, None) for entry, claim in links]
        if ended:
            self.control.store.bridges.advance(self.foreign.name, ended)
        for entry, _, _ in ended:
            self._links.pop(entry, None)
            self._behind_since_us.pop(entry, None)

    # --- orders of the queue's users ----------------------------------------------------------

    def _obey(self, wishes: Iterable[Wish]) -> None:
        """Give the orders that the other system's operators wish for. A wish stays until its outcome was
        reported, so it may be given again."""
        for wish in wishes:
            link = self._links.get(wish.entry)
            if link is None:
                continue
            if link.job_id is None:
                if wish.order is Order.CANCEL:
                    self._reject(Claim(entry=link.entry, claim=link.claim, type="", params={}), wish.reason)
                continue
            job = self._by_id([link.job_id]).get(link.job_id)
            if job is not None and not (wish.order is Order.CANCEL and job.cancelling):
                self._order(job.id, wish)

    def _order(self, job_id: int, wish: Wish) -> None:
        """Give one order for a job. A refusal, as of a job that has settled or of a priority that does not exist, is
        logged: the report tells the other system what holds."""
        command: CancelJob | HoldJob | ReleaseJob | PrioritiseJob
        reason = shown(wish.reason)[:_REASON_MAX]  # it may quote what others have written
        try:
            if wish.order is Order.CANCEL:
                command = CancelJob(job=job_id, tree=True, reason=reason)
            elif wish.order is Order.HOLD:
                command = HoldJob(job=job_id, reason=reason)
            elif wish.order is Order.RELEASE:
                command = ReleaseJob(job=job_id, reason=reason)
            else:
                assert wish.priority is not None, "a wish for a priority must name the priority"
                command = PrioritiseJob(job=job_id, priority=wish.priority, reason=reason)
            self.control.do(command)
        except StoreUnavailable:
            raise
        except SpinneyError as error:
            log.info("%s: %s of job %d: %s", self.foreign.name, wish.order, job_id, error)

    # --- reads and messages -------------------------------------------------------------------

    def differences(self) -> list[tuple[str, str]]:
        """Compare both sides; return entry and sentence for each that does not agree. Nothing is changed, so
        it may be called beside the bridge, and then shows what is just under way, too. Raises ForeignAway and
        errors of the store."""
        links = {link.entry: link for link in self.control.store.bridges.links(self.foreign.name)}
        jobs = self._by_id(link.job_id for link in links.values())
        by_entry = {entry: jobs.get(link.job_id or 0) for entry, link in links.items()}
        return list(self.foreign.differences(by_entry))

    def _by_id(self, ids: Iterable[int | None]) -> dict[int, Job]:
        """Return the jobs with these numbers, by number, without deleted ones; a link without a job has None."""
        sorted_ids = tuple(sorted({job_id for job_id in ids if job_id is not None}))
        return {
            job.id: job
            for start in range(0, len(sorted_ids), _PAGE)
            for job in self.control.store.jobs(Filter(ids=sorted_ids[start : start + _PAGE]), limit=_PAGE)
            if job.state is not State.DELETED
        }

    def _tell(self, trouble: str | None) -> None:
        """Report how the bridge is to the store, if that can be used."""
        since = self._behind_since_us.values()
        try:
            self.control.store.bridges.report(
                self.foreign.name,
                behind=len(since),
                behind_since_us=min(since, default=None),
                trouble=trouble,
                now_us=self.control.clock(),
            )
        except StoreUnusable as error:
            if str(error) != trouble:  # else it is in the log already
                log.warning("%s: %s", self.foreign.name, error)


def _position(job: Job | None) -> str:
    """Return a text that describes the reported part of a job: it changes when there is something new to report."""
    if job is None:
        return "deleted"
    percent = None if job.progress is None else int(job.progress * 100)
    return f"{job.state}:{job.stage}:{job.cancelling}:{percent}:{job.attempts}"
