"""Inboxes: one node looks into each, and a drop becomes one job, however often somebody comes back to it."""

import functools
import json
from dataclasses import replace
from typing import Any

import pytest

from spinney.model.errors import BadName, BadParameters, Forbidden, NoSuch, Refused, UnknownType, UsageError
from spinney.model.rights.actor import Actor
from spinney.model.settings.inboxes import Arrival, ArrivalOutcome, Drop, Duplicates, Inbox, Kind
from spinney.model.states import State

from .behind import damage
from .words import Site, kind, locked, stage

ANN = Actor(by="ann", call="c1")


@pytest.fixture(autouse=True)
def types(site: Site) -> None:
    schema = {"type": "object", "properties": {"file": {"type": "string"}, "n": {"type": "integer"}}}
    site.knows(kind("read", "work", schema=schema), kind("plain", "work"))


def put(site: Site, name: str = "uploads", **fields: Any) -> Inbox:
    inbox = Inbox(name=name, **{"folder": f"/srv/{name}", "type": "read"} | fields)
    return site.store.inboxes.put(inbox, ANN, now_us=site.now)


def drop(name: str = "a.zip", sha256: str = "aa", **fields: Any) -> Drop:
    usual = {"kind": Kind.FILE, "size": 3, "identity": "3:1", "owner": "bob", "dropped_us": 1}
    return Drop(name=name, sha256=sha256, **usual | fields)


def arrive(site: Site, what: Drop, node: int | None = None) -> Arrival:
    node = site.here.id if node is None else node
    assert site.store.inboxes.serve("uploads", node, now_us=site.now)
    return site.store.inboxes.arrive("uploads", what, node, now_us=site.now)


def finish(site: Site, arrival: Arrival) -> None:
    site.store.inboxes.finish(arrival.id, now_us=site.now)


# --- what people decide --------------------------------------------------------------------------


def test_an_inbox_is_put_replaced_paused_and_removed(site: Site) -> None:
    made = put(site, params={"n": 1}, options={"queue": "late"}, rest_s="1m", host="elm")
    assert (made.by, made.rest_s, made.node, made.duplicates) == ("ann", 60.0, None, Duplicates.REFUSE)
    with pytest.raises(Refused, match="--replace"):
        site.store.inboxes.put(made, ANN, replace=False, now_us=site.now)

    site.store.inboxes.pause("uploads", ANN, paused=True, now_us=site.now)
    assert put(site, duplicates="accept").paused
    with pytest.raises(Refused, match="paused"):
        site.store.inboxes.scan("uploads", ANN, now_us=site.now)
    site.store.inboxes.pause("uploads", ANN, paused=False, now_us=site.now)
    assert site.store.inboxes.scan("uploads", ANN, now_us=site.now).scan_us == site.now
    (only,) = site.store.inboxes.all()
    assert (only.paused, only.duplicates, only.params) == (False, Duplicates.ACCEPT, {})

    site.store.inboxes.remove("uploads", ANN, now_us=site.now)
    assert not site.store.inboxes.all()
    with pytest.raises(NoSuch):
        site.store.inboxes.remove("uploads", ANN, now_us=site.now)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"folder": "srv/in"}, UsageError),
        ({"folder": "/"}, UsageError),
        ({"folder": "/srv/../etc"}, UsageError),
        ({"folder": "/srv/in/"}, UsageError),
        ({"folder": "/srv/i\nn"}, UsageError),
        ({"name": "a/b"}, BadName),
        ({"rest_s": -1}, UsageError),
        ({"duplicates": "perhaps"}, UsageError),
        ({"options": {"at": 3}}, UsageError),
        ({"type": "nothing"}, UnknownType),
    ],
)
def test_what_cannot_be_an_inbox_is_refused(site: Site, fields: dict[str, Any], error: type) -> None:
    with pytest.raises(error):
        put(site, **fields)
    assert not site.store.inboxes.all()


