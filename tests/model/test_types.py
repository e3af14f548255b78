"""A job type travels as JSON and comes back equal; what cannot be meant is refused with a sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.errors import UsageError
from spinney.model.states import SETTLED
from spinney.model.types import Backoff, Isolation, LockSpec, StageSpec, TypeSpec

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
SECONDS = st.floats(0, 1e6, allow_nan=False)
BACKOFFS = st.builds(Backoff, base_s=SECONDS, factor=st.floats(1, 10), cap_s=SECONDS, jitter=st.floats(0, 1))
TEMPLATES = st.text(st.characters(exclude_characters="{}"), max_size=9)
STAGES = st.builds(
    StageSpec,
    name=NAMES,
    isolation=st.sampled_from(Isolation),
    queue=st.none() | NAMES,
    max_attempts=st.integers(1, 9),
    backoff=BACKOFFS,
    timeout_s=st.none() | st.floats(0.1, 1e6),
    locks=st.lists(
        st.builds(LockSpec, template=TEMPLATES, until=st.sampled_from(["attempt", "job"])),
        max_size=2,
    ).map(tuple),
    again=st.booleans(),
    program=st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5), max_size=3
    ).map(tuple),
    exit_codes=st.dictionaries(st.integers(0, 255), st.sampled_from(["ok", "defer", "warning"]), max_size=3),
)
TYPES = st.builds(
    TypeSpec,
    name=NAMES,
    stages=st.lists(STAGES, min_size=1, max_size=4, unique_by=lambda s: s.name).map(tuple),
    schema=st.dictionaries(NAMES, st.integers() | st.text(max_size=4), max_size=3),
    queue=st.none() | NAMES,
    priority=st.none() | st.integers(0, 99),
    children=st.sampled_from(["completed", "settled"]),
    serial=st.booleans(),
    on_lost=st.sampled_from(["requeue", "orphan"]),
    on_deadlock=st.sampled_from(["fail", "restart"]),
    poison_after=st.integers(1, 9),
    breaker=st.none() | st.integers(1, 1000),
    keep=st.dictionaries(st.sampled_from(sorted(SETTLED)), st.none() | st.floats(0, 1e9), max_size=3),
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
    "an unknown policy for deadlocks": lambda: TypeSpec(name="t", stages=(A,), on_deadlock="wait"),
    "an unknown span of a lock": lambda: LockSpec(template="x", until="dawn"),
    "a backoff that shrinks": lambda: Backoff(factor=0.5),
    "a backoff with too much jitter": lambda: Backoff(jitter=1.5),
    "a type whose queue is a path": lambda: TypeSpec(name="t", stages=(A,), queue="../q"),
    "a fraction as priority": lambda: TypeSpec(name="t", stages=(A,), priority=5.0),
    "no death at all": lambda: TypeSpec(name="t", stages=(A,), poison_after=0),
    "deaths in words": lambda: TypeSpec(name="t", stages=(A,), poison_after="3"),
    "serial in words": lambda: TypeSpec(name="t", stages=(A,), serial="no"),
    "a description that is a number": lambda: TypeSpec(name="t", stages=(A,), description=2),
    "a description outside of UTF-8": lambda: TypeSpec(name="t", stages=(A,), description="\udce9"),
    "half an attempt": lambda: StageSpec(name="a", max_attempts=1.5),
    "attempts beyond count": lambda: StageSpec(name="a", max_attempts=2**70),
    "a backoff in seconds": lambda: StageSpec(name="a", backoff=5),
    "time without end": lambda: StageSpec(name="a", timeout_s=float("inf")),
    "time that is no number": lambda: StageSpec(name="a", timeout_s=float("nan")),
    "a negative grace": lambda: StageSpec(name="a", grace_s=-1),
    "grace without end": lambda: StageSpec(name="a", grace_s=float("inf")),
    "again in words": lambda: StageSpec(name="a", again="yes"),
    "an argument with NUL": lambda: StageSpec(name="a", program=("x", "a\0b")),
    "an argument outside of UTF-8": lambda: StageSpec(name="a", program=("\udce9",)),
    "a lock with an open brace": lambda: LockSpec(template="receiver:{serno"),
    "a lock with a brace too many": lambda: LockSpec(template="receiver:{serno}}"),
    "a lock with a brace in a brace": lambda: LockSpec(template="{a{b}}"),
    "a lock with a field without a name": lambda: LockSpec(template="receiver:{}"),
    "a lock that is a number": lambda: LockSpec(template=5),
    "a backoff of nan": lambda: Backoff(base_s=float("nan")),
    "a backoff without end": lambda: Backoff(cap_s=float("inf")),
    "a backoff in words": lambda: Backoff(base_s="1"),
    "a time to keep that is no mapping": lambda: TypeSpec(name="t", stages=(A,), keep=30),
    "a time to keep what is open": lambda: TypeSpec(name="t", stages=(A,), keep={"running": 1.0}),
    "a time to keep what is no state": lambda: TypeSpec(name="t", stages=(A,), keep={"complete": 1.0}),
    "a time to keep below 0": lambda: TypeSpec(name="t", stages=(A,), keep={"completed": -1}),
    "a time to keep of nan": lambda: TypeSpec(name="t", stages=(A,), keep={"completed": float("nan")}),
    "a time to keep in words": lambda: TypeSpec(name="t", stages=(A,), keep={"completed": "30d"}),
    "a time to keep beyond a thousand years": lambda: TypeSpec(
        name="t", stages=(A,), keep={"completed": 1e12}
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_meant_is_refused(what: str) -> None:
    with pytest.raises(UsageError):
        REFUSED[what]()
