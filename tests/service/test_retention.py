"""Retention as a person has it: rules with what they overrule, and a walk that rests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.words import Clock, Site, kind
from new_store import new_store
from spinney.commands.control import Control
from spinney.features.retention.commands import SetRetention
from spinney.features.retention.sweep import REST_LEAST_S, REST_SHARE, sweep
from spinney.model.access import Rights, Role
from spinney.model.errors import Forbidden, StoreUnusable, UnknownType
from spinney.store.sql import open_store


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(kind("a", "work", keep={"completed": None}), kind("b", "work", keep={"completed": 5.0}))
    made.knows(kind("c", "work"))
    yield made
    store.close()


@pytest.fixture
def control(site: Site) -> Control:
    return Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann")


def test_what_types_declare_and_counts_no_longer_is_told(control: Control) -> None:
    answer = control.do(SetRetention(type="*", state="completed", keep_s=7.0))

    assert (answer.keeping.keep_s, answer.keeping.by) == (7.0, "ann")
    assert [(k.type, k.keep_s) for k in answer.overruled] == [("a", None), ("b", 5.0)]
    assert control.do(SetRetention(type="b", state="completed", keep_s=5.0)).overruled == [], (
        "it says the same"
    )
    assert control.do(SetRetention(type="c", state="completed", keep_s=5.0)).overruled == []
    with pytest.raises(UnknownType):
        control.do(SetRetention(type="d", state="completed", keep_s=5.0))


def test_a_walk_removes_rows_and_folders_and_rests_between_its_steps(control: Control, site: Site) -> None:
    jobs = site.submit("c", n=450)
    while leases := site.claim(jobs=20, run_us=1.0):
        site.pass_(*leases)
    control.do(SetRetention(type="c", state="completed", keep_s=0.0))
    folders: list[int] = []
    rests: list[float] = []
    progress: list[tuple[int, int]] = []
    ticks = iter(range(10_000))

    removed = sweep(
        control,
        folders.append,
        on_progress=lambda removed, at: progress.append((removed, at)),
        rest=rests.append,
        monotonic=lambda: next(ticks) * 0.01,
    )

    assert removed == 450
    assert sorted(folders) == jobs
    assert list(site.store.deleted_folders(10)) == []
    assert [n for n, _ in progress][-1] == 450
    assert rests == [pytest.approx(REST_SHARE * 0.01)] * (len(progress) - 1)
    assert REST_SHARE * 0.01 > REST_LEAST_S


def test_a_folder_that_resists_keeps_no_other_and_is_told_in_the_end(control: Control, site: Site) -> None:
    jobs = site.submit("c", n=450)
    while leases := site.claim(jobs=20, run_us=1.0):
        site.pass_(*leases)
    control.do(SetRetention(type="c", state="completed", keep_s=0.0))
    folders: list[int] = []

    def remove(job_id: int) -> None:
        if job_id in (jobs[0], jobs[7]):
            raise StoreUnusable(f"cannot remove the folder of job {job_id}; see that it is yours")
        folders.append(job_id)

    with pytest.raises(
        StoreUnusable, match=r"450 jobs are removed, but 2 folders are .* again: cannot remove .*; see"
    ):
        sweep(control, remove, rest=lambda s: None)

    assert sorted([*folders, jobs[0], jobs[7]]) == jobs
    assert sorted(site.store.deleted_folders(10)) == [jobs[0], jobs[7]]
    assert sweep(control, folders.append, rest=lambda s: None) == 0


def test_one_folder_that_resists_is_one(control: Control, site: Site) -> None:
    site.submit("c")
    site.drain()
    control.do(SetRetention(type="c", state="completed", keep_s=0.0))

    def remove(job_id: int) -> None:
        raise StoreUnusable("cannot remove it; see that it is yours")

    with pytest.raises(
        StoreUnusable, match=r"^1 job is removed, but 1 folder is still there; nodes try again:"
    ):
        sweep(control, remove, rest=lambda s: None)


def test_a_walk_that_is_cut_off_leaves_folders_to_be_told_again(control: Control, site: Site) -> None:
    jobs = site.submit("c", n=5)
    site.drain()
    control.do(SetRetention(type="c", state="completed", keep_s=0.0))

    def full(_: int) -> None:
        raise PermissionError("no")

    with pytest.raises(PermissionError):
        sweep(control, full, rest=lambda s: None)

    assert sorted(site.store.deleted_folders(10)) == jobs
    assert sweep(control, lambda job: None, rest=lambda s: None) == 0


def test_a_walk_takes_an_admin(site: Site) -> None:
    operator = Control(
        store=site.store,
        clock=lambda: site.now,
        wake_nodes=lambda: None,
        by="ann",
        rights=Rights(role=Role.OPERATOR),
    )

    with pytest.raises(Forbidden, match="may not remove jobs whose time is over"):
        sweep(operator, lambda job: None)
