"""The handle that a stage gets, and what it asks through its port."""

import enum
import io
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretBytes, SecretStr

from spinney import Spinney
from spinney.define.job import Assignment, Cancelled, Child, Job, LockTaken
from spinney.define.job.options import Options, from_json, to_json
from spinney.model.errors import BadName, BadParameters, Refused, UnknownType, UsageError
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.values import paths
from spinney.testing import StageHarness

app = Spinney()


@app.job
def resize(picture: Path, width: int = 200) -> None: ...


@dataclass(slots=True)
class Point:
    x: float


class Spread(BaseModel):
    of: float


class Limit(enum.Enum):
    NONE = float("inf")


class Recorder:
    """A port that records requests and answers them from a table."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._answers = answers or {}
        self._next_id = 100

    def ask(self, verb: str, **args: Any) -> Any:
        self.requests.append((verb, args))
        if verb in ("spawn", "submit"):
            count = sum(len(s["params"]) for s in args["submissions"])
            self._next_id += count
            return list(range(self._next_id - count, self._next_id))
        answer = self._answers[verb]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def cancelled(self) -> bool:
        return False


def handle(port: Any, *, root: Path = Path("/nowhere"), parent_id: int | None = 7, root_id: int = 5) -> Job:
    assignment = Assignment(9, 40, "resize", "work", 2, '{"n": 1}', parent_id, root_id, root)
    return Job(assignment, port, app.types)


# --- what it is --------------------------------------------------------------------------------


def test_the_handle_tells_what_it_was_assigned() -> None:
    job = handle(Recorder())
    assert (job.id, job.type, job.stage, job.attempt, job.fence) == (9, "resize", "work", 2, 40)
    assert job.params == {"n": 1}
    assert job.parent is not None
    assert (job.parent.id, job.root.id) == (7, 5)
    assert handle(Recorder(), parent_id=None, root_id=9).parent is None
    with pytest.raises(TypeError):
        job.params["n"] = 2  # type: ignore[index]


def test_folders_are_made_when_first_asked_for(tmp_path: Path) -> None:
    (tmp_path / paths.ROOT_TOKEN).touch()
    job = handle(Recorder(), root=tmp_path)
    assert not (tmp_path / "00").exists()
    assert job.folder == tmp_path / "00/00/00/000000000009"
    assert job.folder.is_dir()
    assert job.parent is not None
    assert job.parent.folder == tmp_path / "00/00/00/000000000007"


def test_where_folders_are_local_no_folder_is_made_for_a_job_that_is_elsewhere(tmp_path: Path) -> None:
    (tmp_path / paths.HOME_MARK).touch()
    (tmp_path / paths.ROOT_TOKEN).touch()
    job = handle(Recorder(), root=tmp_path)
    assert job.parent is not None
    with pytest.raises(Refused, match=r"the folder of job 7 is not on this host.*job\.data"):
        _ = job.parent.folder
    assert not (tmp_path / "00").exists()
    (tmp_path / "00/00/00/000000000007").mkdir(parents=True)
    assert job.parent.folder == tmp_path / "00/00/00/000000000007"
    own = handle(Recorder(), root=tmp_path, parent_id=None, root_id=9)
    assert own.root.folder == own.folder


def test_the_path_of_a_folder_is_spread() -> None:
    assert paths.job_folder(1270) == "00/00/12/000000001270"
    assert paths.job_folder(1_234_567_890) == "1234/56/78/001234567890"


@given(st.integers(1, 10**12 - 1), st.integers(1, 10**12 - 1))
def test_no_two_jobs_share_a_folder_and_none_lies_in_another(one: int, other: int) -> None:
    if one != other:
        a, b = Path(paths.job_folder(one)), Path(paths.job_folder(other))
        assert a != b
        assert not a.is_relative_to(b)


# --- data --------------------------------------------------------------------------------------


def test_data_are_asked_for_afresh_and_travel_as_json_text() -> None:
    port = Recorder({"get_data": {"a": [1]}, "data_names": ["a"], "put_data": None, "append_data": 2})
    data = handle(port).data

    assert data["a"] == [1]
    assert dict(data) == {"a": [1]}
    data["b"] = {"path": Path("x")}
    assert data.append("a", 2) == 2
    del data["a"]

    with pytest.raises(KeyError):
        data["none"]
    with pytest.raises(KeyError):
        del data["none"]
    writes = [request for request in port.requests if request[0] not in ("get_data", "data_names")]
    before = len(port.requests)
    assert data.snapshot() == {"a": [1]}
    assert port.requests[before:] == [("get_data", {"target": 9, "name": None})]
    assert writes == [
        ("put_data", {"target": 9, "name": "b", "value": '{"path":"x"}'}),
        ("append_data", {"target": 9, "name": "a", "value": "2"}),
        ("put_data", {"target": 9, "name": "a", "value": None}),
    ]


def test_an_entry_of_data_is_read_alone_since_all_may_be_too_long_for_a_message() -> None:
    port = Recorder({"get_data": {"a": [1]}, "data_names": ["a"]})
    data = handle(port).data

    assert (data["a"], len(data), dict(data.items()), "a" in data) == ([1], 1, {"a": [1]}, True)
    assert {(verb, args.get("name")) for verb, args in port.requests} == {
        ("get_data", "a"),
        ("data_names", None),
    }


def test_what_cannot_name_an_entry_of_data_is_not_asked_for() -> None:
    port = Recorder()

    assert [name in handle(port).data for name in ("", "a\0b", "\ud800", "x" * 201, 5)] == [False] * 5
    assert port.requests == []


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [1.0, {"a": (float("-inf"),)}],
        {float("inf")},
        Point(float("nan")),
        [Spread(of=float("inf"))],
        Limit.NONE,
        MappingProxyType({"x": float("nan")}),
    ],
)
def test_a_number_that_json_does_not_have_is_neither_kept_in_data_nor_returned(value: Any) -> None:
    port = Recorder()
    returns = Spinney().job(name="returns")(lambda: value)
    refused = pytest.raises(
        BadParameters, match=r"cannot be kept as JSON: .*NaN or infinity; use None or a text"
    )
    with refused:
        handle(port).data["x"] = value
    with refused:
        handle(port).data.append("x", value)
    with refused:
        Options(data={"x": value}).submission("t", ["{}"])
    with refused:
        StageHarness().run(returns)
    assert port.requests == []
    handle(Recorder({"put_data": None})).data["x"] = [None, "null", 1.0, Point(2.0)]


def test_parameters_and_results_of_a_job_may_be_returned_and_kept_in_data() -> None:
    line = Spinney().pipeline("line")

    @line.stage
    def first(job: Job, n: int) -> Any:
        return job.params

    @line.stage
    def second(job: Job) -> Any:
        job.data["all"] = {"results": job.results}
        return job.results

    harness = StageHarness()
    harness.run(line, "first", n=1)
    ran = harness.run(line, "second", n=1)

    assert ran.value == {"first": {"n": 1}}
    assert ran.data == {"all": {"results": {"first": {"n": 1}}}}


def test_data_of_parent_and_root_are_asked_with_their_ids() -> None:
    port = Recorder({"append_data": 1})
    job = handle(port)
    assert job.parent is not None
    job.parent.data.append("seen", 1)
    job.root.data.append("seen", 1)
    assert [args["target"] for _, args in port.requests] == [7, 5]


def test_data_without_json_form_or_name_are_refused_before_anything_is_asked() -> None:
    port = Recorder()
    with pytest.raises(BadParameters, match=r"data\['x'\] cannot be kept as JSON"):
        handle(port).data["x"] = object()
    with pytest.raises(BadParameters, match="cannot name an entry"):
        handle(port).data["a\nb"] = 1
    assert port.requests == []


def test_results_are_asked_once() -> None:
    port = Recorder({"results": {"download": 5}})
    job = handle(port)
    assert (job.results["download"], job.results.get("other")) == (5, None)
    assert len(port.requests) == 1


def test_results_that_came_with_the_attempt_are_not_asked() -> None:
    port = Recorder()
    assignment = Assignment(9, 40, "resize", "work", 2, "{}", None, 9, Path("/nowhere"), '{"download":5}')
    assert Job(assignment, port, app.types).results == {"download": 5}
    assert port.requests == []


# --- subjobs -----------------------------------------------------------------------------------


def test_spawning_sends_checked_parameters_and_gives_ids() -> None:
    port = Recorder()
    job = handle(port)
    assert job.spawn(resize, picture=Path("cat.jpg")) == 100
    assert job.spawn("resize", picture="dog.jpg", width=3) == 101
    assert [args["submissions"] for _, args in port.requests] == [
        [{"type": "resize", "params": ['{"picture":"cat.jpg"}']}],
        [{"type": "resize", "params": ['{"picture":"dog.jpg","width":3}']}],
    ]


def test_a_parameter_without_its_name_is_refused() -> None:
    port = Recorder()
    for create in (handle(port).spawn, handle(port).submit):
        with pytest.raises(UsageError, match="given by name"):
            create(resize, Path("cat.jpg"))  # type: ignore[arg-type]
    assert port.requests == []


def test_spawning_with_options_and_keys() -> None:
    port = Recorder()
    kind = resize.options(queue="slow", priority=3, needs=[4], at=datetime(2030, 1, 1, tzinfo=UTC))
    handle(port).spawn_many(kind, [{"picture": "a"}, {"picture": "b"}], keys=["ka", "kb"])
    [row] = port.requests[0][1]["submissions"]
    assert row == {
        "type": "resize",
        "params": ['{"picture":"a"}', '{"picture":"b"}'],
        "keys": ["ka", "kb"],
        "queue": "slow",
        "priority": 3,
        "needs": (4,),
        "at_us": 1_893_456_000_000_000,
    }


def test_a_long_list_goes_in_several_messages_with_its_keys() -> None:
    port = Recorder()
    rows = [{"picture": str(n)} for n in range(2500)]
    ids = handle(port).spawn_many(resize, rows, keys=[f"k{n}" for n in range(2500)])
    parts = [args["submissions"][0] for _, args in port.requests]
    assert ids == list(range(100, 2600))
    assert [len(p["params"]) for p in parts] == [1000, 1000, 500]
    assert [p["keys"][0] for p in parts] == ["k0", "k1000", "k2000"]


def test_a_list_of_large_parameters_goes_in_several_messages_with_its_keys() -> None:
    port = Recorder()
    rows = [{"picture": "x" * 900_000}] * 9 + [{"picture": "x"}] * 3
    ids = handle(port).spawn_many(resize, rows, keys=[f"k{n}" for n in range(12)])
    parts = [args["submissions"][0] for _, args in port.requests]
    assert ids == list(range(100, 112))
    assert [len(p["params"]) for p in parts] == [5, 7]
    assert [p["keys"][0] for p in parts] == ["k0", "k5"]


def test_a_wrong_subjob_in_a_long_list_is_refused_before_any_is_sent() -> None:
    port = Recorder()
    with pytest.raises(BadParameters, match="job 2001 of the list"):
        handle(port).spawn_many(resize, [*({"picture": "x"} for _ in range(2000)), {"picture": 5}])
    with pytest.raises(UsageError, match="1 keys for 2 jobs"):
        handle(port).spawn_many(resize, [{"picture": "x"}] * 2, keys=["a"])
    assert port.requests == []


# --- jobs of their own -------------------------------------------------------------------------


def test_submitting_sends_checked_parameters_with_their_options_and_gives_ids() -> None:
    port = Recorder()
    job = handle(port)
    assert job.submit(resize, picture=Path("cat.jpg")) == 100
    assert job.submit(resize.options(key="mail-7", forever=True), picture="dog.jpg") == 101
    with pytest.raises(BadParameters, match="parameter 'picture' is missing"):
        job.submit(resize)
    assert port.requests == [
        (
            "submit",
            {"submissions": [{"type": "resize", "params": ['{"picture":"cat.jpg"}']}], "beside": None},
        ),
        (
            "submit",
            {
                "submissions": [
                    {
                        "type": "resize",
                        "params": ['{"picture":"dog.jpg"}'],
                        "keys": ["mail-7"],
                        "forever": True,
                    }
                ],
                "beside": None,
            },
        ),
    ]


def test_the_parts_of_a_long_list_are_submitted_beside_its_first() -> None:
    port = Recorder()
    ids = handle(port).submit_many(resize, ({"picture": str(n)} for n in range(2500)))
    assert ids == list(range(100, 2600))
    assert [len(args["submissions"][0]["params"]) for _, args in port.requests] == [1000, 1000, 500]
    assert [args["beside"] for _, args in port.requests] == [None, 100, 100]


def test_a_type_of_another_application_is_checked_by_its_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    port = Recorder({"type_schema": schema})
    assert handle(port).spawn("elsewhere", n=1) == 100
    with pytest.raises(BadParameters, match="parameter 'n' must be a whole number, not 'x'"):
        handle(port).spawn("elsewhere", n="x")
    with pytest.raises(UnknownType):
        handle(Recorder({"type_schema": UnknownType("no such")})).spawn("nowhere")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_no_parameter_of_another_application(value: float) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "number"}}}
    port = Recorder({"type_schema": schema})

    with pytest.raises(BadParameters, match="parameter 'x' must be a number"):
        handle(port).spawn("elsewhere", x=value)

    port = Recorder({"type_schema": {"type": "object", "properties": {"x": {}}}})
    assert handle(port).spawn("elsewhere", x=[None]) == 100
    with pytest.raises(BadParameters, match=r"parameter 'x' must be any JSON value.*NaN or infinity"):
        handle(port).spawn("elsewhere", x=[value])


class Login(BaseModel):
    user: str = Field(alias="login")
    password: SecretStr


def test_a_model_for_another_application_is_sent_by_its_aliases_and_with_its_secrets() -> None:
    schema = {"type": "object", "properties": {"by": Login.model_json_schema()}}
    port = Recorder({"type_schema": schema})

    handle(port).submit("elsewhere", by=Login(login="ann", password="correct horse"))
    assert port.requests[-1][1]["submissions"][0]["params"] == [
        '{"by":{"login":"ann","password":"correct horse"}}'
    ]

    handle(port).submit("elsewhere", by={"login": "ann", "password": SecretStr("correct horse")})
    assert port.requests[-1][1]["submissions"] == port.requests[1][1]["submissions"]


@pytest.mark.parametrize(
    "value",
    [
        SecretStr("correct horse"),
        SecretBytes(b"correct horse"),
        Login(login="ann", password="correct horse"),
    ],
)
def test_a_secret_is_not_sent_where_another_application_would_show_it(value: Any) -> None:
    port = Recorder({"type_schema": {"type": "object", "properties": {"by": {"type": "integer"}}}})

    with pytest.raises(BadParameters, match="a secret is where the type declares none") as caught:
        handle(port).spawn("elsewhere", by=value)

    assert "horse" not in str(caught.value)
    assert [verb for verb, _ in port.requests] == ["type_schema"]


def test_children_come_in_pages() -> None:
    pages = {
        0: [[1, "t", "completed", None, 0, None, 0, {}]],
        1: [[4, "t", "failed", "s", 7, "no", 1, {"n": 2}]],
    }

    class Paged(Recorder):
        def ask(self, verb: str, **args: Any) -> Any:
            assert verb == "children"
            return pages.get(args["after"], [])

    children = list(handle(Paged()).children())
    assert [c.id for c in children] == [1, 4]
    assert children[1] == Child(4, "t", State.FAILED, "s", 7, "no", 1, {"n": 2})


def test_submissions_survive_their_way_out_of_a_worker() -> None:
    made = Options(key="k", forever=True, data={"a": 1}, needs=[3]).submission("t", ["{}"])
    assert from_json(to_json(made)) == made
    assert from_json(to_json(Options(priority=0).submission("t", ["{}"]))).priority == 0
    assert from_json(to_json(Options().submission("t", []))) == Options().submission("t", [])


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"priorty": 3}, r"no option 'priorty' for a job \(did you mean 'priority'\?\)"),
        ({"priority": 100}, "from 0 .first. to 99 .last., not 100"),
        ({"priority": True}, "not True"),
        ({"queue": "a b"}, "cannot name a queue"),
        ({"key": ""}, "cannot be a key"),
        ({"at": datetime(2030, 1, 1)}, "a datetime with a time zone"),
        ({"at": "tomorrow"}, "a datetime with a time zone"),
        ({"needs": ["5"]}, "a list of job ids"),
        ({"needs": [-1]}, "a list of job ids"),
        ({"needs": [10**12]}, r"a list of job ids \(1 to 999999999999\)"),
        ({"needs": 5}, "a list of job ids"),
        ({"needs": b"5"}, "a list of job ids"),
        ({"at": datetime(1969, 12, 31, tzinfo=UTC)}, "in the years 1970 to 8999"),
        ({"at": datetime(9000, 1, 1, tzinfo=UTC)}, "in the years 1970 to 8999"),
        ({"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}, "in the years 1970 to 8999"),
        (
            {"data": ["a secret"]},
            r'data must map names to values, for example data=\{"tries": 3\}, and is no list$',
        ),
        ({"data": "x"}, "data must map names to values"),
        ({"data": {5: 1}}, "5 cannot name an entry"),
        ({"data": {"": 1}}, "'' cannot name an entry"),
        ({"data": {"a\nb": 1}}, "cannot name an entry"),
        ({"data": {"x": object()}}, r"data\['x'\] cannot be kept as JSON"),
        ({"data": {"x": "y" * 65_535}}, r"data\['x'\] is 65537 bytes long as JSON, the most is 65536"),
        ({"data": {"x": "ä" * 40_000}}, r"data\['x'\] is 80002 bytes"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resize.options(**options)


def test_what_just_lies_within_the_limits_is_taken() -> None:
    first, last = datetime(1970, 1, 1, tzinfo=UTC), datetime(8999, 12, 31, 23, tzinfo=UTC)
    made = [Options(at=at, needs=[1, 10**12 - 1], data={"x": "y" * 65_534}) for at in (first, last)]

    assert [m.submission("t", ["{}"]).at_us for m in made] == [0, (last - first) // timedelta(microseconds=1)]


def test_parameters_of_a_job_have_a_longest_length() -> None:
    longest = '{"n":"' + "x" * (2**20 - 8) + '"}'
    assert Options().submission("t", [longest]).params == [longest]

    too_long = '{"n":"' + "ä" * 2**19 + '"}'
    with pytest.raises(
        BadParameters, match="of a 't' job are 1048584 bytes long as JSON, the most is 1048576; put"
    ):
        Options().submission("t", [too_long])
    with pytest.raises(BadParameters, match=r"of a 't' job \(job 2 of the list\) are 1048577 bytes"):
        Options().submission("t", ["{}", longest + " "])


def test_one_key_cannot_serve_many_jobs() -> None:
    with pytest.raises(UsageError, match="one key cannot serve 2 jobs"):
        handle(Recorder()).spawn_many(resize.options(key="k"), [{"picture": "x"}] * 2)


def test_forever_without_a_key_is_refused() -> None:
    once, rows = resize.options(forever=True), [{"picture": "x"}]
    with pytest.raises(UsageError, match="forever says how long a key is taken; give a key, or leave it out"):
        handle(Recorder()).submit(once, picture="x")
    assert handle(Recorder()).submit_many(once, rows, keys=["k"]) == [100]


# --- while it runs -----------------------------------------------------------------------------


def test_a_taken_lock_ends_the_stage() -> None:
    job = handle(Recorder({"take_lock": False}))
    with pytest.raises(LockTaken) as caught:
        job.lock("receiver:1")
    assert (caught.value.outcome, caught.value.lock) == (Outcome.LOCKED, "receiver:1")
    assert not isinstance(caught.value, Exception), "a stage's own 'except Exception' must not swallow it"
    with pytest.raises(BadName):
        job.lock("../etc")
    with pytest.raises(UsageError, match="until='attempt'"):
        job.lock("a", until="ever")
    assert caught.value.lock_request is None


def test_who_does_not_get_some_of_a_lock_says_how_much_it_wanted() -> None:
    with pytest.raises(LockTaken) as caught:
        handle(Recorder({"take_lock": False})).lock("disk", amount=2**40, capacity=2**41)
    assert caught.value.lock_request == (2**40, 2**41)
    assert caught.value.message == f"waits for {2**40} of the lock 'disk'"


@pytest.mark.parametrize("wrong", [-1, 2**63, 1.0, True, "3", None])
def test_an_amount_is_a_whole_number_of_64_bits(wrong: object) -> None:
    port = Recorder({"take_lock": True})
    with pytest.raises(UsageError, match="a whole number from 0 to 9223372036854775807"):
        handle(port).lock("disk", amount=wrong)  # type: ignore[arg-type]
    if wrong is not None:
        with pytest.raises(UsageError):
            handle(port).lock("disk", capacity=wrong)  # type: ignore[arg-type]
    assert port.requests == []


def test_a_free_lock_is_taken() -> None:
    port = Recorder({"take_lock": True})
    handle(port).lock("receiver:1", until="job")
    handle(port).lock("disk", amount=5, capacity=7)
    assert port.requests == [
        ("take_lock", {"name": "receiver:1", "until": "job", "amount": 1, "capacity": None}),
        ("take_lock", {"name": "disk", "until": "attempt", "amount": 5, "capacity": 7}),
    ]


def test_a_priority_is_a_whole_number_from_0_to_99() -> None:
    port = Recorder({"prioritise": None})
    handle(port).prioritise(0)
    for wrong in (-1, 100, 5.0, True, None, "3"):
        with pytest.raises(UsageError, match=r"from 0 \(first\) to 99 \(last\)"):
            handle(port).prioritise(wrong)  # type: ignore[arg-type]
    assert port.requests == [("prioritise", {"priority": 0})]


def test_progress_is_a_fraction() -> None:
    port = Recorder({"progress": None})
    handle(port).progress(1, "done")
    assert port.requests == [("progress", {"fraction": 1.0, "message": "done"})]
    for wrong in (-0.1, 1.5, 10**400, float("nan"), Decimal("sNaN"), "half", "0.5", None, [1]):
        with pytest.raises(UsageError, match=r"a fraction from 0.0 to 1.0, such as done / total, not"):
            handle(port).progress(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"a message as text or none, not of type int$"):
        handle(port).progress(0.5, 5)  # type: ignore[arg-type]
    assert len(port.requests) == 1


def test_progress_may_name_a_file_whose_name_is_no_text() -> None:
    port = Recorder({"progress": None})
    handle(port).progress(0.5, os.fsdecode(b"reading caf\xe9"))
    assert port.requests == [("progress", {"fraction": 0.5, "message": "reading caf?"})]


def test_what_progress_refuses_is_not_quoted() -> None:
    secret = "s3cret" * 100
    for wrong in ((secret,), (0.5, [secret])):
        with pytest.raises(UsageError) as refusal:
            handle(Recorder()).progress(*wrong)  # type: ignore[arg-type]
        assert "s3cret" not in str(refusal.value)


def test_a_cancelled_stage_ends_where_it_looks() -> None:
    assert handle(StageHarness(cancelled=True)).cancelled
    with pytest.raises(Cancelled) as caught:
        handle(StageHarness(cancelled=True)).check_cancelled()
    assert caught.value.outcome is Outcome.CANCELLED
    handle(StageHarness()).check_cancelled()


def test_the_log_writes_to_what_stderr_is_at_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    log = handle(Recorder()).log
    for text in ("first", "second"):
        caught = io.StringIO()
        monkeypatch.setattr(sys, "stderr", caught)
        log.info("%s line", text)
        assert f"INFO {text} line" in caught.getvalue()
        assert caught.getvalue().count("\n") == 1
