"""Who leads is decided once, however many find at the same time that nobody does."""

from pathlib import Path

from new_store import new_store
from spinney.model.jobs import NodeInfo
from spinney.store.sql import open_store
from spinney.store.sql.recover import leadership


def test_of_two_that_find_the_house_unkept_one_keeps_it(tmp_path: Path) -> None:
    store = open_store(new_store(tmp_path / "x.db"))
    elm, oak = (
        store.join(
            NodeInfo(
                id=0,
                name=name,
                boot_id="b",
                host="h",
                pid=1,
                slots=1,
                state="active",
                beat=0,
                started_us=1,
                seen_us=1,
                version="1",
                types=(),
            ),
            now_us=1,
        )
        for name in ("elm", "oak")
    )
    with store.database.look() as tx:
        assert leadership.leader(tx) is None, "as both have seen"
    for node_id in (elm, oak):
        with store.database.write() as tx:
            assert leadership.take(tx, node_id, None) == elm
    with store.database.write() as tx:
        assert leadership.take(tx, oak, elm) == oak, "elm is dead by the watch of oak"
        assert leadership.take(tx, oak + 1, elm) == oak, "and nobody else gets it for that"
    store.close()
