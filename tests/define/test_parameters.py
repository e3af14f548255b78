"""Parameters: what is taken, what is refused by which name, with the code and without."""

from dataclasses import InitVar, dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import pytest
from annotated_types import Ge
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    Json,
    PlainSerializer,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    computed_field,
    create_model,
)

from spinney import Spinney
from spinney.define.job.options import Options
from spinney.define.jobtype.parameters import Parameters, reader
from spinney.define.jobtype.signature import DeclaredParameter, Signature
from spinney.define.params import schema as schemas
from spinney.define.params.schema import checker, from_words, schema_checker
from spinney.define.params.validation_errors import JOB_OPTIONS, describe
from spinney.model.errors import BadParameters, UsageError
from spinney.model.types import LockSpec, StageSpec, TypeSpec


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Number(IntEnum):
    ONE = 1
    TWO = 2


class Year(StrEnum):
    FIRST = "2024"


class Box(BaseModel):
    width: int
    height: int = 1


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str = ""


class Reply(BaseModel):
    sender: str = Field(alias="from")


class Sender(BaseModel):
    """Read by its name, and written by another for others."""

    name: str = Field(serialization_alias="from")


class Area(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def square(self) -> int:
        return self.width**2


class Blob(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_timedelta="float")
    raw: bytes
    age: timedelta = timedelta(minutes=5)


class Keys(BaseModel):
    by_day: dict[date, SecretStr] = Field(alias="by day")
    in_order: tuple[SecretBytes, int]


@dataclass
class Point:
    x: float


def parameters(*, locks: tuple[str, ...] = (), **fields: Any) -> Parameters:
    """Names to annotations; a name that ends in ``_`` may be left out."""
    declared = {
        name.rstrip("_"): DeclaredParameter(annotation=annotation, required=not name.endswith("_"))
        for name, annotation in fields.items()
    }
    return Parameters("resize", declared, lock_templates=locks)


def refused_with_code(params: Parameters, row: Any) -> str:
    with pytest.raises(BadParameters) as caught:
        params.text(row)
    return str(caught.value)


def refused_by_schema(params: Parameters, row: Any) -> str:
    schema = orjson.loads(orjson.dumps(params.schema))
    with pytest.raises(BadParameters) as caught:
        schema_checker("resize", schema)(row)
    return str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (int, 5, "5"),
        (int, "5", "5"),
        (float, 5, "5.0"),
        (Any, {"a": [1, None]}, '{"a":[1,null]}'),
        (Path, Path("a/b"), '"a/b"'),
        (Path | None, None, "null"),
        (list[Path], ["a", Path("b")], '["a","b"]'),
        (dict[str, Path], {"k": Path("b")}, '{"k":"b"}'),
        (datetime, datetime(2030, 1, 31, tzinfo=UTC), '"2030-01-31T00:00:00Z"'),
        (date, "2030-01-31", '"2030-01-31"'),
        (Colour, Colour.RED, '"red"'),
        (Literal["a", "b"], "b", '"b"'),
        (Box, Box(width=2), '{"width":2,"height":1}'),
        (Box, {"width": 2}, '{"width":2,"height":1}'),
        (Point, Point(1.5), '{"x":1.5}'),
        (tuple[int, str], (1, "a"), '[1,"a"]'),
    ],
)
def test_lawful_values_become_json_that_the_schema_takes_too(annotation: Any, value: Any, text: str) -> None:
    params = parameters(value=annotation)
    stored = params.text({"value": value})
    assert stored == f'{{"value":{text}}}'
    schema_checker("resize", params.schema)(orjson.loads(stored))


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (Reply, {"from": "ann"}, '{"from":"ann"}'),
        (Sender, {"name": "ann"}, '{"name":"ann"}'),
        (Area, {"width": 2}, '{"width":2}'),
        (Json[list[int]], "[1,2]", '"[1,2]"'),
        (Blob, {"raw": b"hell"}, '{"raw":"aGVsbA==","age":300.0}'),
        (
            Keys,
            {"by day": {"2030-01-31": "first"}, "in_order": (b"second", 1)},
            '{"by day":{"2030-01-31":"first"},"in_order":["second",1]}',
        ),
    ],
)
def test_a_stage_gets_what_was_submitted(annotation: Any, value: Any, text: str, *, secret: bool) -> None:
    fields = {"value": annotation, "password": SecretStr if secret else str}
    expected = TypeAdapter(annotation).validate_python(value)

    stored = parameters(**fields).text(
        {"value": expected if isinstance(expected, BaseModel) else value, "password": "x"}
    )

    assert stored == f'{{"value":{text},"password":"x"}}'
    declared = {n: DeclaredParameter(annotation=a, required=True) for n, a in fields.items()}
    assert reader("a stage", Signature(fields=declared))(stored)["value"] == expected


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"picture": "a", "width": "wide"}, "parameter 'width' must be a whole number, not 'wide'"),
        ({"picture": "a", "width": None}, "parameter 'width' must be a whole number, not null"),
        ({"picture": 5}, "parameter 'picture' must be a path, not 5"),
        ({"width": 5}, "parameter 'picture' is missing"),
        ({"picture": "a", "widht": 5}, "there is no parameter 'widht' (did you mean 'width'?)"),
        ({"picture": "a", "zzz": 5}, "there is no parameter 'zzz'."),
        (
            {"picture": "a", "priority": 5},
            "no parameter 'priority' (an option of a job is given beside its parameters, as in .options(priority=…))",
        ),
        ({"picture": "a", "when": "soon"}, "parameter 'when' must be a date and time such as"),
        ({"picture": "a", "mode": "z"}, "parameter 'mode' must be one of 'fit', 'fill', not 'z'"),
        ({"picture": "a", "many": -1}, "parameter 'many' must be a whole number at least 0, not -1"),
        ({"picture": "a", "either": []}, "parameter 'either' "),
        ({"picture": "a", "either": 1.5}, "parameter 'either' must be a whole number or text, not 1.5"),
        ({"picture": "a", "box": {"width": "x"}}, "parameter 'box' is wrong at 'box.width', 'x': "),
        (
            {"picture": "a", "pet": {"kind": "cow"}},
            "parameter 'pet' must be an object (kind, lives) or an object (kind, bark), not {'kind': 'cow'}",
        ),
    ],
)
@pytest.mark.parametrize("refused", [refused_with_code, refused_by_schema])
def test_what_is_wrong_is_named_alike_with_the_code_and_without(
    refused: Any, row: Any, sentence: str
) -> None:
    params = parameters(
        picture=Path,
        width_=int,
        when_=datetime,
        mode_=Literal["fit", "fill"],
        many_=Annotated[int, Ge(0)],
        either_=int | str,
        box_=Box,
        pet_=Annotated[Cat | Dog, Field(discriminator="kind")],
    )
    message = refused(params, row)
    assert message.startswith("job type 'resize'")
    assert sentence in message
    assert "It takes picture (a path), width (a whole number, optional)" in message
    assert message.endswith("Nothing was submitted; correct this and submit again")


