"""The verbs of people on a real store, without anybody's code."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from new_store import new_store
from spinney import Spinney
from spinney.commands.control import Control
from spinney.define.job.options import Options
from spinney.features.jobs.commands import CancelJob, DeleteJob, ReleaseJob, RerunJob, RetryJob
from spinney.features.submission.commands import SubmitJobs
from spinney.model.errors import BadName, BadParameters, NoSuchJob, Refused, UnknownType, UsageError
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.store.parts import Store


class Wakeups:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def wakeups() -> Wakeups:
    return Wakeups()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    from spinney.store.sql import open_store

    app = Spinney()

    @app.job
    def resize(picture: Path, width: int = 200) -> None: ...

    @app.job(locks=["receiver:{serno}"])
    def read(serno: str) -> None: ...

    store = open_store(new_store(tmp_path / "jobs.db"))
    store.register([t.spec for t in app.types.values()], [])
    yield store
    store.close()


@pytest.fixture
def control(store: Store, wakeups: Wakeups) -> Control:
    ticks = itertools.count(time.time_ns() // 1000)
    return Control(store=store, clock=lambda: next(ticks), wake_nodes=wakeups, by="ann")


def stored(store: Store) -> list[Any]:
    return [job.params for job in store.jobs(Filter())]


# --- submitting --------------------------------------------------------------------------------


def test_jobs_are_submitted_by_name_and_schema(control: Control, store: Store, wakeups: Wakeups) -> None:
    done = control.submit(
        "resize", [{"picture": "a"}, {"picture": "b", "width": 3}], Options(priority=5), keys="xy"
    )
    assert stored(store) == [{"picture": "a"}, {"picture": "b", "width": 3}]
    second = store.job(done.ids[1])
    assert (second.priority, second.key) == (5, "y")
    assert wakeups.count == 1


def test_nothing_is_stored_when_one_does_not_fit(control: Control, store: Store, wakeups: Wakeups) -> None:
    with pytest.raises(BadParameters, match="parameter 'width' must be a whole number, not 'x'"):
        control.submit("resize", [{"picture": "a"}, {"picture": "b", "width": "x"}])
    with pytest.raises(UnknownType, match=r"'resiz' is known to this store \(did you mean 'resize'\?\)"):
        control.submit("resiz", [{}])
    with pytest.raises(BadParameters, match="'serno' is missing"):
        control.submit("read", [{}])
    with pytest.raises(BadParameters, match="names the lock"):
        control.submit("read", [{"serno": "a/b"}])
    with pytest.raises(NoSuchJob):
        control.submit("resize", [{"picture": "a"}], Options(needs=[99]))
    assert stored(store) == []
    assert wakeups.count == 0


def test_no_rows_are_no_jobs(control: Control, wakeups: Wakeups) -> None:
    assert control.submit("resize", []).ids == []
    assert wakeups.count == 0


def test_lines_of_parameters_for_one_type(control: Control, store: Store) -> None:
    lines = ['{"picture": "a"}\n', "\n", b'{"picture": "b"}']
    control.submit_lines(lines, type_="resize", options=Options(collection="pets"))
    assert stored(store) == [{"picture": "a"}, {"picture": "b"}]
    assert {job.collection for job in store.jobs(Filter())} == {"pets"}


def test_lines_with_types_and_options_of_their_own(control: Control, store: Store) -> None:
    lines = [
        {"type": "resize", "params": {"picture": "a"}, "key": "ka", "priority": 3},
        {"type": "resize", "params": {"picture": "b"}, "key": "kb", "priority": 3},
        {"type": "read", "params": {"serno": "7"}, "needs": [-1, -2]},
        {"type": "resize", "params": {"picture": "c"}, "share": "mine", "at": "2130-01-01T00:00:00Z"},
    ]
    done = control.submit_lines([orjson.dumps(line) for line in lines], options=Options(priority=9))
    jobs = [store.job(i) for i in done.ids]
    assert [(j.type, j.key, j.priority) for j in jobs] == [
        ("resize", "ka", 3),
        ("resize", "kb", 3),
        ("read", None, 9),
        ("resize", None, 9),
    ]
    assert jobs[2].waits_for == "needs"
    assert (jobs[3].share, jobs[3].state) == ("mine", State.SCHEDULED)


def test_lines_with_a_key_may_be_read_once_and_are_the_same_from_a_file_and_a_list(
    control: Control, store: Store, tmp_path: Path
) -> None:
    # given
    lines = [b'{"picture": "a"}', b'{"picture": "b"}']
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b"\r\n".join(lines) + b"\n")

    # when
    answer = control.do(SubmitJobs(type="resize", lines=iter(lines), idempotency_key="k"))
    with file.open("rb") as opened:
        again = control.do(SubmitJobs(type="resize", lines=opened, idempotency_key="k"))
    listed = control.do(SubmitJobs(type="resize", lines=lines, idempotency_key="k"))
    texts = [line.decode() for line in lines]
    as_text = control.do(SubmitJobs(type="resize", lines=texts, idempotency_key="k"))

    # then
    assert stored(store) == [{"picture": "a"}, {"picture": "b"}]
    assert list(answer.ids) == list(again.ids) == list(listed.ids) == list(as_text.ids) == [1, 2]


@pytest.mark.parametrize("lines", ['{"picture": "a"}', b"{}", 5, [{"picture": "a"}], iter([None])])
def test_lines_that_are_none_are_refused_in_a_sentence(control: Control, lines: object) -> None:
    with pytest.raises(UsageError, match=r"JSON object.* as text or bytes, not of type ") as raised:
        control.do(SubmitJobs(type="resize", lines=lines))  # type: ignore[arg-type]

    # Parameters may be secrets.
    assert "picture" not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{nope", "line 2 is no JSON"),
        ("[1]", "line 2: write"),
        ('{"params": {}}', "line 2: write"),
        ('{"type": "resiz", "params": {}}', "line 2: no job type 'resiz'"),
        (
            '{"type": "resize", "params": {"picture": 1}}',
            "line 2: job type 'resize': parameter 'picture' must be",
        ),
        (
            '{"type": "resize", "params": [1]}',
            "line 2: the parameters of job type 'resize' must be a JSON object",
        ),
        ('{"type": "resize", "params": {"picture": "a"}, "prio": 1}', "line 2: there is no option 'prio'"),
        ('{"type": "resize", "params": {"picture": "a"}, "at": "soon"}', "line 2: at must be a time such as"),
        (
            '{"type": "resize", "params": {"picture": "a"}, "at": "2030-01-01"}',
            "line 2: at must be a datetime with",
        ),
        ('{"type": "resize", "params": {"picture": "a"}, "needs": 5}', "line 2: needs must be a list"),
        ('{"type": "resize", "params": {"picture": "a"}, "key": 5}', "line 2: 5 cannot be a key"),
        ('{"type": "resize", "params": {"picture": "a"}, "forever": true}', "line 2: forever says how long"),
        (
            '{"type": "resize", "params": {"picture": "a"}, "needs": [1000000000000]}',
            "line 2: needs must be a list",
        ),
        (
            '{"type": "resize", "params": {"picture": "a"}, "at": "9999-01-01T00:00Z"}',
            "line 2: at must lie in",
        ),
        ('{"type": "resize", "params": {"picture": "a"}, "data": [1]}', "line 2: data must map names"),
        (
            '{"type": "resize", "params": {"picture": "a"}, "data": {"": 1}}',
            "line 2: '' cannot name an entry",
        ),
    ],
)
def test_a_bad_line_is_told_by_its_number_and_nothing_is_stored(
    control: Control, store: Store, line: str, sentence: str
) -> None:
    good = '{"type": "resize", "params": {"picture": "a"}}'
    with pytest.raises((UsageError, BadName)) as caught:
        control.submit_lines([good, line, good])
    assert sentence in str(caught.value)
    assert stored(store) == []


# --- operating ---------------------------------------------------------------------------------


def test_cancel_retry_and_rerun_wake_the_nodes(control: Control, store: Store, wakeups: Wakeups) -> None:
    [job_id] = control.submit("resize", [{"picture": "a"}]).ids
    assert list(control.do(CancelJob(job=job_id, reason="wrong")).touched) == [job_id]
    assert store.job(job_id).state is State.CANCELLED
    control.do(RetryJob(job=job_id))
    assert store.job(job_id).state is State.PENDING
    control.do(CancelJob(job=job_id))
    control.do(RerunJob(job=job_id))
    assert store.job(job_id).state is State.PENDING
    assert wakeups.count == 5
    with pytest.raises(Refused):
        control.do(ReleaseJob(job=job_id))
    assert wakeups.count == 5


def test_deleting_removes_the_folders_and_says_so(control: Control, store: Store) -> None:
    [job_id] = control.submit("resize", [{"picture": "a"}]).ids
    control.do(CancelJob(job=job_id))
    removed: list[int] = []
    deleting = replace(control, remove_folder=removed.append)
    assert deleting.do(DeleteJob(job=job_id)).touched == [job_id]
    assert removed == [job_id]
    assert list(store.deleted_folders(10)) == []


def test_a_folder_that_could_not_be_removed_is_told_again(control: Control, store: Store) -> None:
    [job_id] = control.submit("resize", [{"picture": "a"}]).ids
    control.do(CancelJob(job=job_id))

    def full(_: int) -> None:
        raise PermissionError("no")

    with pytest.raises(PermissionError):
        replace(control, remove_folder=full).do(DeleteJob(job=job_id))
    assert list(store.deleted_folders(10)) == [job_id]
