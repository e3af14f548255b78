"""The parameters of a job type as fields of a form: made from the type's schema, and read back as the schema wants
them.

A field that is left empty is a parameter that is left out, so that defaults stay those of the type's code; only a
parameter that is required and may be null is null then. What no plain field can hold is written as JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson
from starlette.exceptions import HTTPException

from spinney.define.params.redaction import holds_secret
from spinney.define.params.schema import faults, from_words
from spinney.define.params.validation_errors import describe
from spinney.web.api.json_routes import read as read_json

PREFIX = "p."
"""The beginning of the names of these fields in a form, so that no parameter is taken for an option."""
MORE = "*"
"""The field for parameters that the schema does not name, where it allows any."""
_REFS_MAX = 8
"""How many references of a schema are followed; one that refers to itself ends here."""


class Kind(StrEnum):
    """How a parameter is written in a form, and so which control the form has for it: text, a number, a
    choice, a date, a secret (which is never filled in), or JSON for everything that no plain field can
    hold."""

    TEXT = "text"
    WORD = "word"
    """Text or something else, as a word of a command line."""
    NUMBER = "number"
    CHOICE = "choice"
    DATE = "date"
    SECRET = "secret"  # noqa: S105 - no secret
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamField:
    """One parameter of a job type as a field of a form, made from the type's schema. It has no value: a form
    has what was entered."""

    name: str
    kind: Kind
    required: bool
    """Whether the schema requires the parameter."""
    nullable: bool
    """Whether it may be null."""
    about: str
    """The description that the schema has for it; empty if it has none."""
    expects: str
    """What may be entered, in a few words."""
    default: str | None
    """The default that the schema names, as text; None: it names none."""
    choices: Sequence[str] = ()
    """The values of a choice."""
    least: float | None = None
    """The smallest number; None: no bound."""
    most: float | None = None
    """The largest number; None: no bound."""
    whole: bool = False
    """Whether only whole numbers are allowed."""


def fields(schema: Mapping[str, Any]) -> list[ParamField]:
    """Return the fields of a schema: the required ones first, otherwise in its order, and last the field
    ``MORE`` where the schema allows other parameters. An empty schema allows any, so that it has this field
    alone."""
    required = schema.get("required", ())
    param_list = [
        _field(schema, name, prop, name in required) for name, prop in schema.get("properties", {}).items()
    ]
    # Required ones first, so that people see at once what they have to fill in.
    param_list.sort(key=lambda field: not field.required)
    if schema.get("additionalProperties", True) is not False:
        param_list.append(
            ParamField(
                name=MORE,
                kind=Kind.JSON,
                required=False,
                nullable=False,
                about="",
                default=None,
                expects='an object, as in {"name": "value"}',
            )
        )
    return param_list


def read(schema: Mapping[str, Any], values: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parameters that a form names, and by parameter what is wrong: no JSON, or not what the
    schema allows. ``values``: the fields of the form by name, with ``PREFIX``; others are passed over. Where
    anything is wrong, the parameters are those that could be read."""
    params: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field in fields(schema):
        text = values.get(PREFIX + field.name, "")
        if not (text if field.kind in (Kind.TEXT, Kind.SECRET) else text.strip()):
            if field.required and field.nullable:
                params[field.name] = None
            continue
        try:
            value = _value(schema, field, text)
        except ValueError as error:
            wrong[field.name] = f"this is not JSON ({error}); enter {field.expects}"
            continue
        if field.name != MORE:
            params[field.name] = value
        elif isinstance(value, dict):
            params = value | params
        else:
            wrong[MORE] = f"this must be {field.expects}"
    return params, {**faults(schema, params), **wrong}


def _field(schema: Mapping[str, Any], name: str, prop: Mapping[str, Any], required: bool) -> ParamField:
    """Return the field of one property of the schema. The default of a secret is not shown."""
    core, nullable = _core(schema, prop)
    kind = _kind(schema, prop, core)
    default = prop.get("default")
    return ParamField(
        name=name,
        kind=kind,
        required=required,
        nullable=nullable,
        about=str(prop.get("description") or core.get("description") or ""),
        expects=describe(prop, schema),
        default=None if default is None or kind is Kind.SECRET else _text(default),
        choices=_choices(core) if kind is Kind.CHOICE else (),
        least=core.get("minimum"),
        most=core.get("maximum"),
        whole=core.get("type") == "integer",
    )


def _core(schema: Mapping[str, Any], prop: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the schema of a property without null, with references followed, and whether the property may be null."""
    nullable = False
    for _ in range(_REFS_MAX):
        if "$ref" in prop:
            prop = schema.get("$defs", {}).get(str(prop["$ref"]).rsplit("/", 1)[-1], {})
            continue
        if len(prop.get("allOf", ())) == 1:
            prop = prop["allOf"][0]
            continue
        others = [option for option in prop.get("anyOf", ()) if option.get("type") != "null"]
        nullable = nullable or len(others) < len(prop.get("anyOf", ()))
        if len(others) != 1:
            break
        prop = others[0]
    return prop, nullable


def _kind(schema: Mapping[str, Any], prop: Mapping[str, Any], core: Mapping[str, Any]) -> Kind:
    """Return how a property is written in a form: secrets and choices first, then by its type; what no plain field can
    hold is JSON."""
    if holds_secret(schema, prop):
        return Kind.SECRET
    if "enum" in core or "const" in core or core.get("type") == "boolean":
        return Kind.CHOICE
    if core.get("type") in ("integer", "number"):
        return Kind.NUMBER
    if core.get("type") == "string":
        return Kind.DATE if core.get("format") == "date" else Kind.TEXT
    plain = {"string", "integer", "number", "boolean"}
    if core.get("anyOf") and all(option.get("type") in plain for option in core["anyOf"]):
        return Kind.WORD
    return Kind.JSON


def _choices(core: Mapping[str, Any]) -> Sequence[str]:
    """Return the values of a choice as text."""
    return [_text(value) for value in _allowed(core)]


def _allowed(core: Mapping[str, Any]) -> Sequence[Any]:
    """Return the values that a choice allows; a property that is true or false allows both."""
    if "const" in core:
        return [core["const"]]
    enum: Sequence[Any] = core.get("enum", (True, False))
    return enum


def _value(schema: Mapping[str, Any], field: ParamField, text: str) -> Any:
    """Return the value that a text means. A text that cannot be converted is returned as it is, so that the schema says
    what is wrong. Raises ValueError for a field of JSON that has none."""
    if field.kind in (Kind.TEXT, Kind.DATE):
        return text
    core, _ = _core(schema, schema.get("properties", {}).get(field.name, {}))
    if field.kind is Kind.CHOICE:
        return next((value for value in _allowed(core) if _text(value) == text), text)
    if field.kind is Kind.WORD:
        return from_words(schema, {field.name: text})[field.name]
    if field.kind is Kind.SECRET and core.get("type") == "string":
        return text
    if field.kind is Kind.NUMBER:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text.strip()
    try:
        return read_json(text.encode("utf-8", "surrogatepass"))
    except HTTPException as error:
        raise ValueError(error.detail) from None


def _text(value: Any) -> str:
    """Return a JSON value as a field shows it: text as it is, other values as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