@dataclass
class Corner:
    x: float


@dataclass
class Price:
    amount: Decimal = 1  # type: ignore[assignment]


def test_an_instance_whose_fields_no_stage_could_read_is_refused() -> None:
    params = parameters(corner=Corner, price_=Price)
    with pytest.raises(
        BadParameters, match=r"parameter 'corner' is wrong at 'corner.x', 'left': .* valid number"
    ):
        params.text({"corner": Corner("left")})  # type: ignore[arg-type]
    for wrong in (Corner(float("nan")), Corner(None)):  # type: ignore[arg-type]
        with pytest.raises(BadParameters, match=r"parameter 'corner' is wrong at 'corner\.x'"):
            params.text({"corner": wrong})
    row = {"corner": Corner(1.0), "price": Price()}
    assert params.text(row) == '{"corner":{"x":1.0},"price":{"amount":1}}'


def test_a_type_without_declared_parameters_takes_any() -> None:
    app = Spinney()

    @app.job
    def anything(**rest: int) -> None: ...

    @app.job
    def nothing() -> None: ...

    with pytest.raises(BadParameters, match="It takes any parameters"):
        anything.texts([5])  # type: ignore[list-item]
    with pytest.raises(BadParameters, match="It takes no parameters"):
        nothing.texts([{"n": 5}])


