"""One damaged row: every list, page and verb of a server goes on beside it."""

import pytest

from contract.behind import sql_store
from server.conftest import World


def damage(world: World, sql: str, *args: object) -> None:
    with sql_store(world.store).database.write() as tx:
        tx.run(sql, args)


@pytest.fixture
def damaged(world: World) -> tuple[int, int]:
    """Two jobs that failed, of which one has nothing that can be read."""
    ids = world.submit("double", {"n": 1}), world.submit("double", {"n": 2})
    for lease in world.site.claim():
        world.store.put_data(lease.job_id, lease.fence, "note", '"x"', lease.job_id)
        world.site.fail(lease, error={"type": "ValueError", "message": "no"})
    damage(world, "update jobs set params = '{' where id = ?", ids[0])
    damage(world, "update attempts set error = '{' where job_id = ?", ids[0])
    damage(world, "update data set value = '{' where job_id = ?", ids[0])
    return ids


@pytest.mark.parametrize(
    "path",
    [
        "/jobs",
        "/jobs/{0}",
        "/jobs/{0}/attempts",
        "/jobs/{0}/tree",
        "/jobs/{0}/explain",
        "/jobs/{0}/data",
        "/jobs/{0}/results",
        "/failures",
    ],
)
def test_the_api_shows_the_job_as_unreadable_and_all_others(
    world: World, damaged: tuple[int, int], path: str
) -> None:
    answer = world.client().get("/api/v1" + path.format(*damaged))

    assert answer.status_code == 200, answer.text
    if path == "/jobs":
        params = {job["id"]: job["params"] for job in answer.json()["items"]}
        assert ("cannot be read" in params[damaged[0]]["unreadable"], params[damaged[1]]["n"]) == (True, 2)


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/{0}", "/failures", "/audit"])
def test_pages_show_it(world: World, damaged: tuple[int, int], path: str) -> None:
    answer = world.client("admin").get(path.format(*damaged), headers={"Accept": "text/html"})

    assert answer.status_code == 200, answer.text
    if path == "/jobs/{0}":
        assert f"the parameters of job {damaged[0]} cannot be read" in answer.text
