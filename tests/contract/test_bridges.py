"""Links and reports of bridges to other systems."""

import pytest

from spinney.model.bridges import Link
from spinney.model.errors import NoSuch, Refused
from spinney.model.rights.actor import Actor

from .words import Site

ANN = Actor(by="ann", call="c1")
OAK = "disbatch:mail:oak"


def test_links_follow_their_claims(site: Site) -> None:
    bridges = site.store.bridges
    bridges.link(OAK, [("a", "1"), ("b", "1")])
    bridges.name_jobs(OAK, [("a", "1", 7), ("b", "0", 8)])  # the latter is of a claim that has ended
    bridges.advance(OAK, [("a", "1", "running")])
    bridges.link(OAK, [("a", "1")])  # once more, after a crash
    expected = [
        Link(entry="a", claim="1", job_id=7, position="running"),
        Link(entry="b", claim="1", job_id=None, position=""),
    ]
    assert bridges.links(OAK) == expected

    bridges.link(OAK, [("a", "2")])  # taken again over there
    bridges.advance(OAK, [("a", "1", None), ("b", "1", None)])

    assert bridges.links(OAK) == [Link(entry="a", claim="2", job_id=None, position="")]
    assert bridges.links("disbatch:mail:elm") == []


def test_a_bridge_reports_and_is_forgotten(site: Site) -> None:
    bridges = site.store.bridges
    bridges.take(OAK, "disbatch", "one", now_us=site.now)
    bridges.link(OAK, [("a", "1")])
    bridges.report(OAK, behind=1, behind_since_us=site.now, trouble="it is away", now_us=site.now)
    bridges.report(OAK, behind=0, behind_since_us=None, trouble=None, now_us=site.now + 5)

    (status,) = bridges.statuses()
    assert (status.name, status.links, status.behind, status.seen_us) == (OAK, 1, 0, site.now + 5)
    assert (status.trouble, status.trouble_us, status.in_trouble) == ("it is away", site.now, False)
    bridges.take(OAK, "disbatch", "two", now_us=site.now)
    assert bridges.owner(OAK) == "two"
    mark = bridges.mark(OAK)
    bridges.take(OAK, "disbatch", "three", now_us=site.now)
    assert bridges.mark(OAK) == mark

    with pytest.raises(Refused, match="just reported"):
        bridges.forget(OAK, ANN, now_us=site.now + 59_000_000)
    later = site.now + 61_000_000
    bridges.forget(OAK, ANN, now_us=later)

    assert (bridges.statuses(), bridges.links(OAK), bridges.owner(OAK)) == ([], [], None)
    with pytest.raises(NoSuch, match="spinney bridges"):
        bridges.forget(OAK, ANN, now_us=later)
    with pytest.raises(NoSuch, match="spinney bridges"):
        bridges.mark(OAK)
