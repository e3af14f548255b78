"""An external worker that is no node, over the API."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from contract.words import kind, stage
from spinney.features.external import api as external_output
from spinney.features.jobs.commands import CancelJob
from spinney.folders import folders
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import Refused
from spinney.model.states import State
from spinney.model.types import Isolation

from ..conftest import World

API = "/api/v1/external"
EAR = {"type": "talk", "stage": "listen"}


@pytest.fixture
def external_worker(world: World) -> TestClient:
    """Who may claim talks, and is a viewer else."""
    ear = stage("listen", isolation=Isolation.EXTERNAL, timeout_s=60.0)
    world.site.knows(kind("talk", ear, "keep"), kind("part", "work"))
    world.rights["ear"] = Rights(role=Role.SUBMITTER, external=("talk",))
    world.rights["other"] = Rights(role=Role.ADMIN, external=("*",))
    return world.client("ear")


def join(client: TestClient, **fields: Any) -> str:
    answer = client.post(API, json={"name": "ear-1", "lanes": [EAR], "slots": 4, **fields})
    assert answer.status_code == 201, answer.text
    key: str = answer.json()["external_worker"]
    return key


def claim(client: TestClient, key: str, seen: int = 0, limit: int = 1) -> dict[str, Any]:
    answer = client.post(f"{API}/{key}/claim", json={"seen": seen, "limit": limit})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def at(key: str, work: dict[str, Any], verb: str) -> str:
    return f"{API}/{key}/attempts/{work['job_id']}/{work['fence']}/{verb}"


def test_a_party_joins_claims_lives_settles_and_leaves(external_worker: TestClient, world: World) -> None:
    job = world.submit("talk", {"file": "a.wav"})
    answer = external_worker.post(API, json={"name": "ear-1", "lanes": [EAR], "lease_s": 30})
    assert answer.status_code == 201
    joined = answer.json()
    assert (joined["lanes"], joined["heartbeat_every_s"], joined["owner"]) == ([EAR], 10, "ear")
    key = joined["external_worker"]

    claimed = claim(external_worker, key)
    (work,) = claimed["work"]
    assert (work["job_id"], work["params"], work["timeout_s"]) == (job, {"file": "a.wav"}, 60)
    assert world.client("viewer").get(f"/api/v1/jobs/{job}").json()["node"] == "external:ear-1"

    heartbeat = external_worker.post(
        f"{API}/{key}/heartbeat", json={"seen": claimed["seen"], "fences": [work["fence"]]}
    ).json()
    assert heartbeat == {"yours": [work["fence"]], "cancel": [], "lost": [], "unheard": 0}

    settled = external_worker.post(at(key, work, "settle"), json={"outcome": "ok", "result": {"words": 3}})
    assert (settled.status_code, settled.content) == (204, b"")
    assert world.store.results(job) == {"listen": {"words": 3}}
    assert external_worker.delete(f"{API}/{key}").json() == {"jobs": []}
    assert external_worker.post(f"{API}/{key}/claim", json={"seen": 0}).status_code == 409


def test_what_an_attempt_may_ask_while_it_runs(external_worker: TestClient, world: World) -> None:
    job = world.submit("talk")
    key = join(external_worker)
    (work,) = claim(external_worker, key)["work"]

    assert (
        external_worker.post(at(key, work, "progress"), json={"fraction": 0.5, "message": "half"}).status_code
        == 204
    )
    assert (
        external_worker.put(at(key, work, "data"), json={"name": "words", "value": ["a"]}).status_code == 204
    )
    assert external_worker.post(at(key, work, "data"), json={"name": "words", "value": "b"}).json() == {
        "length": 2
    }
    assert external_worker.post(at(key, work, "lock"), json={"name": "desk"}).json() == {"taken": True}
    born = external_worker.post(at(key, work, "spawn"), json={"jobs": [{"type": "part", "params": {}}]})
    assert born.status_code == 201
    assert external_worker.post(at(key, work, "settle"), json={"outcome": "ok"}).status_code == 204

    assert world.store.get_data(job) == {"words": ["a", "b"]}
    assert [child.id for child in world.store.children(job)] == born.json()["ids"]


def test_what_a_party_prints_is_kept_where_the_output_of_attempts_is(
    external_worker: TestClient, world: World
) -> None:
    job = world.submit("talk")
    key = join(external_worker)
    (work,) = claim(external_worker, key)["work"]
    for stream, text in (("stdout", "one\n"), ("stderr", "<b>oh</b>\n"), ("stdout", "zwei 🌲\n")):
        answer = external_worker.post(at(key, work, "output"), json={"stream": stream, "text": text})
        assert answer.json() == {"kept_bytes": len(text.encode())}

    own = world.folder(job) / ".spinney"
    assert (own / f"listen.{work['fence']}.stdout").read_text() == "one\nzwei 🌲\n"
    assert (own / f"listen.{work['fence']}.stderr").read_text() == "<b>oh</b>\n"
    external_worker.post(at(key, work, "settle"), json={"outcome": "ok"})
    assert external_worker.post(at(key, work, "output"), json={"text": "late"}).status_code == 409


def test_output_is_bounded_and_follows_no_link(tmp_path: Path) -> None:
    folders.write_token(tmp_path, "token")
    assert [external_output.keep(tmp_path, 1, "s.1", "stdout", b"x" * 6, most=10) for _ in range(3)] == [
        6,
        4,
        0,
    ]
    (file,) = tmp_path.rglob("s.1.stdout")
    assert file.read_bytes() == b"x" * 10 + b"\n[spinney: more output was cut here]\n"

    (tmp_path / "elsewhere").write_text("")
    (file.parent / "s.2.stdout").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="cannot be kept"):
        external_output.keep(tmp_path, 1, "s.2", "stdout", b"x")


def test_a_stale_fence_is_a_problem_with_a_sentence(external_worker: TestClient, world: World) -> None:
    world.submit("talk")
    key = join(external_worker)
    (lost,) = claim(external_worker, key)["work"]
    claim(external_worker, key)  # the first answer is taken to be lost, and what it gave goes back

    bodies = {
        "settle": {"outcome": "ok"},
        "output": {"text": "x"},
        "progress": {"fraction": 1},
        "lock": {"name": "x"},
    }
    for verb, body in bodies.items():
        answer = external_worker.post(at(key, lost, verb), json=body)
        assert answer.status_code == 409
        assert answer.json()["type"] == "urn:spinney:problem:stale-fence"
        assert "has lost its lease" in answer.json()["detail"]
    assert world.store.job(lost["job_id"]).state is State.RUNNING


def test_a_wish_to_cancel_is_heard_with_the_next_sign_of_life(
    external_worker: TestClient, world: World
) -> None:
    job = world.submit("talk")
    key = join(external_worker)
    claimed = claim(external_worker, key)
    (work,) = claimed["work"]
    world.control().do(CancelJob(job=job))

    heartbeat = external_worker.post(
        f"{API}/{key}/heartbeat", json={"seen": claimed["seen"], "fences": [work["fence"]]}
    ).json()
    assert heartbeat["cancel"] == [work["fence"]]
    assert external_worker.post(at(key, work, "settle"), json={"outcome": "cancelled"}).status_code == 204
    assert world.store.job(job).state is State.CANCELLED


@pytest.mark.parametrize("who", ["viewer", "submitter", "operator"])
def test_a_role_gives_no_right_to_claim(external_worker: TestClient, world: World, who: str) -> None:
    answer = world.client(who).post(API, json={"name": "x", "lanes": [EAR]})
    assert answer.status_code == 403
    assert "may not claim external stages of job type 'talk'" in answer.json()["detail"]


def test_another_may_not_speak_for_a_party(external_worker: TestClient, world: World) -> None:
    world.submit("talk")
    key = join(external_worker)
    (work,) = claim(external_worker, key)["work"]
    other = world.client("other")

    assert other.post(f"{API}/{key}/claim", json={"seen": 0}).status_code == 404
    assert other.post(at(key, work, "settle"), json={"outcome": "ok"}).status_code == 404
    assert other.delete(f"{API}/{key}").status_code == 404
    assert [p["external_worker"] for p in other.get(API).json()["items"]] == [key]
    assert world.client("submitter").get(API).json()["items"] == []


def test_who_is_limited_to_collections_may_not_join(external_worker: TestClient, world: World) -> None:
    world.rights["lab"] = Rights(
        role=Role.ADMIN, external=("talk",), within=AccessScope(collections=("lab",))
    )
    assert world.client("lab").post(API, json={"name": "x", "lanes": [EAR]}).status_code == 403


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", {"name": "x", "lanes": []}, 422),
        ("", {"name": "x y", "lanes": [EAR]}, 422),
        ("", {"name": "x", "lanes": [{"type": "talk", "stage": "keep"}]}, 422),
        ("", {"name": "x", "lanes": [{"type": "walk", "stage": "keep"}]}, 403),
        ("", {"name": "x", "lanes": [EAR], "lease_s": 1}, 422),
        ("/{key}/claim", {}, 422),
        ("/{key}/claim", {"seen": -1}, 422),
        ("/{key}/claim", {"seen": "0"}, 422),
        ("/9-9/claim", {"seen": 0}, 404),
        ("/x/claim", {"seen": 0}, 404),
        ("/{key}/heartbeat", {"seen": 0, "fences": [0]}, 422),
        ("/{key}/attempts/{job}/{fence}/settle", {"outcome": "lost"}, 422),
        ("/{key}/attempts/{job}/{fence}/settle", {"outcome": "error", "result": 1}, 422),
        ("/{key}/attempts/{job}/{fence}/settle", {"outcome": "ok", "result": "x" * 70_000}, 422),
        ("/{key}/attempts/{job}/{fence}/settle", {"outcome": "cancelled"}, 409),
        ("/{key}/attempts/{job}/{fence}/spawn", {"jobs": [{"type": "nothing"}]}, 422),
        ("/{key}/attempts/{job}/{fence}/spawn", {"jobs": [{"queue": "x"}]}, 422),
        ("/{key}/attempts/{job}/{fence}/spawn", {"jobs": [{"type": "part", "key": 7}]}, 422),
        ("/{key}/attempts/{job}/{fence}/data", {"name": "x", "value": 1, "of": "parent"}, 409),
        ("/{key}/attempts/{job}/{fence}/progress", {"fraction": 2}, 422),
        ("/{key}/attempts/1/1/lock", {"name": "../x"}, 409),
    ],
)
def test_what_cannot_be_is_refused_and_told(
    external_worker: TestClient, world: World, path: str, body: dict[str, Any], status: int
) -> None:
    world.submit("one")
    world.submit("talk")
    key = join(external_worker)
    (work,) = claim(external_worker, key)["work"]
    answer = external_worker.post(
        API + path.format(key=key, job=work["job_id"], fence=work["fence"]), json=body
    )
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"]