def test_the_options_of_a_job_are_those_that_messages_know() -> None:
    assert {field.name for field in fields(Options)} == JOB_OPTIONS


@pytest.mark.parametrize(
    ("annotation", "texts"),
    [
        (datetime, ["2030-01-31T08:00:00Z", "2030-01-31 08:00", "2030-01-31"]),
        (date, ["2030-01-31"]),
        (time, ["08:00", "08:00:00Z", "08:00:00.5", "08:00:00+02:00"]),
        (timedelta, ["PT15M", "-PT15M", "P1D", "00:05", "1 day, 00:05:00"]),
        (HttpUrl, ["https://example.org", "http://[::1]:8080/a?b=c#d"]),
        (AnyUrl, ["mailto:ann@example.org", "s3://bucket/key", "urn:isbn:1"]),
        (dict[Number, str], [{"1": "first"}]),
        (dict[Colour, str], [{"red": "first"}]),
        (dict[date, str], [{"2030-01-31": "first"}]),
    ],
)
def test_texts_that_the_stage_reads_are_lawful_by_schema_alone(annotation: Any, texts: list[Any]) -> None:
    params = parameters(value=annotation)
    for text in texts:
        params.text({"value": text})
        schema_checker("resize", params.schema)({"value": text})


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        (datetime, "2030-W05-1", "a date and time such as"),
        (date, "2030-W05-1", "a date such as"),
        (time, "8 o'clock", "a time such as"),
        (timedelta, "nonsense", "a duration such as"),
        (timedelta, "15m", "a duration such as"),
        (IPv4Address, "::1", "an IPv4 address, not '::1'"),
        (IPv6Address, "10.0.0.1", "an IPv6 address, not '10.0.0.1'"),
        (HttpUrl, "example.org", "a URL such as 'https://example.org/', not 'example.org'."),
    ],
)
@pytest.mark.parametrize("refused", [refused_with_code, refused_by_schema])
def test_texts_that_the_stage_cannot_read_are_refused(
    refused: Any, annotation: Any, text: str, expected: str
) -> None:
    assert f"parameter 'value' must be {expected}" in refused(parameters(value=annotation), {"value": text})


class Right(Flag):
    READ = 1
    WRITE = 2
    BOTH = READ | WRITE
    SHARE = 4


def test_flags_may_be_combined_by_schema_as_with_the_code() -> None:
    params = parameters(rights=Right, number_=IntFlag("Bits", ["A", "B"]))
    for rights in (0, 1, 3, 7):
        assert params.text({"rights": Right(rights)}) == f'{{"rights":{rights}}}'
        schema_checker("resize", params.schema)({"rights": rights, "number": 9})
    for refused in (refused_with_code, refused_by_schema):
        assert "parameter 'rights' " in refused(params, {"rights": 8})


@pytest.mark.parametrize("digits", ["20300131", "0", "-5", "1700000000.5"])
@pytest.mark.parametrize("annotation", [datetime, date, time, timedelta])
def test_digits_alone_are_no_time_by_schema(annotation: Any, digits: str) -> None:
    assert "parameter 'value' must be a" in refused_by_schema(parameters(value=annotation), {"value": digits})


