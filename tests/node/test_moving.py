"""Work that goes on in another place: a store is copied to a server, and a node takes it up there."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from node_fixtures import Cluster, now_us

import job_verbs
from long_tests import long_alone
from servers import postgres_schema
from spinney.features.copies.sql import copy_store
from spinney.model.errors import Refused
from spinney.model.states import State


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "old").mkdir()
    with closing(Cluster(tmp_path / "old")) as cluster:
        yield cluster


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: Cluster) -> Iterator[Cluster]:
    """A place on a server, with the folders of the old one."""
    for name in ("new", "runtime"):
        (tmp_path / name).mkdir(mode=0o700)
    with postgres_schema() as url:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        with closing(Cluster(tmp_path / "new", url)) as cluster:
            cluster.folders = old.folders
            yield cluster


@long_alone
def test_what_was_to_be_done_is_done_in_the_new_place(old: Cluster, new: Cluster) -> None:
    flag = old.file("flag")
    node = old.node(app="moving_app:app")
    (root,) = old.submit("tree", {"flag": str(flag)})
    assert [job.state for job in old.settled([root])] == [State.FAILED]
    with pytest.raises(Refused, match=r"nodes work on .*: oak on .*; end them with SIGTERM"):
        copy_store(old.url, new.url)
    node.stop()
    pending = old.submit("leaf", *[{"flag": str(flag), "n": 1}] * 5)
    head = old.store.audit.head()

    copied = copy_store(old.url, new.url)

    assert {each.table: each.rows for each in copied}["jobs"] == 9
    new.store.close()
    new.node(app="moving_app:app")
    assert [job.state for job in new.settled(pending)] == [State.COMPLETED] * 5
    flag.touch()
    (bad,) = (job.id for job in new.store.children(root) if job.state is State.FAILED)
    job_verbs.retry(new.store, bad, stage=None, by="ann", now_us=now_us())
    assert [job.state for job in new.settled([root])] == [State.COMPLETED], "the tree regrows"
    assert [a.outcome for a in new.attempts(bad)] == ["error", "ok"]
    assert new.store.results(bad) == {"leaf": "seen before the move"}
    new.store.audit.verify(head)
