"""The audit: every operator's verb is in it, by whom and why, in a chain that proves itself."""

import json
from typing import Any

import pytest

from spinney.model.errors import AuditBroken, Refused, UsageError
from spinney.model.operators.audits import BEGINNING, digest
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope

from .words import Site


def hold(site: Site, name: str = "one", by: str = "ann", call: str = "c1", reason: str = "looking") -> None:
    site.store.holds.lay(
        Scope.TYPE, name, reason, Actor(by=by, call=call, reason=reason), until_us=None, now_us=site.now
    )


@pytest.fixture
def audited_site(site: Site) -> Site:
    """Return a site with five audit entries: a call of bob's in two steps, one of ann's between them, and two more
    of ann's."""
    hold(site, "one", call="a1")
    hold(site, "three", by="bob", call="b1", reason="both")
    site.clock.forward(1)
    hold(site, "parent", call="a2")
    hold(site, "batch", by="bob", call="b1", reason="both")
    (first, *_) = site.store.holds.all()
    site.store.holds.lift(first.id, Actor(by="ann", call="a3"), now_us=site.now)
    return site


def numbers(site: Site, **how: Any) -> list[int]:
    return [entry.seq for entry, _ in site.store.audit.entries(**how)]


def test_an_entry_says_who_did_what_when_to_how_many_and_why(site: Site) -> None:
    hold(site)

    ((entry, link),) = site.store.audit.entries()

    assert (entry.seq, entry.at_us, entry.by, entry.verb, entry.count) == (1, site.now, "ann", "hold", 1)
    assert (entry.reason, entry.call) == ("looking", "c1")
    assert json.loads(entry.what)["name"] == "one"
    assert link == digest(BEGINNING, entry)


def test_verbs_on_single_jobs_are_in_it(site: Site) -> None:
    job = site.submit_one()
    site.cancel(job)
    site.retry(job)
    site.cancel(job)
    site.delete(job)

    assert [e.verb for e, _ in site.store.audit.entries()] == ["cancel", "retry", "cancel", "delete"]
    assert {e.by for e, _ in site.store.audit.entries()} == {"ann"}


def test_what_was_refused_is_not(site: Site) -> None:
    job = site.submit_one()
    with pytest.raises(Refused):
        site.delete(job)

    assert site.store.audit.head() == f"0:{BEGINNING}"


def test_entries_are_read_either_way_a_page_at_a_time(audited_site: Site) -> None:
    assert numbers(audited_site) == [1, 2, 3, 4, 5]
    assert numbers(audited_site, after=2, limit=2) == [3, 4]
    assert numbers(audited_site, newest=True, limit=2) == [5, 4]
    assert numbers(audited_site, newest=True, after=4) == [3, 2, 1]
    assert numbers(audited_site, after=5) == []


def test_entries_of_one_verb_or_person_are_asked_for(audited_site: Site) -> None:
    assert numbers(audited_site, verb="release") == [5]
    assert numbers(audited_site, by="bob") == [2, 4]
    assert numbers(audited_site, by="bob", verb="release") == []
    assert numbers(audited_site, by="ann", newest=True, limit=2) == [5, 3]


def test_the_steps_of_a_call_are_put_together(audited_site: Site) -> None:
    calls = audited_site.store.audit.calls()

    assert [(c.first, c.last, c.by, c.verb, c.steps, c.count) for c in calls] == [
        (1, 1, "ann", "hold", 1, 1),
        (2, 4, "bob", "hold", 2, 2),
        (3, 3, "ann", "hold", 1, 1),
        (5, 5, "ann", "release", 1, 1),
    ]
    bob = calls[1]
    assert (bob.until_us - bob.at_us, bob.reason, json.loads(bob.what)["name"]) == (
        1_000_000,
        "both",
        "three",
    )


def test_two_verbs_of_one_call_are_two(site: Site) -> None:
    hold(site, "one", call="both")
    (laid,) = site.store.holds.all()
    site.store.holds.lift(laid.id, Actor(by="ann", call="both"), now_us=site.now)

    assert [(c.first, c.last, c.verb, c.steps) for c in site.store.audit.calls()] == [
        (1, 1, "hold", 1),
        (2, 2, "release", 1),
    ]


def test_a_call_is_told_whole_wherever_a_page_ends(audited_site: Site) -> None:
    def firsts(**how: Any) -> list[int]:
        return [c.first for c in audited_site.store.audit.calls(**how)]

    assert firsts(after=1, limit=1) == [2]
    assert audited_site.store.audit.calls(after=1, limit=1)[0].count == 2
    assert firsts(after=2) == [3, 5], "what began before is not told again"
    assert firsts(newest=True, limit=2) == [5, 3]
    assert firsts(newest=True, after=3) == [2, 1]
    assert firsts(by="bob") == [2]
    assert firsts(verb="release") == [5]


def test_the_chain_is_proven_with_and_without_a_head(audited_site: Site) -> None:
    assert audited_site.store.audit.verify() == 5
    assert audited_site.store.audit.verify(audited_site.store.audit.head()) == 5


def test_an_earlier_head_proves_what_stood_then(site: Site) -> None:
    hold(site, "one")
    head = site.store.audit.head()
    hold(site, "three")

    assert site.store.audit.verify(head) == 2
    assert site.store.audit.verify(f"0:{BEGINNING}") == 2


def test_a_head_that_is_of_no_entry_here_is_told(audited_site: Site) -> None:
    number, _, link = audited_site.store.audit.head().partition(":")

    for wrong, says in (
        (f"{number}:{'0' * 64}", "was rewritten"),
        (f"0:{link}", "was rewritten"),
        (f"{int(number) + 1}:{link}", "was cut off"),
    ):
        with pytest.raises(AuditBroken, match=says):
            audited_site.store.audit.verify(wrong)


@pytest.mark.parametrize(
    "head", ["", "5", "5:abc", "x:" + "0" * 64, "-1:" + "0" * 64, "5:" + "Z" * 64, "9" * 99 + ":" + "0" * 64]
)
def test_what_is_no_head_is_a_mistake(audited_site: Site, head: str) -> None:
    with pytest.raises(UsageError, match="is no head of an audit"):
        audited_site.store.audit.verify(head)