def test_a_folder_has_one_inbox_on_a_host(site: Site) -> None:
    put(site)
    with pytest.raises(Refused, match="uploads"):
        put(site, "other", folder="/srv/uploads")
    with pytest.raises(Refused, match=r"uploads.*--host"):
        put(site, "other", folder="/srv/uploads", host="elm")
    put(site, host="oak")
    assert put(site, "other", folder="/srv/uploads", host="elm").host == "elm"
    assert put(site, host="oak", rest_s=1).rest_s == 1


@pytest.mark.parametrize("folder", ["/srv/uploads/sub", "/srv"])
def test_no_folder_of_an_inbox_is_inside_another_one_on_a_host(site: Site, folder: str) -> None:
    put(site, host="oak")
    put(site, "beside", folder="/srv/uploads2", host="oak")

    for host in (None, "oak"):
        with pytest.raises(Refused, match="neither that one, nor inside it"):
            put(site, "other", folder=folder, host=host)

    assert put(site, "other", folder=folder, host="elm").host == "elm"


def test_inboxes_of_an_earlier_version_that_overlap_can_be_changed_where_they_are(site: Site) -> None:
    # Given two inboxes that an earlier version allowed to have one folder on elm
    put(site)
    put(site, "other", folder="/srv/other", host="elm")
    damage(
        site.store,
        "update inboxes set spec = replace(spec, '/srv/other', '/srv/uploads') where name = 'other'",
    )
    # When anything but the folder and the host changes, then it is changed
    assert put(site, rest_s=1).rest_s == 1
    assert put(site, "other", folder="/srv/uploads", host="elm", rest_s=2).rest_s == 2
    # When the folder changes, then it must be apart from the other one, as always
    with pytest.raises(Refused, match="neither that one, nor inside it"):
        put(site, folder="/srv/uploads/sub")
    assert put(site, host="oak").host == "oak"


# --- one node ----------------------------------------------------------------------------------


def test_one_active_node_looks_into_an_inbox(site: Site) -> None:
    put(site)
    serve = functools.partial(site.store.inboxes.serve, now_us=site.now)
    oak, ash = site.node("oak"), site.node("ash")

    assert [serve("uploads", oak.id), serve("uploads", ash.id), serve("uploads", oak.id)] == [
        True,
        False,
        True,
    ]
    assert site.store.inboxes.all()[0].node == "oak"
    with pytest.raises(Refused):
        site.store.inboxes.arrive("uploads", drop(), ash.id, now_us=site.now)

    site.store.inboxes.report("uploads", oak.id, "the disk is full")
    assert site.store.inboxes.all()[0].problem == "the disk is full"
    site.store.update_node(oak.id, state="draining", now_us=site.now)
    assert not serve("uploads", oak.id)
    assert serve("uploads", ash.id)
    assert (site.store.inboxes.all()[0].node, site.store.inboxes.all()[0].problem) == ("ash", None)
    assert not serve("uploads", ash.id, leave=True)
    assert site.store.inboxes.all()[0].node is None
    assert not serve("nothing", ash.id)


# --- one job -----------------------------------------------------------------------------------


def test_a_drop_reads_the_inbox_that_it_came_into_and_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("uploads", "scans", "letters"):
        put(site, name)
    names: list[str] = []
    read = Inbox.from_json

    def noted(name: str, *args: Any, **fields: Any) -> Inbox:
        names.append(name)
        return read(name, *args, **fields)

    monkeypatch.setattr(Inbox, "from_json", noted)

    arrive(site, drop())

    assert set(names) == {"uploads"}


def test_a_drop_becomes_a_job_that_is_held_until_its_file_is_there(site: Site) -> None:
    put(site, params={"n": 2}, options={"collection": "birds"})
    arrival = arrive(site, drop())

    job = site.job(arrival.job_id or 0)
    assert (job.state, job.submitter, job.collection) == (State.HELD, "bob", "birds")
    assert job.params == {"n": 2, "file": "a.zip"}
    facts = {"name": "a.zip", "kind": "file", "size": 3, "sha256": "aa", "owner": "bob", "dropped_us": 1}
    assert site.store.get_data(job.id)["inbox"] == {"inbox": "uploads", **facts}
    assert site.claim() == []
    assert site.store.inboxes.unfinished("uploads") == [arrival]

    finish(site, arrival)
    finish(site, arrival)

    assert [lease.job_id for lease in site.claim()] == [job.id]
    assert site.store.inboxes.unfinished("uploads") == []
    (seen,) = site.store.inboxes.arrivals("uploads")
    assert seen == replace(arrival, outcome=ArrivalOutcome.TAKEN)


