"""Taking a lock away, as every surface asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.words import USUAL, Clock, Site
from new_store import new_store
from spinney.commands.control import Control
from spinney.features.locks.commands import FreeLock
from spinney.model.errors import BadName, Refused
from spinney.store.sql import open_store

LOCK = "receiver:SG-1"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Job 1 has the lock; job 2 waits for it."""
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(*USUAL)
    made.submit("locked", {"serno": "SG-1"}, {"serno": "SG-1"})
    made.claim()
    yield made
    store.close()


@pytest.fixture
def wakeups() -> list[str]:
    return []


@pytest.fixture
def control(site: Site, wakeups: list[str]) -> Control:
    return Control(
        store=site.store, clock=lambda: site.now, wake_nodes=lambda: wakeups.append("now"), by="ann"
    )


def test_who_waits_goes_on_and_nodes_are_woken(control: Control, site: Site, wakeups: list[str]) -> None:
    assert control.do(FreeLock(name=LOCK, reason="it was rebooted")).lost == 1

    assert [lease.job_id for lease in site.claim()] == [2]
    assert wakeups == ["now"]


def test_it_is_audited_in_somebodys_name_with_the_reason(control: Control, site: Site) -> None:
    control.do(FreeLock(name=LOCK, reason="it was rebooted", job=1))

    ((entry, _),) = site.store.audit.entries()
    assert (entry.by, entry.verb, entry.reason, entry.at_us) == ("ann", "unlock", "it was rebooted", site.now)
    assert entry.call


@pytest.mark.parametrize("reason", ["", "two\nlines", "x" * 501])
def test_a_reason_is_asked_for(control: Control, wakeups: list[str], reason: str) -> None:
    with pytest.raises(BadName, match="cannot be a reason"):
        control.do(FreeLock(name=LOCK, reason=reason))

    assert wakeups == []


def test_what_is_refused_wakes_nobody(control: Control, wakeups: list[str]) -> None:
    with pytest.raises(Refused, match="no job has the lock"):
        control.do(FreeLock(name="receiver:SG-2", reason="gone"))

    assert wakeups == []
