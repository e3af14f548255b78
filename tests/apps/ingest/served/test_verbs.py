"""Every verb of the service through a server, asked by people of every role, within a collection and beyond it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from httpx import Response
from starlette.testclient import TestClient

import job_verbs
from contract.words import RealClock, Site
from spinney.apps.ingest.inventory import Entry, File
from spinney.apps.ingest.verbs import VERBS
from spinney.model.jobs import Submission
from spinney.model.states import State

from ..access.filled_service import ARK, WHEN
from .conftest import RIGHTS, Served

BELOW = "/api/v1/apps/ingest"
SEEING = ("vic", "ann", "mia", "operator", "admin")
"""Who may look at what belongs to ``maps``; eve may not."""
OPERATING = ("mia", "operator", "admin")


@dataclass(frozen=True)
class House:
    """A service with a batch of ``maps``, handed in by ann, that has two failed objects; and an object in store."""

    served: Served
    bid: str
    job: int
    jid: str

    def ask(self, name: str, verb: str, **arguments: Any) -> Response:
        return ask(self.served, name, verb, **arguments)

    def allowed(self, verb: str, **arguments: Any) -> set[str]:
        """Return the names of those for whom the verb succeeds."""
        answers = {name: self.ask(name, verb, **arguments) for name in RIGHTS}
        assert {answer.status_code for answer in answers.values()} <= {200, 403, 404, 409, 422}, answers
        return {name for name, answer in answers.items() if answer.status_code == 200}


def ask(served: Served, name: str, verb: str, **arguments: Any) -> Response:
    (of,) = [one for one in VERBS if one.name == verb]
    if of.changes:
        return served[name].post(f"{BELOW}/{verb}", json=arguments)
    return served[name].get(f"{BELOW}/{verb}", params=arguments)


def hand_in(served: Served, who: str, **arguments: str) -> Response:
    query = {"name": "map.tif", "profile": "maps", "kind": "file", **arguments}
    return served[who].post(f"{BELOW}/submit", params=query, content=b"some bytes")


@pytest.fixture
def house(served: Served) -> Iterator[House]:
    accepted = hand_in(served, "ann").json()
    served.service.holds({"a": b"1"})
    with served.service.store() as store:
        site = Site(store, RealClock())
        (lease,) = [one for one in site.claim() if one.job_id == accepted["job"]]
        order = {
            "jid": accepted["bid"].replace("bid", "jid"),
            "bid": accepted["bid"],
            "profile": "maps",
            "submitter": "ann",
            "payload": {"kind": "file", "url": "https://example.org/a", "name": "a"},
        }
        submission = Submission(
            type="ingest.object", params=[json.dumps({"order": order})], collection="maps", submitter="ann"
        )
        ids = site.spawn_all(lease, submission)
        store.put_data(lease.job_id, lease.fence, "begun", '"2026-01-01"', lease.job_id)
        site.pass_(lease)
        for child in site.claim():
            site.fail(child)
        assert site.states(ids) == [State.FAILED]
        yield House(served, accepted["bid"], accepted["job"], order["jid"])


# --- looking --------------------------------------------------------------------------------


def test_batches_and_objects_are_seen_within_the_collection(house: House) -> None:
    assert house.allowed("status", batch=house.bid) == set(SEEING)
    assert house.allowed("status", batch=str(house.job)) == set(SEEING)
    assert house.allowed("objects", batch=house.bid) == set(SEEING)
    assert house.allowed("object", object=house.jid) == set(SEEING)
    assert house.allowed("report", batch=house.bid, now=True, form="json") == set(SEEING)

    listed = {name: [b["batch"] for b in house.ask(name, "batches").json()["items"]] for name in RIGHTS}
    assert listed == {name: [house.bid] if name in SEEING else [] for name in RIGHTS}
    body = house.ask("ann", "status", batch=house.bid).json()
    assert (body["submitter"], body["collection"], body["objects"]) == ("ann", "maps", {"failed": 1})


def test_what_is_out_of_sight_is_not_there(house: House) -> None:
    nothing = house.bid[:-4] + ("0000" if house.bid[-4:] != "0000" else "1111")
    for verb, here, elsewhere in (("status", house.bid, nothing), ("status", str(house.job), "999")):
        hidden, missing = house.ask("eve", verb, batch=here), house.ask("eve", verb, batch=elsewhere)
        assert hidden.json()["detail"].replace(here, "N") == missing.json()["detail"].replace(elsewhere, "N")


def test_the_inventory_is_read_within_the_collection(house: House) -> None:
    with house.served.service.inventory() as inventory:
        inventory.record(
            Entry(
                ark="ark:/99999/fk4photo",
                collection="photos",
                owner="x",
                submitter="eve",
                batch_id="bid-2",
                job_id="jid-2",
                version=1,
                created=WHEN,
                storage="main",
                files=[File(path="a", size_bytes=1)],
            )
        )
        for ark in (ARK, "ark:/99999/fk4photo"):
            inventory.audited(ark, WHEN, 1, 1, ["it is torn"])

    for verb, query in (("find", {}), ("find", {"file_name": "a"}), ("fixity", {"damaged": True})):
        collections = {
            name: {f["collection"] for f in house.ask(name, verb, **query).json()["items"]} for name in RIGHTS
        }
        assert collections == {name: {"maps"} for name in ("vic", "ann", "mia")} | {"eve": {"photos"}} | {
            name: {"maps", "photos"} for name in ("operator", "admin")
        }
    assert house.ask("eve", "find", ark=ARK).json()["items"] == []
    assert house.ask("eve", "find", collection="maps").json()["items"] == []
    assert house.ask("eve", "fixity").json()["damaged"] == 1
    assert house.ask("admin", "fixity").json()["damaged"] == 2


def test_profiles_are_seen_within_the_collection(house: House) -> None:
    (house.served.service.settings.profiles / "bad.toml").write_text("collection = 3")

    profiles = {name: [p["name"] for p in house.ask(name, "profiles").json()["items"]] for name in RIGHTS}

    assert profiles["ann"] == profiles["vic"] == ["maps"]
    assert profiles["eve"] == ["photos"]
    assert profiles["operator"] == ["bad", "maps", "photos"]


# --- handing in -----------------------------------------------------------------------------


def test_a_payload_is_handed_in_in_the_own_name_and_by_profiles_in_sight(served: Served) -> None:
    assert {name: hand_in(served, name).status_code for name in RIGHTS} == {
        "ann": 202,
        "mia": 202,
        "vic": 403,
        "eve": 422,
        "operator": 202,
        "admin": 202,
    }
    assert "there is no profile 'maps'; there are: photos" in hand_in(served, "eve").json()["detail"]
    assert hand_in(served, "ann", submitter="librarian").status_code == 403
    assert hand_in(served, "mia", submitter="librarian").status_code == 202
    items = ask(served, "admin", "batches").json()["items"]
    assert [b["submitter"] for b in items] == ["librarian", "admin", "operator", "mia", "ann"]
    assert {b["collection"] for b in items} == {"maps"}
    with served.service.store() as store:
        assert {store.job(b["job"]).submitter == b["submitter"] for b in items} == {True}
    assert len(list(served.service.settings.incoming.iterdir())) == len(items)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"digest": "sha256:" + "0" * 64}, 409),
        ({"digest": "sha256"}, 422),
        ({"name": "../map.tif"}, 422),
        ({"fail_at": "nothing"}, 422),
        ({"profile": "mapps"}, 422),
        ({"kind": "nothing"}, 422),
        ({"colour": "x"}, 422),
    ],
)
def test_a_payload_that_is_refused_leaves_nothing(
    served: Served, arguments: dict[str, str], status: int
) -> None:
    assert hand_in(served, "ann", **arguments).status_code == status
    assert list(served.service.settings.incoming.iterdir()) == []
    assert ask(served, "ann", "batches").json()["items"] == []


# --- operating ------------------------------------------------------------------------------


def test_failed_objects_are_sent_back_by_who_handed_them_in_and_by_operators(house: House) -> None:
    planned = house.ask("ann", "requeue", names=[house.bid], dry_run=True).json()["items"]
    assert [each["would_requeue"] for each in planned] == [1]
    assert house.ask("eve", "requeue", names=[house.bid]).status_code == 409
    assert house.ask("vic", "requeue", names=[house.bid]).status_code == 403
    assert house.ask("ann", "requeue", names=[house.bid]).json()["items"][0]["requeued"] == 1
    assert house.ask("operator", "status", batch=house.bid).json()["objects"] == {"pending": 1}


def test_a_batch_is_deleted_and_all_are_swept_by_operators(house: House) -> None:
    assert house.allowed("sweep", days=0, dry_run=True) == {"operator", "admin"}
    with house.served.service.store() as store:
        Site(store, RealClock()).drain()
    asking = ("vic", "ann", "eve", "mia", "operator")
    answers = {name: house.ask(name, "delete", batch=house.bid, completed=True) for name in asking}
    assert [answer.status_code for answer in answers.values()] == [403, 403, 409, 200, 409]
    assert answers["mia"].json()["deleted"]["bid"] == house.bid


def test_a_collection_is_held_and_released_by_its_operators(house: House) -> None:
    assert house.allowed("hold", collection="maps", reason="counting") == set(OPERATING)
    assert "maps" not in house.ask("eve", "hold", collection="mapps", reason="x").json()["detail"]
    assert house.ask("mia", "hold", collection="photos", reason="x").status_code == 422
    assert house.allowed("release", collection="maps") == {"mia"}  # then there is none any more


def test_what_a_profile_holds_is_let_go_by_operators_alone(served: Served) -> None:
    profile = served.service.settings.profiles / "maps.toml"
    profile.write_text('collection = "maps"\nhold = "a curator looks first"\n')
    bid = hand_in(served, "ann").json()["bid"]

    for name in ("vic", "ann"):
        assert ask(served, name, "release", batch=bid).status_code == 403
    assert ask(served, "eve", "release", batch=bid).status_code == 409
    assert (served.service.settings.held / bid).exists()
    assert ask(served, "mia", "release", batch=bid).json() == {"batch": bid, "under": []}
    assert not (served.service.settings.held / bid).exists()


def test_all_of_it_is_paused_by_operators_without_limits(house: House) -> None:
    assert house.allowed("pause", what="ingest", reason="moving house") == {"operator", "admin"}
    assert house.allowed("unpause", what="ingest") >= {"operator", "admin"}
    assert house.ask("mia", "pause", what="access-small", reason="x").status_code == 403
    assert house.ask("admin", "pause", what="acces-small", reason="x").status_code == 422


# --- packages -------------------------------------------------------------------------------


def test_a_package_is_asked_for_within_the_collection(house: House) -> None:
    assert house.allowed("fetch", ark=ARK) == {"ann", "mia", "operator", "admin"}
    ticket = house.ask("ann", "fetch", ark=ARK).json()
    assert "is not in the inventory" in house.ask("eve", "fetch", ark=ARK).json()["detail"]
    assert house.ask("ann", "fetch", ark=ARK, format="tar", submitter="librarian").status_code == 403
    assert house.allowed("token", token=ticket["token"]) == set(SEEING)
    secret = ticket["token"].partition("-")[2]
    assert secret not in house.served["vic"].get(f"/api/v1/jobs/{ticket['job']}").text
    hidden = house.ask("eve", "token", token=ticket["token"]).json()["detail"]
    assert hidden == house.ask("eve", "token", token="1-" + "0" * 32).json()["detail"]
    with house.served.service.store() as store:
        assert (store.job(ticket["job"]).collection, store.job(ticket["job"]).submitter) == ("maps", "ann")


def test_a_file_is_fetched_within_the_collection(house: House) -> None:
    def response(name: str, **arguments: Any) -> Response:
        return house.served[name].get(f"{BELOW}/file", params={"ark": ARK, "path": "a", **arguments})

    answers = {name: response(name).status_code for name in RIGHTS}
    assert answers == {"vic": 403, "eve": 409, "ann": 200, "mia": 200, "operator": 200, "admin": 200}
    assert "is not in the inventory" in response("eve").json()["detail"]
    answer = response("ann", version=1)
    assert (answer.content, answer.headers["content-length"]) == (b"1", "1")
    assert answer.headers["content-disposition"] == "attachment; filename=\"a\"; filename*=UTF-8''a"
    headers = {"content-type": "application/octet-stream", "x-content-type-options": "nosniff"}
    assert {name: answer.headers[name] for name in headers} == headers
    assert "sandbox" in answer.headers["content-security-policy"]
    wrong = [
        response("ann", **arguments)
        for arguments in ({"version": 9}, {"path": "b"}, {"path": "../a"}, {"ark": "x"})
    ]
    assert [answer.status_code for answer in wrong] == [409] * 4
    assert (
        house.served["ann"].head(f"{BELOW}/file", params={"ark": ARK, "path": "a"}).headers["content-length"]
        == "1"
    )


def test_a_manifest_leads_to_the_files_within_the_collection(house: House) -> None:
    odd = {"a/files/x?y=1&z#.txt": b"odd", "b|c": b"bar"}
    house.served.service.holds(odd, "ark:/99999/fk4odd")

    def response(name: str) -> Response:
        return house.served[name].get(
            f"{BELOW}/manifest", params={"ark": "ark:/99999/fk4odd", "as_json": True}
        )

    assert {name for name in RIGHTS if response(name).status_code == 200} == set(SEEING)
    assert "is not in the inventory" in response("eve").json()["detail"]
    rows = [json.loads(line) for line in response("ann").text.splitlines()][1:-1]
    assert {row["name"]: house.served["ann"].get(row["url"]).content for row in rows} == odd
    assert "archive" not in response("ann").text


def test_a_package_that_failed_for_another_is_made_again(house: House) -> None:
    ticket = house.ask("mia", "fetch", ark=ARK).json()
    with house.served.service.store() as store:
        job_verbs.cancel(store, ticket["job"], tree=False, by="mia", reason=None, now_us=RealClock().now_us)

    again = house.ask("ann", "fetch", ark=ARK).json()

    assert (again["token"], again["status"]) == (ticket["token"], "queued")


# --- the address ----------------------------------------------------------------------------


def test_nobody_unknown_is_answered(served: Served) -> None:
    stranger = TestClient(served["ann"].app, "http://localhost", raise_server_exceptions=False)
    answers = {
        verb.name: stranger.request("POST" if verb.changes else "GET", f"{BELOW}/{verb.name}").status_code
        for verb in VERBS
    }
    assert set(answers.values()) == {401}
    assert stranger.post(f"{BELOW}/submit", content=b"x").status_code == 401


def test_a_server_without_settings_says_so_and_names_no_file(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_INGEST", "/nowhere/ingest.toml")
    answer = ask(served, "admin", "batches")
    assert (answer.status_code, "nowhere" in answer.text) == (409, False)
