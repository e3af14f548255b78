"""Subjects: what tells one job from another of its type, in a line that is safe to print."""

from typing import Any

import pytest
from pydantic import BaseModel

from spinney import Job, Spinney
from spinney.model.errors import UsageError
from spinney.model.subjects import SUBJECT_MAX, shortened, subject
from spinney.model.types import StageSpec, TypeSpec


def spec(template: str = "", **properties: Any) -> TypeSpec:
    schema = {"type": "object", "properties": properties} if properties else {}
    return TypeSpec(name="copy", stages=(StageSpec(name="copy"),), schema=schema, subject=template)


def test_given_a_template_when_filled_then_its_parameters_stand_in_it() -> None:
    copy = spec("{file} to {place}, twice: {twice}")

    assert subject(copy, {"file": "/a", "place": "b", "twice": True}) == "/a to b, twice: true"
    assert subject(copy, {"file": None}) == "to , twice:"


def test_given_a_template_then_parameters_that_were_not_given_have_their_defaults_unless_secret() -> None:
    order = {"default": {"kind": "open"}}
    deposit = spec("{ark} v{version}, {order.kind}{pin}", version={"default": 1}, order=order)
    secret = spec("{ark}{pin}", pin={"default": "1234", "writeOnly": True})

    assert subject(deposit, {"ark": "m5"}) == "m5 v1, open"
    assert subject(deposit, {"ark": "m5", "version": None, "order": {}}) == "m5 v,"
    assert subject(secret, {"ark": "m5"}) == "m5"


def test_given_a_template_with_fields_of_an_object_when_filled_then_they_stand_in_it() -> None:
    batch = spec("{order.name} by {order.who.name}", order={"type": "object"})

    assert subject(batch, {"order": {"name": "maps.zip", "who": {"name": "ann"}}}) == "maps.zip by ann"
    assert subject(batch, {"order": {"name": "maps.zip", "who": "ann"}}) == "maps.zip by"
    assert subject(batch, {}) == "by"


def test_given_no_template_then_texts_come_before_numbers_and_defaults_tell_nothing() -> None:
    copy = spec(
        "",
        level={"type": "integer"},
        file={"type": "string"},
        mode={"default": "fast"},
        deep={"default": False},
    )

    assert subject(copy, {"level": 3, "file": "/a", "mode": "fast", "deep": False}) == "/a · level=3"
    assert subject(copy, {"level": 3, "file": "/a", "mode": "slow"}) == "/a · slow"
    assert subject(copy, {"file": "", "deep": True}) == "deep=true"


def test_given_secrets_then_they_tell_nothing() -> None:
    login = spec(
        "",
        user={"type": "string"},
        password={"type": "string", "writeOnly": True},
        pin={"anyOf": [{"type": "string", "writeOnly": True}, {"type": "null"}]},
        level={"type": "integer"},
    )

    assert (
        subject(login, {"user": "ann", "password": "••••••", "pin": "••••••", "level": 3}) == "ann · level=3"
    )


def test_given_a_schema_that_an_application_has_written_then_the_values_are_shown() -> None:
    own = spec("", a={"anyOf": [True, {"type": "null"}]}, b={"anyOf": None})

    assert subject(own, {"a": "x", "b": "y"}) == "x · y"


def test_given_a_type_without_schema_or_none_then_the_parameters_are_shown_as_they_came() -> None:
    assert subject(spec(), {"b": "x", "a": 1}) == "x · a=1"
    assert subject(None, {"a": [1], "b": {"c": 1}}) == ""
    assert subject(None, "unreadable") == ""


def test_given_long_or_unprintable_values_then_it_is_one_bounded_line_with_both_ends() -> None:
    text = subject(None, {"file": "/very" * 100_000 + "/end.tar\n\x1b[2J"})

    assert len(text) <= SUBJECT_MAX
    assert text.startswith("/very/very")
    assert text.endswith("/end.tar [2J")
    assert text.isprintable()
    assert shortened("x" * 1000, 10) == "xxxxx…xxxx"


def test_given_a_declaration_then_its_subject_is_registered_and_an_unknown_parameter_refused() -> None:
    app = Spinney()

    @app.job(subject="{file}")
    def copy(job: Job, file: str) -> None: ...

    @app.job(subject="{fil}")
    def wrong(file: str) -> None: ...

    assert TypeSpec.from_json(copy.spec.to_json()).subject == "{file}"
    with pytest.raises(UsageError, match="no parameter 'fil'"):
        _ = wrong.spec
    with pytest.raises(UsageError, match="subject must be text"):
        app.pipeline("torn", subject="{file")


class Order(BaseModel):
    """The parameter of a job, with a field of any shape."""

    name: str
    about: dict[str, str] = {}


@pytest.mark.parametrize(
    ("template", "missing"),
    [
        ("{order.name}", None),
        ("{order.about.title}", None),
        ("{order.nmae}", "order.nmae"),
        ("{odrer.name}", "odrer.name"),
    ],
)
def test_given_a_field_of_an_object_then_its_model_must_declare_it(
    template: str, missing: str | None
) -> None:
    app = Spinney()

    @app.job(subject=template)
    def deposit(order: Order) -> None: ...

    if missing is None:
        assert deposit.spec.subject == template
    else:
        with pytest.raises(UsageError, match=f"no parameter '{missing}'"):
            _ = deposit.spec
