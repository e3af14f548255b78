"""Batches and failures over the API."""

from httpx import Response

from spinney.model.outcomes import Outcome

from ..conftest import World


def batch(world: World, objects: int, failing: int = 0, **fields: object) -> tuple[int, list[int]]:
    top = world.site.submit_one("batch", {}, **fields)
    lease = world.site.claim_one()
    children = world.site.spawn(lease, "one", n=objects)
    world.site.pass_(lease)
    for lease in world.site.claim(slots=objects // 2):
        (world.site.fail if lease.job_id in children[:failing] else world.site.pass_)(lease)
    return top, children


def test_batches_are_listed_newest_first_and_single_jobs_are_none(world: World) -> None:
    world.site.submit("one", n=3)
    world.site.drain()
    tops = [batch(world, 4)[0] for _ in range(3)]

    first = world.client("viewer").get("/api/v1/batches", params={"limit": 2}).json()
    second = world.client("viewer").get("/api/v1/batches", params={"limit": 2, "after": first["next"]}).json()

    assert [b["job"]["id"] for b in first["items"] + second["items"]] == tops[::-1]
    assert second["next"] is None


def test_a_batch_tells_how_far_it_is(world: World) -> None:
    top, _ = batch(world, 4)

    shown = world.client("viewer").get(f"/api/v1/batches/{top}").json()

    assert (shown["total"], shown["settled"], shown["progress"]) == (4, 2, 0.5)
    assert shown["counts"] == {"completed": 2, "pending": 2}
    assert shown["eta_us"] is not None


def test_no_end_is_foreseen_for_a_batch_of_which_a_job_is_held(world: World) -> None:
    top, children = batch(world, 4)
    world.client().post(f"/api/v1/jobs/{children[-1]}/hold", json={"reason": "ask the owner"})

    shown = world.client("viewer").get(f"/api/v1/batches/{top}").json()

    assert shown["counts"] == {"completed": 2, "pending": 1, "held": 1}
    assert shown["eta_us"] is None


def test_no_end_is_foreseen_for_a_batch_whose_open_jobs_are_all_scheduled(world: World) -> None:
    top, _ = batch(world, 4)
    first, second = world.site.claim(slots=2)

    world.site.record(first, Outcome.DEFER, delay_s=3600)
    assert world.client("viewer").get(f"/api/v1/batches/{top}").json()["eta_us"] is not None
    world.site.record(second, Outcome.DEFER, delay_s=3600)
    shown = world.client("viewer").get(f"/api/v1/batches/{top}").json()

    assert shown["counts"] == {"completed": 2, "scheduled": 2}
    assert shown["eta_us"] is None


def test_one_batch_has_its_failures_and_its_objects(world: World) -> None:
    top, children = batch(world, 4, failing=1)
    other, _ = batch(world, 4, failing=2)

    shown = world.client("viewer").get(f"/api/v1/batches/{top}").json()
    failed = world.client("viewer").get(f"/api/v1/batches/{top}/objects", params={"state": "failed"}).json()
    page = world.client("viewer").get(f"/api/v1/batches/{top}/objects", params={"limit": 3}).json()

    assert other != top
    assert (shown["failures"]["jobs"], shown["failures"]["items"][0]["jobs"]) == (1, 1)
    assert [o["id"] for o in failed["items"]] == children[:1]
    assert [o["id"] for o in page["items"]] == children[:3]
    assert page["next"] == children[2]


def test_a_subjob_is_no_batch(world: World) -> None:
    _, children = batch(world, 2)

    for path in ("", "/objects"):
        answer = world.client("viewer").get(f"/api/v1/batches/{children[0]}{path}")
        assert answer.status_code == 404
        assert f"job {children[0]} is no batch, but a subjob of one" in answer.json()["detail"]


def test_batches_out_of_sight_are_not_there(world: World) -> None:
    own, _ = batch(world, 2, collection="lab")
    others, _ = batch(world, 2, collection="other")

    listed = world.client("limited").get("/api/v1/batches").json()

    assert [b["job"]["id"] for b in listed["items"]] == [own]
    assert world.client("limited").get(f"/api/v1/batches/{others}").status_code == 404


def test_a_cause_is_found_by_the_beginning_of_its_fingerprint(world: World) -> None:
    batch(world, 4, failing=2)
    (group,) = world.client("viewer").get("/api/v1/failures").json()["items"]

    body = world.client("viewer").get(f"/api/v1/failures/{group['fingerprint'][:6]}").json()

    assert body["failure"] == group
    assert len(body["newest"]) == 2
    assert world.client("viewer").get("/api/v1/failures/ffffffffffffffff").status_code == 404


def test_failures_of_a_type_are_listed_and_an_unknown_type_is_refused_with_the_nearest(world: World) -> None:
    batch(world, 2, failing=1)

    def listed(type_: str) -> Response:
        return world.client("viewer").get("/api/v1/failures", params={"type": type_})

    assert [group["type"] for group in listed("one").json()["items"]] == ["one"]
    assert listed("batch").json()["items"] == []
    wrong = listed("won")
    assert wrong.status_code == 422
    assert "one" in wrong.json()["detail"]
