"""Two puts of one object at once: one of them stands, the other is told, and nothing is mixed."""

from pathlib import Path

import pytest

from apps.ingest.places import Bed
from apps.ingest.storage.judge import ARK, at_rest, contents, incoming, put
from long_tests import LONG, long_alone
from spinney.apps.ingest.storage import Busy


@pytest.mark.parametrize("first", [True, False], ids=["new", "known"])
def test_on_disk_the_second_is_told_to_come_again(disk: Bed, tmp_path: Path, first: bool) -> None:
    if not first:
        put(disk.open(), incoming(tmp_path, "z", b"before"), key="before")
    events: list[str] = []

    def meanwhile(step: str) -> None:
        if step == "content":
            with pytest.raises(Busy, match="is under way"):
                put(disk.open(), incoming(tmp_path, "a", b"theirs"), key="theirs")
            events.append(step)

    put(disk.open(on_step=meanwhile), incoming(tmp_path, "a", b"ours"), key="ours")
    assert events == ["content"]
    assert contents(disk.open()) == {"a": b"ours"}
    put(disk.open(), incoming(tmp_path, "a", b"theirs"), key="theirs")
    assert [v.key for v in disk.open().versions(ARK)][-2:] == ["ours", "theirs"]
    assert at_rest(disk.fetch())


def test_on_disk_two_objects_do_not_wait_for_each_other(disk: Bed, tmp_path: Path) -> None:
    def meanwhile(step: str) -> None:
        if step == "moved":
            put(disk.open(), incoming(tmp_path, "a", b"2"), object_id="ark:/99999/fk4other")

    put(disk.open(on_step=meanwhile), incoming(tmp_path, "a", b"1"))
    assert disk.open().versions("ark:/99999/fk4other")
    assert at_rest(disk.fetch())


@pytest.mark.parametrize("step", ["kept", "content", "built", "declared"] if LONG else ["declared"])
def test_in_s3_the_slower_is_refused(s3: Bed, tmp_path: Path, step: str) -> None:
    # Given a writer that another overtakes after one of its steps
    done: list[str] = []

    def meanwhile(reached: str) -> None:
        if reached == step and not done:
            done.append(step)
            put(s3.open(), incoming(tmp_path, "a", b"theirs"), key="theirs")

    # Then the slower is told, the other's version stands
    with pytest.raises(Busy, match="came first"):
        put(s3.open(on_step=meanwhile), incoming(tmp_path, "a", b"ours"), key="ours")
    assert contents(s3.open()) == {"a": b"theirs"}
    # And when the slower comes again, all is well
    put(s3.open(), incoming(tmp_path, "a", b"ours"), key="ours")
    assert [v.key for v in s3.open().versions(ARK)] == ["theirs", "ours"]
    assert at_rest(s3.fetch())


@long_alone
def test_in_s3_a_zombie_cannot_put_other_bytes_under_a_name_that_counts(s3: Bed, tmp_path: Path) -> None:
    """A writer that is overtaken before it writes anything, with other content under the same path."""
    done: list[str] = []

    def meanwhile(reached: str) -> None:
        if reached == "claimed" and not done:
            done.append(reached)
            put(s3.open(), incoming(tmp_path, "a", b"theirs"), key="theirs")

    # It finds the newer version when it reads the inventory, and is laid upon it.
    put(s3.open(on_step=meanwhile), incoming(tmp_path, "a", b"ours"), key="ours")
    assert contents(s3.open(), 1) == {"a": b"theirs"}
    assert contents(s3.open(), 2) == {"a": b"ours"}
    assert s3.open().verify(ARK).faults == ()
