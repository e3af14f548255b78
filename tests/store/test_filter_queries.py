"""Lists and counts go different ways through the tables; all of them come to what each job says of itself."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

from contract.everything import Everything, fill
from contract.words import Clock, Site
from new_store import new_store
from spinney.model.errors import NoSuchJob
from spinney.model.jobs import Filter, Job
from spinney.model.states import State
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.read import access_paths
from spinney.store.sql.submit import new_jobs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Everything]]:
    """Something of everything; a call that is still written; and one that is accepted but not put in place."""
    store = open_store(new_store(tmp_path_factory.mktemp("whole") / "x.db"))
    site = Site(store, Clock())
    made = fill(site)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_jobs, "STEP", 2)
        patch.setattr(new_jobs, "SPECIAL_STEP", 2)
        patch.setattr(SqlStore, "_staging_step", lambda self, now_us: None)
        plain = site.submit(n=6, collection="alpha", submitter="ann")
        site.submit(n=3, collection="alpha", submitter="ben", needs=(plain[0],))
        for job in plain[1:3]:  # somebody was there before
            site.cancel(job)
            site.retry(job)
        site.claim(slots=1, lanes={("one", "work")})
        with store.database.write() as tx:
            hidden = tx.take("job", 3)
            tx.run(
                "insert into staging (first_id, last_id, next_id, published, beat_us) values (?, ?, ?, 0, ?)",
                (hidden, hidden + 2, hidden, site.now),
            )
            tx.run(
                "insert into jobs (id, type, state, stage, queue, priority, share, lineage, root_id, params, "
                "created_us, collection, submitter) select ? + n.id - 1, 'one', 'pending', 'work', 'default', 50, 1, "
                "'x' || n.id, ? + n.id - 1, '{}', 1, 'alpha', 'ann' from jobs n where n.id <= 3",
                (hidden, hidden),
            )
    yield site, made
    store.close()


FILTERS: list[dict[str, Any]] = [
    {},
    *[{"states": (state,)} for state in State],
    {"states": ()},
    {"states": (State.PENDING, State.PENDING, State.WAITING)},
    {"states": (State.COMPLETED, State.FAILED, State.CLAIMED)},
    {"type": "one"},
    {"type": "nobody's"},
    {"queue": "default"},
    {"queue": "narrow"},
    {"type": "one", "queue": "narrow"},
    {"stage": "work"},
    {"stage": "first", "type": "three"},
    {"stage": "merge", "states": (State.HELD, State.COMPLETED)},
    {"collection": "alpha"},
    {"collection": "nobody's"},
    {"submitter": "ann"},
    {"submitter": "ann", "type": "one"},
    {"collection": "alpha", "states": (State.PENDING,)},
    {"submitter": "ben", "states": (State.WAITING,)},
    {"collection": "alpha", "states": (State.RUNNING, State.COMPLETED)},
    {"queue": "default", "states": (State.PENDING, State.CLAIMED)},
    {"roots_only": True},
    {"roots_only": True, "type": "one"},
    {"roots_only": True, "states": (State.COMPLETED, State.PENDING)},
    *[
        {where: name}
        for where in ("root_id", "parent_id", "below")
        for name in ("bad batch", "waiting batch")
    ],
    {"parent_id": "bad batch", "states": (State.FAILED,)},
    {"below": "deep root"},
    {"root_id": "deep branch"},
    {"root_id": "deep root", "type": "three"},
    {"parent_id": "rerun parent", "superseded": False},
    {"superseded": False},
    {"superseded": True},
    {"ids": ("failed", "running", "pending", "completed")},
]


@pytest.mark.parametrize("enough", [1, 3, access_paths.ENOUGH], ids=lambda n: f"long is {n}")
@pytest.mark.parametrize("words", FILTERS, ids=str)
def test_every_way_comes_to_the_same(
    whole: tuple[Site, Everything], monkeypatch: pytest.MonkeyPatch, words: dict[str, Any], enough: int
) -> None:
    site, made = whole
    monkeypatch.setattr(access_paths, "ENOUGH", enough)
    which = _meant(site, made, words)
    fits = _fits(site, which)
    wanted = [job.id for job in _all(site) if fits(job)]

    assert [job.id for job in site.store.jobs(which, limit=1000)] == wanted
    assert [job.id for job in site.store.jobs(which, limit=1000, newest=True)] == wanted[::-1]
    assert [job.id for job in site.store.jobs(which, after=20, limit=7)] == [
        job for job in wanted if job > 20
    ][:7]
    assert dict(site.store.counts(which)) == Counter(job.state for job in _all(site) if fits(job))


def test_the_store_has_what_the_ways_differ_in(whole: tuple[Site, Everything]) -> None:
    site, _ = whole
    jobs = _all(site)

    with site.store.database.look() as tx:
        staged = dict(tx.all("select published, count(*) from staging group by published"))
        unplaced = tx.value(
            "select count(*) from jobs join staging s on jobs.id between s.next_id and s.last_id where published = 1 "
            "and jobs.id not in (select job_id from ready)"
        )
    assert {job.state for job in jobs} == set(State)
    assert staged == {0: 2, 1: 2}
    assert unplaced > 5


def _all(site: Site) -> list[Job]:
    differences = []
    with site.store.database.look() as tx:
        last = tx.value("select max(id) from jobs")
    for number in range(1, last + 1):
        try:
            differences.append(site.store.job(number))
        except NoSuchJob:
            continue
    return differences


def _meant(site: Site, made: Everything, words: dict[str, Any]) -> Filter:
    """With the numbers of the jobs that are named."""
    numbers = {key: made[words[key]] for key in ("root_id", "parent_id", "below") if key in words}
    if "below" in numbers:
        numbers["below"] = site.job(numbers["below"]).lineage
    if "ids" in words:
        numbers["ids"] = tuple(made[name] for name in words["ids"])
    return Filter(**words | numbers)


def _fits(site: Site, which: Filter) -> Callable[[Job], bool]:
    """What the words of ``Filter`` say, asked of a job as people see it."""
    with site.store.database.look() as tx:
        superseded = {job for (job,) in tx.all("select id from jobs where superseded is not null")}
    predicates = {
        "states": lambda job, states: job.state in states,
        "type": lambda job, name: job.type == name,
        "queue": lambda job, name: job.queue == name,
        "stage": lambda job, name: job.stage == name,
        "collection": lambda job, name: job.collection == name,
        "submitter": lambda job, name: job.submitter == name,
        "root_id": lambda job, root: job.root_id == root,
        "parent_id": lambda job, parent: job.parent_id == parent,
        "roots_only": lambda job, _: job.parent_id is None,
        "below": lambda job, path: job.lineage.startswith(f"{path}."),
        "ids": lambda job, ids: job.id in ids,
        "superseded": lambda job, wanted: (job.id in superseded) is wanted,
    }
    conditions = {
        f.name: getattr(which, f.name) for f in fields(Filter) if getattr(which, f.name) != f.default
    }
    return lambda job: all(predicates[name](job, value) for name, value in conditions.items())


def test_figures_count_what_is_not_in_its_lane_yet(whole: tuple[Site, Everything]) -> None:
    site, _ = whole

    statistics = site.store.statistics.stats(window_s=60, now_us=site.now)

    wanted = Counter((job.queue, job.type, job.stage) for job in _all(site) if job.state is State.PENDING)
    assert {q.queue: q.pending for q in statistics.queues if q.pending} == _summed(wanted, 0)
    assert {s.type: s.pending for s in statistics.stages if s.stage == "work"} == {
        s.type: sum(n for kind, n in wanted.items() if kind[1:] == (s.type, "work"))
        for s in statistics.stages
        if s.stage == "work"
    }


def _summed(counts: Counter[tuple[str, str, str | None]], column: int) -> dict[str | None, int]:
    counter: Counter[str | None] = Counter()
    for kind, n in counts.items():
        counter[kind[column]] += n
    return dict(counter)
