"""A job type travels as JSON and comes back equal; what cannot be meant is refused with a sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.errors import UsageError
from spinney.model.types import Backoff, Isolation, LockSpec, QueueSpec, StageSpec, TypeSpec

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
SECONDS = st.floats(0, 1e6, allow_nan=False)
BACKOFFS = st.builds(
    Backoff, base_s=SECONDS, factor=st.floats(1, 10), cap_s=SECONDS, jitter=st.floats(0, 1)
)
STAGES = st.builds(
    StageSpec,
    name=NAMES,
    isolation=st.sampled_from(Isolation),
    queue=st.none() | NAMES,
    max_attempts=st.integers(1, 9),
    backoff=BACKOFFS,
    timeout_s=st.none() | st.floats(0.1, 1e6),
    locks=st.lists(
        st.builds(LockSpec, template=st.text(max_size=9), until=st.sampled_from(["attempt", "job"])),
        max_size=2,
    ).map(tuple),
    again=st.booleans(),
    program=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    exit_codes=st.dictionaries(st.integers(0, 255), st.sampled_from(["ok", "defer", "warning"]), max_size=3),
)
TYPES = st.builds(
    TypeSpec,
    name=NAMES,
    stages=st.lists(STAGES, min_size=1, max_size=4, unique_by=lambda s: s.name).map(tuple),
    version=st.text(max_size=4),
    schema=st.dictionaries(NAMES, st.integers() | st.text(max_size=4), max_size=3),
    queue=st.none() | NAMES,
    priority=st.none() | st.integers(0, 99),
    children=st.sampled_from(["completed", "settled"]),
    serial=st.booleans(),
    on_lost=st.sampled_from(["requeue", "orphan"]),
    poison_after=st.integers(1, 9),
    description=st.text(max_size=9),
)


@given(TYPES)
def test_a_type_comes_back_from_json_equal(spec: TypeSpec) -> None:
    text = json.dumps(spec.to_json())

    assert TypeSpec.from_json(json.loads(text)) == spec


@given(TYPES)
def test_fields_of_a_newer_version_are_ignored(spec: TypeSpec) -> None:
    value = spec.to_json() | {"colour": "green"}
    value["stages"] = [s | {"smell": "resin"} for s in value["stages"]]

    assert TypeSpec.from_json(value) == spec


def test_a_type_written_by_an_older_version_gets_the_defaults() -> None:
    spec = TypeSpec.from_json({"name": "old", "stages": [{"name": "work"}]})

    assert spec == TypeSpec(name="old", stages=(StageSpec(name="work"),))


def test_a_stage_is_found_by_name_and_a_vanished_one_is_not() -> None:
    spec = TypeSpec(name="t", stages=(StageSpec(name="a"), StageSpec(name="b")))

    assert spec.stage("b") == spec.stages[1]
    assert spec.stage("gone") is None


A = StageSpec(name="a")
REFUSED = {
    "no stage": lambda: TypeSpec(name="t", stages=()),
    "a stage twice": lambda: TypeSpec(name="t", stages=(A, A)),
    "a type named like a path": lambda: TypeSpec(name="../t", stages=(A,)),
    "a stage named like a path": lambda: StageSpec(name="a/b"),
    "a queue named like a path": lambda: StageSpec(name="a", queue="../q"),
    "no attempt": lambda: StageSpec(name="a", max_attempts=0),
    "no time": lambda: StageSpec(name="a", timeout_s=0),
    "priority 100": lambda: TypeSpec(name="t", stages=(A,), priority=100),
    "priority -1": lambda: TypeSpec(name="t", stages=(A,), priority=-1),
    "an unknown policy for children": lambda: TypeSpec(name="t", stages=(A,), children="all"),
    "an unknown policy for lost jobs": lambda: TypeSpec(name="t", stages=(A,), on_lost="drop"),
    "an unknown span of a lock": lambda: LockSpec(template="x", until="dawn"),
    "a backoff that shrinks": lambda: Backoff(factor=0.5),
    "a backoff with too much jitter": lambda: Backoff(jitter=1.5),
    "a negative limit": lambda: QueueSpec(name="q", limit=-1),
    "an unknown order": lambda: QueueSpec(name="q", order="random"),
    "an unknown sharing": lambda: QueueSpec(name="q", sharing="fair"),
    "a queue with a path": lambda: QueueSpec(name="a/b"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_meant_is_refused(what: str) -> None:
    with pytest.raises(UsageError):
        REFUSED[what]()


@pytest.mark.parametrize(
    ("order", "sharing", "shared"),
    [
        ("default", None, "shares"),
        ("fifo", None, "none"),
        ("lifo", None, "none"),
        ("default", "none", "none"),
        ("default", "quota", "quota"),
        ("fifo", "shares", "shares"),
    ],
)
def test_fifo_and_lifo_queues_default_to_no_sharing(order: str, sharing: str | None, shared: str) -> None:
    assert QueueSpec(name="q", order=order, sharing=sharing).shared == shared
