"""A settled tree is assigned to another collection, whatever its size; open ones are not."""

import pytest

from spinney.features.collections.sql import STEP
from spinney.model.errors import NoSuchJob, Refused
from spinney.model.jobs import Filter
from spinney.model.rights.actor import Actor
from spinney.store.parts import Store

from .words import Site, submission

ANN = Actor(by="ann", call="c1", reason="a mistake")


def relabel(site: Site, job: int, collection: str | None) -> int:
    """The steps that it took below the root."""
    site.store.collections.assign(job, collection, ANN, now_us=site.now)
    after: str | None = ""
    steps = 0
    while after is not None:
        after, steps = site.store.collections.assign_below(job, after=after), steps + 1
    return steps


def of(store: Store, collection: str) -> set[int]:
    return set(store.job_lists.find(Filter(collection=collection), limit=2_000))


def test_a_tree_is_assigned_with_all_below_it(site: Site) -> None:
    top = site.submit_one("one", collection="gulls")
    (lease,) = site.claim()
    (child,) = site.spawn(lease)
    site.pass_(lease)
    (below,) = site.claim()
    (grandchild,) = site.spawn(below)
    site.pass_(below)
    site.drain()
    other = site.submit_one("one", collection="gulls")
    assert of(site.store, "gulls") == {top, child, grandchild, other}

    relabel(site, top, "terns")

    assert of(site.store, "terns") == {top, child, grandchild}
    assert of(site.store, "gulls") == {other}
    ((entry, _),) = site.store.audit.entries(newest=True, limit=1)
    assert (entry.verb, entry.by, entry.reason) == ("relabel", "ann", "a mistake")
    relabel(site, top, None)
    assert of(site.store, "terns") == set()


def test_a_large_tree_is_assigned_in_steps(site: Site) -> None:
    top = site.submit_one("one", collection="gulls")
    (lease,) = site.claim()
    site.spawn_all(lease, submission("one", n=STEP + 1))
    site.pass_(lease)
    site.drain()

    assert relabel(site, top, "terns") == 2
    assert len(of(site.store, "terns")) == STEP + 2


def test_an_open_tree_and_a_part_of_one_are_refused(site: Site) -> None:
    top = site.submit_one("one", collection="gulls")
    with pytest.raises(Refused, match="is pending; wait until it has settled"):
        relabel(site, top, "terns")
    (lease,) = site.claim()
    (child,) = site.spawn(lease)
    site.pass_(lease)
    with pytest.raises(Refused, match=f"job {top} is waiting"):
        relabel(site, top, "terns")
    site.drain()
    with pytest.raises(Refused, match=f"name job {top}"):
        relabel(site, child, "terns")
    with pytest.raises(NoSuchJob):
        relabel(site, 4711, "terns")
    assert of(site.store, "terns") == set()
