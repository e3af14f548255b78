"""Every step that can be observed is in the one table of lawful transitions."""

from collections.abc import Callable, Sequence

import pytest

from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.model.states import State, lawful

from .words import Site, kind, stage


class Observed(Site):
    """A site that looks at every job after every verb and holds each step against the table."""

    def look(self) -> None:
        for job in self.store.tree(self.watched):
            before = self.seen.get(job.id)
            if before is not job.state:
                assert lawful(before, job.state), f"job {job.id}: {before} -> {job.state}"
                self.seen[job.id] = job.state
                self.path.append(job.state)

    def watch(self, job_id: int) -> int:
        self.watched, self.seen, self.path = job_id, {}, []
        self.look()
        return job_id

    leases: Sequence[Lease] = ()
    watched: int
    seen: dict[int, State]
    path: list[State]


@pytest.fixture
def observed(site: Site) -> Observed:
    made = Observed(site.store, site.clock)
    made.knows(kind("patient", stage("work", max_attempts=2), stage("report", again=True)))
    return made


Step = Callable[[Observed, int], object]

STEPS: dict[str, Step] = {
    "claim": lambda s, _: s.claim(),
    "start": lambda s, j: s.store.started([s.job(j).fence or 0], now_us=s.now),
    "second": lambda s, _: s.later(1),
    "cancel": lambda s, j: s.cancel(j),
    "retry": lambda s, j: s.retry(j),
    "rerun": lambda s, j: s.rerun(j),
    "release": lambda s, j: s.release(j),
    "delete": lambda s, j: s.delete(j),
    "recover": lambda s, _: s.recover(s.here),
}


def _walk(site: Observed, job: int, steps: str) -> list[State]:
    """Take the steps named, one at a time; words in capitals are outcomes of the running attempt."""
    for word in steps.split():
        if word.isupper():
            lease = next(le for le in site.leases if le.job_id == job)
            site.record(lease, Outcome[word], delay_s=1.0)
        elif word == "claim":
            site.leases = site.claim()
        else:
            STEPS[word](site, job)
        site.look()
    return site.path


S = State
LIVES: dict[str, tuple[str, list[State]]] = {
    "straight": (
        "claim start OK claim start OK",
        [S.PENDING, S.CLAIMED, S.RUNNING, S.PENDING, S.CLAIMED, S.RUNNING, S.COMPLETED],
    ),
    "tried again": (
        "claim start ERROR second claim start ERROR retry",
        [
            S.PENDING,
            S.CLAIMED,
            S.RUNNING,
            S.SCHEDULED,
            S.PENDING,
            S.CLAIMED,
            S.RUNNING,
            S.FAILED,
            S.PENDING,
        ],
    ),
    "held": (
        "claim start HOLD release claim start FINISH rerun",
        [
            S.PENDING,
            S.CLAIMED,
            S.RUNNING,
            S.HELD,
            S.PENDING,
            S.CLAIMED,
            S.RUNNING,
            S.COMPLETED,
            S.PENDING,
        ],
    ),
    "cancelled at once": (
        "cancel retry cancel delete",
        [S.PENDING, S.CANCELLED, S.PENDING, S.CANCELLED, S.DELETED],
    ),
    "cancelled while running": (
        "claim start cancel CANCELLED delete",
        [S.PENDING, S.CLAIMED, S.RUNNING, S.CANCELLED, S.DELETED],
    ),
    "handed back": ("claim RETURNED", [S.PENDING, S.CLAIMED, S.PENDING]),
    "node died": ("claim start recover", [S.PENDING, S.CLAIMED, S.RUNNING, S.PENDING]),
    "deferred and cancelled": (
        "claim start DEFER cancel",
        [S.PENDING, S.CLAIMED, S.RUNNING, S.SCHEDULED, S.CANCELLED],
    ),
    "held and deleted": (
        "claim start HOLD delete",
        [S.PENDING, S.CLAIMED, S.RUNNING, S.HELD, S.DELETED],
    ),
}


@pytest.mark.parametrize("life", LIVES)
def test_a_life_goes_by_the_table(observed: Observed, life: str) -> None:
    steps, path = LIVES[life]
    job = observed.watch(observed.submit_one("patient"))

    assert _walk(observed, job, steps) == path


def _run_seen(site: Observed, job: int) -> Lease:
    lease = site.claim_one()
    assert lease.job_id == job
    site.look()
    site.start(lease)
    site.look()
    return lease


def test_a_parents_life_goes_by_the_table(observed: Observed) -> None:
    parent = observed.watch(observed.submit_one("batch"))
    lease = _run_seen(observed, parent)
    (child,) = observed.spawn(lease)
    observed.pass_(lease)
    observed.look()
    observed.fail(_run_seen(observed, child))
    observed.look()
    observed.pass_(_run_seen(observed, parent))
    observed.look()
    observed.retry(child)
    observed.look()
    observed.pass_(_run_seen(observed, child))
    observed.look()
    observed.pass_(_run_seen(observed, parent))
    observed.look()

    assert observed.seen == {parent: State.COMPLETED, child: State.COMPLETED}


def test_an_orphans_life_goes_by_the_table(observed: Observed) -> None:
    observed.knows(kind("fragile", "work", on_lost="orphan"))
    job = observed.watch(observed.submit_one("fragile"))

    path = _walk(observed, job, "claim start recover delete")

    assert path == [S.PENDING, S.CLAIMED, S.RUNNING, S.ORPHANED, S.DELETED]