def test_a_type_without_that_parameter_gets_none_and_the_submitter_may_be_set(site: Site) -> None:
    put(site, type="plain", options={"submitter": "carl"})
    job = site.job(arrive(site, drop()).job_id or 0)
    assert (job.params, job.submitter) == ({}, "carl")


def test_who_comes_back_gets_the_arrival_that_is_open(site: Site) -> None:
    put(site)
    first = arrive(site, drop())
    site.store.update_node(site.here.id, state="draining", now_us=site.now)

    assert arrive(site, drop(sha256="bb", identity="4:2"), site.node("ash").id) == first
    assert len(site.ids()) == 1
    finish(site, first)
    second = site.store.inboxes.arrive(
        "uploads", drop(sha256="bb"), site.store.inboxes.all()[0].node_id or 0, now_us=site.now
    )
    assert second.id != first.id
    assert len(site.ids()) == 2


def test_bytes_that_came_before_are_refused_or_accepted(site: Site) -> None:
    put(site)
    first = arrive(site, drop())
    finish(site, first)

    again = arrive(site, drop("b.zip"))
    assert (again.outcome, again.job_id) == (ArrivalOutcome.REJECTING, None)
    assert again.reason == f"its bytes came before, as 'a.zip' of bob, and became job {first.job_id}"
    finish(site, again)
    assert [a.outcome for a in site.store.inboxes.arrivals("uploads")] == [
        ArrivalOutcome.REJECTED,
        ArrivalOutcome.TAKEN,
    ]
    assert [a.id for a in site.store.inboxes.arrivals("uploads", outcome=ArrivalOutcome.REJECTED)] == [
        again.id
    ]
    assert [a.id for a in site.store.inboxes.arrivals("uploads", before=again.id)] == [first.id]

    put(site, duplicates="accept")
    assert arrive(site, drop("c.zip")).outcome is ArrivalOutcome.TAKING


def test_what_has_a_fault_is_rejected_and_blocks_no_later_bytes(site: Site) -> None:
    put(site)
    bad = arrive(site, drop("l", sha256=None, kind=Kind.OTHER, fault="it is a link"))
    assert (bad.outcome, bad.reason, bad.job_id) == (ArrivalOutcome.REJECTING, "it is a link", None)
    finish(site, bad)
    assert site.ids() == []


def test_one_whose_name_names_no_lock_is_rejected_and_does_not_keep_the_others(site: Site) -> None:
    schema = {"type": "object", "properties": {"file": {"type": "string"}}}
    site.knows(kind("read", stage("work", locks=locked("file:{file}")), schema=schema))
    put(site)
    bad = arrive(site, drop("a(1).zip"))
    assert (bad.outcome, bad.job_id) == (ArrivalOutcome.REJECTING, None)
    assert "'file:a(1).zip' cannot name a lock" in (bad.reason or "")
    assert arrive(site, drop("b.zip", sha256="bb")).outcome is ArrivalOutcome.TAKING


def test_what_would_keep_every_drop_out_rejects_none(site: Site) -> None:
    """Given a type whose lock is named by a parameter that the inbox does not give, then the drop is not at fault."""
    put(site)
    site.knows(kind("read", stage("work", locks=locked("receiver:{serno}"))))
    with pytest.raises(BadParameters, match="'serno' is missing"):
        arrive(site, drop())
    assert not site.store.inboxes.arrivals("uploads")


def test_a_drop_that_is_withdrawn_cancels_its_job_and_is_no_duplicate(site: Site) -> None:
    put(site)
    gone = arrive(site, drop())
    assert site.store.inboxes.is_wanted(gone)

    site.store.inboxes.withdraw(replace(gone, reason="it was removed"), now_us=site.now)

    assert site.state(gone.job_id or 0) is State.CANCELLED
    assert not site.store.inboxes.is_wanted(gone)
    (open_,) = site.store.inboxes.unfinished("uploads")
    assert (open_.outcome, open_.reason) == (ArrivalOutcome.REJECTING, "it was removed")
    finish(site, open_)
    assert arrive(site, drop()).outcome is ArrivalOutcome.TAKING