@pytest.mark.parametrize("refused", [refused_with_code, refused_by_schema])
def test_a_wrong_key_is_named(refused: Any) -> None:
    params = parameters(by=dict[Number, str], when_=dict[date, str])
    for row, place in [
        ({"by": {"1": "first", "3": "third"}}, "'by' is wrong at 'by.3"),
        ({"by": {"x": "first"}}, "'by' is wrong at 'by.x"),
        ({"by": {}, "when": {"soon": "first"}}, "'when' is wrong at 'when.soon"),
    ]:
        assert place in refused(params, row)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[int, PlainSerializer(lambda number: f"n{number}")], 5),
        (create_model("Excluded", n=(int, Field(exclude=True))), {"n": 5}),
        (
            create_model("Renamed", n=(int, Field(validation_alias="N", serialization_alias="number"))),
            {"N": 5},
        ),
    ],
)
def test_what_would_be_stored_as_the_stage_cannot_read_it_is_refused(annotation: Any, value: Any) -> None:
    with pytest.raises(
        UsageError, match="what would be stored of parameter 'value' is not what its annotation"
    ):
        parameters(value=annotation).text({"value": value})


def test_so_is_what_a_validator_returns_but_does_not_take() -> None:
    params = parameters(names=Annotated[list[str], BeforeValidator(lambda text: text.split(","))])
    with pytest.raises(
        UsageError, match=r"stored of a parameter is not .* its validators take what they return"
    ):
        params.text({"names": "a,b"})


@dataclass
class Derived:
    n: int
    twice: int = field(init=False, default=0)


@pytest.mark.parametrize("value", [{"n": 5}, Derived(5)])
def test_a_field_that_is_stored_but_not_read_is_no_fault(value: Any) -> None:
    assert parameters(value=Derived).text({"value": value}) == '{"value":{"n":5,"twice":0}}'


@dataclass
class Scaled:
    n: int
    scale: InitVar[int] = 1


@pytest.mark.parametrize("annotation", [Scaled, dict[str, list[Scaled]]])
def test_a_dataclass_that_does_not_keep_what_it_takes_is_no_parameter(annotation: Any) -> None:
    with pytest.raises(UsageError, match=r"'value' .*: 'scale' is an InitVar, which a dataclass does not"):
        _ = parameters(value=annotation).schema


@pytest.mark.parametrize("row", [5, None, "text", [1]])
def test_parameters_are_an_object(row: Any) -> None:
    assert "job type 'resize'" in refused_with_code(parameters(n=int), row)
    assert "must be a JSON object" in refused_by_schema(parameters(n=int), row)


def test_a_whole_number_is_no_decimal_one_by_schema() -> None:
    refused_by_schema(parameters(n=int), {"n": 1.0})
    refused_by_schema(parameters(n=int), {"n": True})


@pytest.mark.parametrize("value", [2**70, {1, 2}, object(), float("nan"), "\udc80"])
def test_what_json_has_no_form_for_is_refused_by_name(value: Any) -> None:
    params = parameters(good=str, odd=Any if not isinstance(value, float | str) else type(value))
    assert "parameter 'odd' " in refused_with_code(params, {"good": "x", "odd": value})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    "annotation", [dict, list, Any, dict[str, list[Any]], create_model("Gains", gains=list[float])]
)
def test_a_number_that_json_does_not_have_is_refused_at_any_depth(annotation: Any, number: float) -> None:
    value = [1.0, number] if annotation is list else {"gains": [1.0, number]}
    params = parameters(good=str, odd=annotation)
    assert "parameter 'odd' must be" in refused_with_code(params, {"good": "null", "odd": value})


def test_a_model_that_takes_null_does_not_get_it_for_nan_in_any_row() -> None:
    params = parameters(fit=create_model("Fit", slope=(float | None, None), rest=(dict[str, Any], {})))
    for fit in ({"slope": float("nan")}, {"rest": {"a": [float("inf")]}}):
        with pytest.raises(
            BadParameters, match=r"job 2 of the list: parameter 'fit' must be .* NaN or infinity"
        ):
            params.texts([{"fit": {"slope": 1.0}}, {"fit": fit}])


def test_null_stays_lawful_at_any_depth() -> None:
    params = parameters(odd=Any)
    assert params.text({"odd": {"a": [None, 1.5]}}) == '{"odd":{"a":[null,1.5]}}'


