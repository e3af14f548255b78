"""Parameters of a type as fields of a form, and back."""

from typing import Any

import pytest

from spinney.web.pages.param_fields import MORE, PREFIX, Kind, fields, read

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "description": "How many copies."},
        "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "keep": {"type": "boolean", "default": False},
        "quality": {"$ref": "#/$defs/Quality"},
        "level": {"enum": [1, 2, "high"]},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "pin": {"type": "string", "writeOnly": True},
        "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "owner": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["title", "owner"],
    "additionalProperties": False,
    "$defs": {"Quality": {"enum": ["draft", "fine"], "type": "string"}},
}


def form(**texts: str) -> dict[str, str]:
    return {PREFIX + name: text for name, text in {"title": "a", **texts}.items()}


def test_given_a_schema_when_made_into_fields_then_each_has_its_kind_and_what_must_be_said_comes_first() -> (
    None
):
    by_name = {field.name: field for field in fields(SCHEMA)}

    assert list(by_name)[:2] == ["title", "owner"]
    assert {name: field.kind for name, field in by_name.items()} == {
        "title": Kind.TEXT,
        "count": Kind.NUMBER,
        "ratio": Kind.NUMBER,
        "keep": Kind.CHOICE,
        "quality": Kind.CHOICE,
        "level": Kind.CHOICE,
        "day": Kind.DATE,
        "tags": Kind.JSON,
        "pin": Kind.SECRET,
        "id": Kind.WORD,
        "owner": Kind.TEXT,
    }
    assert by_name["quality"].choices == ["draft", "fine"]
    assert (by_name["count"].about, by_name["count"].least, by_name["count"].whole) == (
        "How many copies.",
        1,
        True,
    )
    assert by_name["keep"].default == "false"
    assert by_name["ratio"].nullable


def test_given_a_field_that_is_an_object_then_its_names_are_said() -> None:
    crop = {"type": "object", "properties": {"left": {"type": "number"}, "right": {"type": "number"}}}
    schema = {
        "type": "object",
        "properties": {"crop": {"anyOf": [{"$ref": "#/$defs/Crop"}, {"type": "null"}]}},
        "additionalProperties": False,
        "$defs": {"Crop": crop},
    }

    (field,) = fields(schema)

    assert field.expects == "an object (left, right) or null"


def test_given_texts_when_read_then_they_are_what_the_schema_wants_and_what_is_empty_is_left_out() -> None:
    params, wrong = read(
        SCHEMA,
        form(
            count="3",
            ratio="0.5",
            keep="false",
            quality="fine",
            level="2",
            day="2030-01-31",
            tags='["x", "y"]',
            pin="secret",
            id="17",
            owner="",
        ),
    )

    assert not wrong
    assert params == {
        "title": "a",
        "owner": None,
        "count": 3,
        "ratio": 0.5,
        "keep": False,
        "quality": "fine",
        "level": 2,
        "day": "2030-01-31",
        "tags": ["x", "y"],
        "pin": "secret",
        "id": 17,
    }
    assert read(SCHEMA, form(id="A17", level="high"))[0] == {
        "title": "a",
        "owner": None,
        "id": "A17",
        "level": "high",
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("count", "three", "must be a whole number at least 1, not 'three'"),
        ("count", "0", "must be a whole number at least 1, not 0"),
        ("ratio", "NaN", "must be a number"),
        ("quality", "rough", "must be one of 'draft', 'fine', not 'rough'"),
        ("tags", "x, y", "not JSON"),
        ("tags", "[1]", "'tags.0'"),
        ("tags", "[" * 200 + "]" * 200, "nested"),
        ("title", "", "is missing"),
    ],
)
def test_given_what_cannot_be_meant_when_read_then_it_is_told_at_its_field(
    name: str, text: str, message: str
) -> None:
    _, wrong = read(SCHEMA, form(**{name: text}))

    assert list(wrong) == [name]
    assert message in wrong[name]


def test_given_a_secret_that_does_not_fit_when_read_then_its_value_is_not_told() -> None:
    schema = {"properties": {"pin": {"type": "string", "writeOnly": True, "pattern": "^[0-9]+$"}}}

    _, wrong = read(schema, {PREFIX + "pin": "letmein"})

    assert list(wrong) == ["pin"]
    assert "letmein" not in wrong["pin"]


def test_given_an_open_schema_when_more_is_written_then_it_is_an_object_beside_the_others() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    assert [field.name for field in fields(schema)] == ["n", MORE]
    assert read(schema, {PREFIX + "n": "1", PREFIX + MORE: '{"m": 2}'}) == ({"n": 1, "m": 2}, {})
    assert list(read(schema, {PREFIX + MORE: "[1]"})[1]) == [MORE]
    assert [field.name for field in fields({})] == [MORE]
