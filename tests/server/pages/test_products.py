"""Products and summaries of a tree on the pages of its root."""

import orjson

from server.conftest import World

HTML = {"Accept": "text/html"}


def put(world: World, fence: int, job: int, name: str, value: object) -> None:
    world.store.put_data(job, fence, name, orjson.dumps(value).decode(), job)


def get(world: World, path: str) -> str:
    answer = world.client("viewer").get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_products_are_linked_and_escaped_and_are_no_data_beside_it(world: World) -> None:
    top = world.site.submit_one("batch", {})
    lease = world.site.run(top)
    put(world, lease.fence, top, f"product:{top}:00aa_", {"title": "<b>Plot</b>", "path": "a b/p?.svg"})
    put(world, lease.fence, top, "product:77:00bb_", {"title": "Bad", "url": "javascript:alert(1)"})
    put(world, lease.fence, top, "product:77:00cc_", {"title": "Else", "url": "https://example.org/?a=1&b=2"})
    put(world, lease.fence, top, "summary:77_", "two <plots>")
    put(world, lease.fence, top, "other", "stays")

    page, report = get(world, f"/jobs/{top}"), get(world, f"/batches/{top}/report")

    for text in (page, report):
        assert f'href="/api/v1/jobs/{top}/files/a%20b/p%3F.svg"' in text
        assert "&lt;b&gt;Plot" in text
        assert 'href="https://example.org/?a=1&amp;b=2"' in text
        assert "two &lt;plots&gt;" in text
        assert "javascript:" not in text
    assert "stays" in page
    assert "summary:77_" not in page