def test_a_bad_row_deep_in_a_long_list_is_named_by_its_number() -> None:
    rows = [{"n": n} for n in range(3000)] + [{"n": "x"}]
    with pytest.raises(BadParameters, match="job 3001 of the list: parameter 'n'"):
        parameters(n=int).texts(rows)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "'serno' is missing or null"),
        ("", "'serno' is empty, but the lock"),
        ([1], "'serno' is neither text nor a number, but the lock"),
        ("../x", "'serno' names the lock 'r:{serno}'"),
    ],
)
def test_a_lock_that_cannot_be_named_is_refused(value: Any, sentence: str) -> None:
    params = parameters(serno=str | list[int] | None, locks=("r:{serno}",))
    with pytest.raises(BadParameters) as with_code:
        params.text({"serno": value})
    spec = TypeSpec(
        name="resize",
        stages=(StageSpec(name="s", locks=(LockSpec(template="r:{serno}"),)),),
        schema=params.schema,
    )
    with pytest.raises(BadParameters) as by_schema:
        checker(spec)({"serno": value})
    assert sentence in str(with_code.value)
    assert sentence in str(by_schema.value)


@pytest.mark.parametrize(
    ("bounds", "description"),
    [
        ({"minLength": 1}, "text of at least 1 character"),
        ({"maxLength": 8}, "text of at most 8 characters"),
        ({"minLength": 3, "maxLength": 8}, "text of 3 to 8 characters"),
        ({"minLength": 2, "maxLength": 2, "pattern": "^[a-z]+$"}, "text of 2 characters matching ^[a-z]+$"),
    ],
)
def test_the_length_of_a_text_is_said_in_words(bounds: dict[str, Any], description: str) -> None:
    assert describe({"type": "string", **bounds}, {}) == description


PLAIN = {"s": str, "i_": int, "f_": float, "b_": bool | None, "p_": Path}
_numbers = st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False)
_values = st.none() | _numbers | st.text(max_size=3) | st.lists(st.integers())