def test_an_operators_hold_outlasts_the_one_of_the_inbox(site: Site) -> None:
    put(site)
    arrival = arrive(site, drop())
    job = arrival.job_id or 0
    site.store.holds.lay("job", str(job), "looking", ANN, now_us=site.now)
    finish(site, arrival)
    assert site.state(job) is State.HELD
    assert [hold.reason for hold in site.store.holds.covering(job)] == ["looking"]


def test_an_inbox_is_neither_removed_nor_moved_while_something_is_taken(site: Site) -> None:
    put(site)
    arrival = arrive(site, drop())
    with pytest.raises(Refused, match="being taken"):
        site.store.inboxes.remove("uploads", ANN, now_us=site.now)
    with pytest.raises(Refused, match="being taken"):
        put(site, folder="/srv/elsewhere")
    finish(site, arrival)
    assert put(site, folder="/srv/elsewhere").folder == "/srv/elsewhere"


def test_one_that_cannot_be_read_is_replaced_only_as_any_other_and_can_be_removed(site: Site) -> None:
    put(site)
    arrival = arrive(site, drop())
    damage(site.store, "update inboxes set spec = ?, paused = 1", '{"folder": 3}')
    elsewhere = Inbox(name="uploads", folder="/srv/elsewhere", type="read")

    with pytest.raises(Refused, match=r"by ann; .*--replace"):
        site.store.inboxes.put(elsewhere, ANN, replace=False, now_us=site.now)
    with pytest.raises(Refused, match="being taken"):
        site.store.inboxes.put(elsewhere, ANN, now_us=site.now)
    with pytest.raises(Refused, match="being taken"):
        site.store.inboxes.remove("uploads", ANN, now_us=site.now)
    with pytest.raises(UsageError, match="cannot be read"):
        site.store.inboxes.pause("uploads", ANN, paused=False, now_us=site.now)

    finish(site, arrival)
    assert site.store.inboxes.put(elsewhere, ANN, now_us=site.now).paused
    damage(site.store, "update inboxes set spec = ?", '{"folder": 3}')
    site.store.inboxes.remove("uploads", ANN, now_us=site.now)
    assert site.store.inboxes.put(elsewhere, ANN, replace=False, now_us=site.now).folder == "/srv/elsewhere"


def test_a_paused_inbox_takes_nothing(site: Site) -> None:
    put(site, paused=True)
    with pytest.raises(Refused):
        arrive(site, drop())
    assert site.ids() == []


def test_nothing_is_taken_for_a_maker_who_has_lost_the_right(site: Site) -> None:
    inbox = Inbox(name="uploads", folder="/srv/uploads", type="read")
    gone = Actor(by="eve", call="c2", account="eve")  # there is no such account any more
    site.store.inboxes.put(inbox, gone, now_us=site.now)
    with pytest.raises(Forbidden, match="eve"):
        arrive(site, drop())

    site.store.inboxes.pause("uploads", ANN, paused=True, now_us=site.now)
    site.store.inboxes.pause("uploads", ANN, paused=False, now_us=site.now)

    assert site.store.inboxes.all()[0].by == "ann"
    assert arrive(site, drop()).outcome is ArrivalOutcome.TAKING


def test_what_is_done_to_an_inbox_is_in_the_audit_without_secrets(site: Site) -> None:
    site.knows(
        kind("secretive", "work", schema={"properties": {"pin": {"type": "string", "writeOnly": True}}})
    )
    put(site, type="secretive", params={"pin": "s3cret"})
    site.store.inboxes.scan("uploads", ANN, now_us=site.now)
    site.store.inboxes.remove("uploads", ANN, now_us=site.now)
    entries = [entry for entry, _ in site.store.audit.entries(limit=10)]
    assert [entry.verb for entry in entries] == ["inbox add", "inbox scan", "inbox remove"]
    assert "s3cret" not in json.dumps([entry.what for entry in entries])
