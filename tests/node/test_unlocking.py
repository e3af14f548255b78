"""A lock is taken away from a real attempt that goes on all the same."""

from node_fixtures import Cluster, cluster, lines, now_us

from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.wakeup.local import wake_local_nodes
from waiting import until

__all__ = ["cluster"]
LOCK = "receiver:SG-1"


def test_the_next_goes_on_beside_the_old_owner_which_ends_in_peace(cluster: Cluster) -> None:
    cluster.node()
    begun = now_us()
    params = [
        {"name": LOCK, "file": str(cluster.file(f)), "note_in": str(cluster.file("in"))}
        for f in ("one", "two")
    ]
    (first,) = cluster.submit("takes", params[0])
    until(lambda: lines(cluster.file("in")), "the first has it")
    (second,) = cluster.submit("takes", params[1])
    until(lambda: cluster.store.job(second).waits_for == f"lock:{LOCK}", "the second waits")
    (info,) = cluster.store.locks.all()
    assert (info.owner_id, info.node, info.waiting) == (first, "oak", 1)
    assert info.since_us is not None
    assert begun <= info.since_us <= now_us()

    cluster.store.locks.free(LOCK, Actor(by="ann", call="c", reason="it hangs"), now_us=now_us())
    wake_local_nodes(cluster.run_dir)
    until(lambda: lines(cluster.file("in")) == [str(first), str(second)], "the second has it")
    assert cluster.store.job(first).state is State.RUNNING
    assert [i.owner_id for i in cluster.store.locks.all()] == [second]

    cluster.file("one").touch()
    assert cluster.settled([first])[0].state is State.COMPLETED
    assert [i.owner_id for i in cluster.store.locks.all()] == [second]
    cluster.file("two").touch()
    assert cluster.settled([second])[0].state is State.COMPLETED
    assert list(cluster.store.locks.all()) == []