@given(st.dictionaries(st.sampled_from(["s", "i", "f", "b", "p", "x"]), _values))
def test_the_quick_way_through_a_schema_never_disagrees_with_the_long_one(row: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    schema = parameters(**PLAIN).schema
    try:
        schema_checker("resize", schema)(row)
        taken = True
    except BadParameters:
        taken = False
    decimal = isinstance(row.get("i"), float)  # 1.0 is an integer to JSON schema, not to us
    assert taken == (not decimal and Draft202012Validator(schema).is_valid(row))


def test_a_default_does_not_take_parameters_off_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    field = DeclaredParameter(annotation=int | None, required=False, default=2)
    schema = Parameters("resize", {"n": field}).schema
    assert schema["properties"]["n"]["default"] == 2
    monkeypatch.setattr(schemas, "_validator", None)  # the long one would fail

    schema_checker("resize", schema)({"n": 3})
    schema_checker("resize", schema)({})


@pytest.mark.parametrize(
    ("annotation", "word", "value"),
    [
        (str, "5", "5"),
        (int, "5", 5),
        (int, "five", "five"),
        (int | str, "5", 5),
        (int | str, "x", "x"),
        (str | None, "null", None),
        (str | None, "5", "5"),
        (bool, "true", True),
        (list[int], "[1,2]", [1, 2]),
        (Path, "12", "12"),
        (Any, "5", 5),
        (Any, "hello", "hello"),
        (Decimal, "12345678901234567890.55", "12345678901234567890.55"),
        (Decimal | None, "1.50", "1.50"),
        (Decimal, "1.5", 1.5),
        (float | str, "1.50", 1.5),
        (Decimal, "123456789012345678901234567890", "123456789012345678901234567890"),
        (Any, "-123456789012345678901234567890", "-123456789012345678901234567890"),
        (Any, "18446744073709551615", 18446744073709551615),
        (Any, "1e30", 1e30),
        (float | None, "123456789012345678901234567890", 123456789012345678901234567890.0),
        (Year, "2024", "2024"),
        (Year | None, "2024", "2024"),
        (Year | None, "null", None),
        (Literal["5", 7], "5", "5"),
        (Literal["5", 7], "7", 7),
        (Literal["5"] | int, "5", "5"),
        (Literal["5"] | int, "6", 6),
        (Box, '{"width":2}', {"width": 2}),
    ],
)
def test_words_of_a_command_line_are_read_as_the_schema_wants(annotation: Any, word: str, value: Any) -> None:
    assert from_words(parameters(v=annotation).schema, {"v": word}) == {"v": value}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-inf", "much", ""])
def test_a_decimal_is_a_finite_number_without_the_code_as_with_it(text: str) -> None:
    declared = parameters(v=Decimal)
    check = schema_checker("pay", declared.schema)
    check({"v": "12345678901234567890.55"})
    check({"v": 1})

    with pytest.raises(BadParameters, match=f"'v' must be a number or a number as text .*, not '{text}'"):
        check({"v": text})
    with pytest.raises(BadParameters, match=f"'v' must be a number or a number as text .*, not '{text}'"):
        declared.text({"v": text})


@pytest.mark.parametrize(
    ("bounds", "lawful", "wrong", "expected"),
    [
        ({"ge": 0}, ["0", "-0.0", 0], ["-5", "-0.01", -5], "'1.50' at least 0.0"),
        ({"gt": 0, "lt": Decimal("0.3")}, ["0.29999999999999999"], ["0", "0.3", "3e-1"], "less than 0.3"),
        ({"multiple_of": Decimal("0.1")}, ["0.3", "-12.7", 0.3], ["0.35", 0.35], "that is a multiple of 0.1"),
        ({"max_digits": 4}, ["12.34", 12.34], ["123.45", 123.45], "number with at most 4 digits"),
        ({"decimal_places": 1}, ["1.5", 1.5, 7], ["1.55", 1.55], "number with at most 1 decimal place "),
        (
            {"ge": 0, "allow_inf_nan": True},
            ["inf", "0"],
            ["NaN", "-inf", "-5", "much"],
            "'1.50' at least 0.0",
        ),
        ({"allow_inf_nan": True}, ["NaN", "-Infinity", "7"], ["much", ""], "a number as text such as '1.50'"),
    ],
)
@pytest.mark.parametrize("form", [lambda decimal: decimal, lambda decimal: decimal | None])
def test_the_bounds_of_a_decimal_hold_for_text_too(
    form: Any, bounds: dict[str, Any], lawful: list[Any], wrong: list[Any], expected: str
) -> None:
    params = parameters(value=form(Annotated[Decimal, Field(**bounds)]))
    for value in lawful:
        params.text({"value": value})
        schema_checker("pay", params.schema)({"value": value})
    for value in wrong:
        for refused in (refused_with_code, refused_by_schema):
            assert expected in refused(params, {"value": value})


@pytest.mark.parametrize(
    ("annotation", "lawful", "wrong"),
    [
        (Annotated[float, Field(multiple_of=0.1)], [0.3, 0.7, 5], [0.35]),
        (Annotated[int, Field(multiple_of=3)], [2**60 - 1], [2**60]),
    ],
)
def test_multiples_are_judged_without_the_code_as_with_it(
    annotation: Any, lawful: list[float], wrong: list[float]
) -> None:
    params = parameters(value=annotation)
    for value in lawful:
        params.text({"value": value})
        schema_checker("pay", params.schema)({"value": value})
    for value in wrong:
        for refused in (refused_with_code, refused_by_schema):
            assert "multiple of" in refused(params, {"value": value})


@pytest.mark.parametrize(
    ("annotation", "kinds"), [(int | str, ["integer", "string"]), (str | int, ["string", "integer"])]
)
def test_types_whose_unions_are_equal_have_each_its_own_order(annotation: Any, kinds: list[str]) -> None:
    assert [kind["type"] for kind in parameters(v=annotation).schema["properties"]["v"]["anyOf"]] == kinds
