"""What a submitter who is limited to one collection sends to a server in order to reach another collection."""

import hashlib
import json
from typing import Any

import orjson
import pytest

import job_verbs
from contract.words import kind
from spinney.apps.ingest import app
from spinney.apps.ingest.deposits.orders import new_bid
from spinney.model.jobs import Filter, Submission

from ..access.filled_service import ARK, SECRET, WHEN
from .conftest import Served

FETCH = "/api/v1/apps/ingest/fetch"
OBJECT = {
    "order": {
        "jid": new_bid().replace("bid", "jid"),
        "bid": new_bid(),
        "profile": "maps",
        "submitter": "librarian",
        "payload": {"kind": "file", "url": "https://example.org/a", "name": "a"},
        "about": {"primary_id": "ark:/99999/fk4abc"},
    }
}
"""A new version of an object of ``maps``, in the name of somebody else."""
ACCESS = {
    "order": {
        "ark": "ark:/99999/fk4abc",
        "version": 1,
        "created": WHEN.isoformat(),
        "storage": "main",
        "files": 1,
        "size_bytes": 1,
        "format": "zip",
        "secret": SECRET,
    }
}
"""A package of an object of ``maps``, under a token that the attacker knows before it is made."""
MAIL = {"sender": "librarian@example.org", "to": ["victim@example.org"], "subject": "x", "text": "x"}
BATCH = {
    "order": {"bid": new_bid(), "profile": "maps", "kind": "file", "name": "a", "submitter": "librarian"}
}
ATTACKS = [
    ("ingest.object", OBJECT),
    ("ingest.access", ACCESS),
    ("reports.mail", MAIL),
    ("ingest.batch", BATCH),
]


@pytest.mark.parametrize("name", ["eve", "operator", "admin"])
@pytest.mark.parametrize(("type_", "params"), ATTACKS)
def test_no_inner_job_is_submitted_through_a_server(
    served: Served, type_: str, params: dict[str, Any], name: str
) -> None:
    own = {"collection": "photos"} if name == "eve" else {}
    lines = json.dumps({"type": type_, "params": params, **own})
    ndjson = {"content-type": "application/x-ndjson"}
    form = {"job": (None, json.dumps({"type": type_, "params": params, **own}), "application/json")}
    schedule = {"type": type_, "params": params, "every_s": 60, "options": own}

    # when
    answers = [
        served[name].post("/api/v1/jobs", json={"type": type_, "params": params, **own}),
        served[name].post("/api/v1/jobs/batch", content=lines, headers=ndjson),
        served[name].post("/api/v1/jobs", files={**form, "file": ("a.txt", b"x")}),
        served[name].put("/api/v1/schedules/mine", json=schedule),
    ]

    # then
    assert [answer.status_code for answer in answers] == [403] * 4
    assert all(type_ in answer.json()["detail"] for answer in answers[:3])
    with served.service.store() as store:
        assert not store.job_lists.find(Filter(), limit=1)


def test_nobody_changes_what_an_inner_job_finds_in_its_folder(served: Served) -> None:
    with served.service.store() as store:
        wanted = Submission(
            type="ingest.object", params=[json.dumps(OBJECT)], collection="maps", submitter="ann"
        )
        (job,) = store.submit([wanted], now_us=1).ids
    answers = {
        name: served[name].put(f"/api/v1/jobs/{job}/files/payload", content=b"x").status_code
        for name in ("eve", "vic", "ann", "mia")
    }
    assert answers == {"eve": 404, "vic": 403, "ann": 403, "mia": 201}


def test_every_job_type_of_the_application_is_internal() -> None:
    assert {name for name, kind in app.types.items() if kind.spec.submit != "internal"} == set()
    assert {"reports.mail", "reports.webhook", "ingest.object"} <= set(app.types)


@pytest.mark.parametrize("guessed", [True, False])
def test_nobody_keeps_others_from_packages_by_taking_the_key_of_their_request(
    served: Served, guessed: bool
) -> None:
    message = orjson.dumps([ARK, 1, "zip", "maps"])
    served.service.holds({"a": b"1"})
    with served.service.store() as store:
        store.register([kind("one", "work")], [])
        key = f"access-{hashlib.sha256(message).hexdigest()[:32]}"  # as it was once made
        if not guessed:
            job = served["ann"].post(FETCH, json={"ark": ARK}).json()["job"]
            key = str(store.job(job).key)
            job_verbs.cancel(store, job, tree=False, by="mia", reason=None, now_us=1)
            job_verbs.delete(store, job, by="mia", now_us=1)
    who = "eve" if guessed else "operator"
    own = {"type": "one", "params": {}, "collection": "photos", "key": key, "forever": True}
    assert served[who].post("/api/v1/jobs", json=own).status_code == 201

    # when
    asking = ("ann", "operator") if guessed else ("operator",)
    answers = [served[name].post(FETCH, json={"ark": ARK}) for name in asking]

    # then
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "queued")] * len(
        asking
    )
    assert len({answer.json()["token"] for answer in answers}) == 1
