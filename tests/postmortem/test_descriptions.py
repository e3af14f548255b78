"""Values are described within bounds, and no code of them runs."""

import collections
import decimal
import enum
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import orjson
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from spinney.postmortem.descriptions import HIDDEN, Bounds, Describer, Description

ROOM = 100_000


def describe(value: object, name: str = "value", **more: Any) -> Description:
    """The description of a variable that holds the value; there is time enough."""
    describer = Describer(**{"bounds": Bounds(time_s=60), **more})
    return describer.variable(name, value, ROOM)[0]


RAN: list[str] = []
"""What code of described values has run."""


@pytest.fixture(autouse=True)
def _no_code_has_run() -> Iterator[None]:
    RAN.clear()
    yield
    assert RAN == []


def _never(*_: object) -> Any:
    RAN.append("a method")
    raise RuntimeError("code of the value was run")


class Hostile:
    """Notes whatever is called of it."""

    __slots__ = ("__dict__", "slot")

    def __init__(self) -> None:
        object.__setattr__(self, "slot", 1)
        object.__getattribute__(self, "__dict__")["inside"] = "seen"

    __repr__ = __str__ = __len__ = __iter__ = __eq__ = __hash__ = __getattribute__ = __bool__ = _never
    __class__ = property(_never)  # type: ignore[assignment]


class HostileList(list[int]):
    __iter__ = __len__ = __repr__ = __getitem__ = _never


class HostileText(str):
    __slots__ = ()
    __str__ = __repr__ = __len__ = __getitem__ = _never


def test_no_code_of_a_value_runs() -> None:
    class HostileMeta(type):
        __getattribute__ = _never

    class OfHostileMeta(metaclass=HostileMeta):
        pass

    described = describe(Hostile())

    assert described["type"].endswith(".Hostile")
    assert {step: part.get("text") for step, part in described["parts"]} == {
        ".inside": "'seen'",
        ".slot": "1",
    }
    assert [part["text"] for _, part in describe(HostileList([1, 2]))["parts"]] == ["1", "2"]
    assert describe(HostileText("abc"))["text"] == "'abc'"
    assert describe(OfHostileMeta())["type"].endswith("OfHostileMeta")
    assert describe({Hostile: 1, "a": Hostile()})["len"] == 2
    objects = numpy.empty(1, dtype=object)
    objects[0] = Hostile()
    assert describe(objects)["parts"][0][1]["type"].endswith("Hostile")


class ComparingMeta(type):
    __eq__ = __hash__ = _never


class UnhashableMeta(type):
    def __eq__(cls, other: object) -> bool:
        return cls is other


@pytest.mark.parametrize("metaclass", [ComparingMeta, UnhashableMeta])
def test_no_code_of_a_metaclass_that_compares_types_runs(metaclass: type) -> None:
    kind = metaclass("Thing", (), {})
    value = kind()
    value.inside = 1

    assert describe(value)["parts"] == [[".inside", {"type": "int", "text": "1"}]]
    assert describe({"a": value})["parts"][0][1]["parts"]
    assert describe({value: 1})["parts"][0][0].endswith(".Thing>]")
    assert describe(kind)["text"].endswith(".Thing")


class HostileArray(numpy.ndarray):
    shape = dtype = flat = size = property(_never)
    __getitem__ = __len__ = __getattribute__ = _never


class ArrayOfOwnViews(numpy.ndarray):
    def __array_finalize__(self, other: object) -> None:
        RAN.append("a view")


class HostileSeries(pandas.Series):
    shape = dtype = iloc = property(_never)
    __getattribute__ = _never


class HostileFrame(pandas.DataFrame):
    shape = columns = iloc = property(_never)
    __getattribute__ = _never


@pytest.mark.parametrize("kind", [HostileArray, HostileSeries, HostileFrame])
def test_no_code_of_a_type_derived_from_an_array_or_a_table_runs(kind: type) -> None:
    value = numpy.ndarray.__new__(kind, 3) if kind is HostileArray else object.__new__(kind)
    described = describe({"inside": value})["parts"][0][1]

    assert described["type"].endswith(kind.__name__)
    assert described.get("shape") == ([3] if kind is HostileArray else None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (2.5, "2.5"),
        (None, "None"),
        (True, "True"),
        ("it's", '"it\'s"'),
        (b"\x00a", "b'\\x00a'"),
        (Path("/srv/x"), "/srv/x"),
        (
            datetime(2026, 1, 2, tzinfo=UTC),
            "datetime.datetime(2026, 1, 2, 0, 0, tzinfo=datetime.timezone.utc)",
        ),
        (decimal.Decimal("1.50"), "Decimal('1.50')"),
        (uuid.UUID(int=1), "UUID('00000000-0000-0000-0000-000000000001')"),
        (dict, "dict"),
        (collections, "collections"),
        ("\ud800", "'\\ud800'"),
    ],
)
def test_plain_values_are_shown_as_python_writes_them(value: object, text: str) -> None:
    assert describe(value)["text"] == text


