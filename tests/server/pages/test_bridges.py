"""The page of bridges, and the figures of bridges for Prometheus."""

from server.conftest import World

OAK = "disbatch:mail:oak"


def test_a_bridge_is_shown_with_its_trouble(world: World) -> None:
    page = world.client("viewer").get("/bridges", headers={"accept": "text/html"})
    assert "No bridge has reported yet" in page.text
    bridges, now_us = world.store.bridges, world.control().clock()
    bridges.take(OAK, "disbatch", "one", now_us=now_us)
    bridges.link(OAK, [("a", "1")])
    bridges.report(OAK, behind=1, behind_since_us=now_us, trouble="<b>away</b>", now_us=now_us)

    page = world.client("viewer").get("/bridges", headers={"accept": "text/html"})
    figures = world.client("viewer").get("/metrics")

    assert page.status_code == 200
    assert "&lt;b&gt;away&lt;/b&gt;" in page.text
    assert f'spinney_bridge_behind{{bridge="{OAK}"}} 1.0' in figures.text
    assert f'spinney_bridge_in_trouble{{bridge="{OAK}"}} 1.0' in figures.text
    assert world.client("limited").get("/bridges").status_code == 403