def test_long_values_are_cut_and_say_their_length() -> None:
    long, many = describe("x" * 10_000_000), describe(list(range(10_000_000)))

    assert (long["len"], len(long["text"])) == (10_000_000, 1000)
    assert describe(10**5000)["text"] == "an integer of 16610 bits"
    assert (many["len"], len(many["parts"]), many["cut"]) == (10_000_000, 40, 9_999_960)
    assert describe({1: 2}, bounds=Bounds(depth=0, time_s=60))["cut"] == 1


def test_parts_are_named_as_python_reaches_them() -> None:
    @dataclass
    class Order:
        rows: list[dict[str, int]]

    described = describe(Order(rows=[{"id": 7}]))

    step, rows = described["parts"][0]
    assert step == ".rows"
    assert rows["parts"][0][1]["parts"][0] == ["['id']", {"type": "int", "text": "7"}]


def test_a_cycle_ends() -> None:
    ring: list[Any] = [1]
    ring.append(ring)

    assert describe(ring)["parts"][1][1]["text"] == "the same object, 1 levels up"


@pytest.mark.parametrize("name", ["password", "api_key", "AUTH_TOKEN", "client_secret", "cookie", "pwd"])
def test_secrets_are_hidden_by_name(name: str) -> None:
    assert describe("x1y2z3", name)["text"] == HIDDEN
    assert b"x1y2z3" not in orjson.dumps(describe({name: "x1y2z3", "n": SimpleNamespace(**{name: "x1y2z3"})}))
    assert describe(None, name)["text"] == "None"


def test_secrets_are_hidden_by_what_is_known_of_them() -> None:
    class Login(BaseModel):
        pin: SecretStr

    described = describe(
        [Login(pin="x1y2z3"), "postgresql://me:x1y2z3@host/db", {"pin": "x1y2z3"}],
        secret_names=frozenset({"pin"}),
    )
    redacted = describe(
        {"a": "it is x1y2z3", "b": "x1y2z3" * 400}, redact=lambda text: text.replace("x1y2z3", "*")
    )

    assert b"x1y2z3" not in orjson.dumps([described, redacted])
    assert redacted["parts"][0][1]["text"] == "'it is *'"


@pytest.mark.parametrize("many", [1, 3000])
def test_what_is_cut_within_a_secret_shows_no_part_of_it(many: int) -> None:
    secret = "x1y2z3" * 5

    def redact(text: str) -> str:
        return text.replace(secret, "*")

    for length in (190, 249, 990, 5090):
        text = "-" * length + secret * many
        for value in (text, text.encode(), [text], {text: 1}):
            assert b"x1" not in orjson.dumps(describe(value, redact=redact))


def test_arrays_and_tables_are_described_by_shape_and_head() -> None:
    array = describe(numpy.arange(6_000_000).reshape(2, -1))
    frame = describe(pandas.DataFrame({"id": range(100), "token": "x1y2z3"}))
    series = describe(pandas.Series([1.5, 2.5]))

    assert (array["shape"], array["dtype"], array["parts"][1][0]) == ([2, 3_000_000], "int64", ".flat[1]")
    assert frame["shape"] == [100, 2]
    assert [part["text"] for _, part in frame["parts"][0][1]["parts"]] == ["0", "1", "2", "3", "4"]
    assert frame["parts"][1][1]["text"] == HIDDEN
    assert (series["dtype"], series["parts"][1]) == (
        "float64",
        [".iloc[1]", {"type": "float", "text": "2.5"}],
    )


def test_a_masked_array_is_described_with_its_mask() -> None:
    masked = describe(numpy.ma.array([1, 2, 3], mask=[False, True, False]))
    plain = describe(numpy.ma.array([[1.5, 2.5]]))
    of_own_views = numpy.ma.array(numpy.zeros(2).view(ArrayOfOwnViews), mask=[True, True])
    RAN.clear()

    assert (masked["shape"], masked["dtype"]) == ([3], "int64")
    assert [part["text"] for _, part in masked["parts"]] == ["1", "None", "3"]
    assert [part["text"] for _, part in plain["parts"]] == ["1.5", "2.5"]
    assert [part["text"] for _, part in describe(of_own_views)["parts"]] == ["None", "None"]


def test_enumerations_and_exceptions_show_what_they_hold() -> None:
    class Colour(enum.Enum):
        RED = 1

    parts = dict(describe(Colour.RED)["parts"])
    assert parts["._name_"]["text"] == "'RED'"
    assert dict(describe(ValueError("bad"))["parts"])[".args"]["parts"] == [
        ["[0]", {"type": "str", "len": 3, "text": "'bad'"}]
    ]


def test_values_behind_the_time_are_described_by_their_type() -> None:
    ticks = iter(range(1000))

    described = describe([[1], [2], [3]], bounds=Bounds(time_s=3), clock=lambda: float(next(ticks)))

    assert described["parts"][0][1]["type"] == "list"
    assert described["parts"][2][1] == {"type": "list", "cut": True}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
    max_leaves=30,
)


@given(JSON)
def test_any_value_is_described_as_json(value: object) -> None:
    described = describe(value)
    assert orjson.loads(orjson.dumps(described)) == described
