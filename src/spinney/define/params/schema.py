"""Check parameters by the JSON schema that nodes registered, for submission without the application's code.

Command lines, servers and stages of other applications submit this way. A schema says less than code:
validators that are functions run only in the stage. Most jobs pass a quick check of plain types; only what
that does not accept goes through jsonschema, which is imported then."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import orjson

from spinney.define.params.environment import check_variables
from spinney.define.params.redaction import (
    alternatives_of,
    has_secrets,
    redaction_schema,
    require_not_redacted,
    secrets_in,
)
from spinney.define.params.validation_errors import (
    ALLOW_INF_NAN,
    DECIMAL_DIGITS,
    WHOLE,
    Problem,
    ProblemKind,
    check_locks,
    property_of,
    sentence,
    validation_error,
)
from spinney.define.params.values import NOT_FINITE, not_finite, params_to_text
from spinney.model.errors import BadParameters
from spinney.model.types import TypeSpec

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Check = Callable[[Any], None]
"""A function that raises BadParameters unless its argument is valid."""


def checker(spec: TypeSpec) -> Check:
    """Return a function that checks parameters of jobs of this type by its schema and its locks; it is meant for many
    jobs."""
    fits = schema_checker(spec.name, spec.schema)
    templates = tuple(lock.template for stage in spec.stages for lock in stage.locks)
    undeclared = spec.schema.get("additionalProperties") is not False
    by_environment = undeclared and any(stage.program for stage in spec.stages)

    def check(params: Any) -> None:
        fits(params)
        if spec.former_secrets:  # which are shown redacted, so that what is shown must not be given back
            require_not_redacted(spec.name, redaction_schema(spec), params)
        if by_environment:
            check_variables(spec.name, params)
        check_locks(spec.name, templates, params)

    return check


def checked_text(type_name: str, schema: Mapping[str, Any], params: Mapping[str, Any], check: Check) -> str:
    """Return the JSON text of parameters that code has for a job of another application's type, whose schema this is.
    Raises BadParameters, as ``check`` does, and for what could not be stored as it is: NaN, infinity, and a secret
    where the schema has none, which would be shown."""
    text, secrets = params_to_text(params, f"a parameter of {type_name!r}")
    json_params = orjson.loads(text)
    if secrets and not set(secrets) <= set(secrets_in(schema, json_params)):
        raise BadParameters(
            f"job type {type_name!r}: a secret is where the type declares none, and so it would be shown. Nothing was "
            f"submitted; declare the parameter as a secret there, or pass the secret's value (get_secret_value) itself"
        )
    check(json_params)
    name = not_finite(params) if "null" in text else None
    if name is not None:
        problem = Problem(ProblemKind.WRONG, name, params[name], NOT_FINITE)
        raise validation_error(type_name, schema, [problem])
    return text


def faults(schema: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, str]:
    """Return by parameter a sentence that says what is wrong with it; empty when all are valid. Forms show it at the
    field."""
    sentences: dict[str, str] = {}
    for error in _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)).iter_errors(params):
        for problem in _problems(schema, params, error):
            sentences.setdefault(problem.name.split(".")[0], sentence(schema, problem))
    return sentences


def from_words(schema: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters from ``name=text`` pairs of a command line, a form or a line of CSV.

    A text is taken as it is where the schema expects a string, else read as JSON; a text that is no JSON
    stays text, and validation says what is wrong with it. Names that the schema does not have are kept, for
    validation to refuse."""
    return {name: _word(schema, property_of(schema, name), text) for name, text in words.items()}


def schema_checker(type_name: str, schema: Mapping[str, Any]) -> Check:
    """Return a function that raises BadParameters for parameters that do not fit the schema; it prepares what
    does not depend on the parameters."""
    quick, secret = _Quick.of(schema), has_secrets(schema)
    text = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)

    def check(params: Any) -> None:
        if not isinstance(params, dict):
            shown = f"{type(params).__name__}, which may hold a secret" if secret else repr(params)
            raise BadParameters(
                f"the parameters of job type {type_name!r} must be a JSON object such as "
                f'{{"name": "value"}}, not {shown}; correct this and submit again'
            )
        if not schema or (quick is not None and quick.fits(params)):
            return
        errors = list(_validator(text).iter_errors(params))
        if errors:
            raise validation_error(
                type_name, schema, (p for e in errors for p in _problems(schema, params, e))
            )
        if secret:
            require_not_redacted(type_name, schema, params)

    return check


class _Quick(NamedTuple):
    """Accepts parameters that obviously match a simple schema; all others are checked by jsonschema.

    jsonschema takes some 40 microseconds a job, this check half a microsecond.
    """

    types: dict[str, frozenset[type]]
    required: frozenset[str]

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> "_Quick | None":
        """Return the quick check for a schema; None for one that says more than types and required
        parameters, or allows unknown ones."""
        if schema.keys() - _QUICK_KEYS or schema.get("additionalProperties") is not False:
            return None
        types = {name: _quick_types(prop) for name, prop in schema.get("properties", {}).items()}
        return cls(types, frozenset(schema.get("required", ())))

    def fits(self, params: Mapping[str, Any]) -> bool:
        """Return whether the parameters are valid for certain. When this is False they may still be valid: the whole
        schema decides."""
        types = self.types
        if not self.required <= params.keys():
            return False
        return all(name in types and type(value) in types[name] for name, value in params.items())


def _quick_types(prop: Mapping[str, Any]) -> frozenset[type]:
    """Return the Python types whose values are valid for certain; none when more has to be checked."""
    keys = prop.keys() - {"default"}  # which says nothing about what is valid
    if keys == {"anyOf"}:
        return frozenset[type]().union(*(_quick_types(p) for p in prop["anyOf"]))
    plain = keys == {"type"} or (keys == {"type", "format"} and prop["format"] == "path")
    return frozenset(_QUICK_TYPES.get(str(prop["type"]), ())) if plain else frozenset()


_QUICK_KEYS = {"type", "properties", "required", "additionalProperties"}
_QUICK_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


# --- jsonschema --------------------------------------------------------------------------------


_TIMES = {"date-time": datetime, "date": date, "time": time, "duration": timedelta}
"""The formats that are checked as pydantic reads them for the stage; jsonschema has other rules, or none."""
_DECIMAL_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    **DECIMAL_DIGITS,
    ALLOW_INF_NAN: "allow_inf_nan",
}
"""The bounds of a ``Decimal`` in a schema, with their names in pydantic."""


@lru_cache(maxsize=256)
def _validator(schema_text: bytes) -> "Validator":
    # Imported here, so that only submissions without the application's code pay for it, never a worker.
    from jsonschema import Draft202012Validator, FormatChecker, validators
    from pydantic import AnyUrl, TypeAdapter

    formats = FormatChecker()
    url: Callable[[str], object] = TypeAdapter(AnyUrl).validate_python
    formats.checks("uri", raises=ValueError)(lambda value: not isinstance(value, str) or bool(url(value)))
    for name, time_type in _TIMES.items():
        read: Callable[[str], object] = TypeAdapter(time_type).validate_python
        formats.checks(name, raises=ValueError)(partial(_is_time, read))
    # JSON schema accepts 1.0 as an integer; the function would get a float.
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, v: type(v) is int)
    own = {
        "propertyNames": _property_names,
        "format": partial(_format, Draft202012Validator.VALIDATORS["format"]),
        "multipleOf": _multiple_of,
    }
    kind: Any = validators.extend(Draft202012Validator, own, type_checker=types)  # type: ignore[no-untyped-call]
    validator: Validator = kind(orjson.loads(schema_text), format_checker=formats)
    return validator


def _is_time(read: Callable[[str], object], value: object) -> bool:
    """Return whether a text is a date, time or duration; ``read`` raises ValueError for others. It takes digits alone
    for seconds since 1970, so that 20300131 would be a day of that year: nobody means that."""
    if not isinstance(value, str):
        return True
    return not value.lstrip("+-").replace(".", "", 1).isdigit() and read(value) is not None


def _format(
    standard: Any, validator: Any, name: str, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    """Yield an error for a value that does not have the format. A ``Decimal`` is judged together with its bounds, which
    JSON schema has for numbers only, and not for numbers as text."""
    from jsonschema import ValidationError

    if name != "decimal":
        yield from standard(validator, name, instance, schema)
    elif isinstance(instance, str | int | float):
        bounds = ((field, schema[key]) for key, field in _DECIMAL_BOUNDS.items() if key in schema)
        try:
            _number_reader(Decimal, tuple(bounds))(instance)
        except ValueError:
            yield ValidationError(f"{instance!r} is no such number")


def _multiple_of(_: Any, divisor: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield an error for a number that is no multiple, as pydantic judges it for the stage: jsonschema divides floats,
    and then 0.3 is no multiple of 0.1. A ``Decimal`` is judged with its format."""
    from jsonschema import ValidationError

    if type(instance) not in (int, float) or schema.get("format") == "decimal":
        return
    kind = int if type(instance) is type(divisor) is int else float
    try:
        _number_reader(kind, (("multiple_of", divisor),))(instance)
    except ValueError:
        yield ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


@lru_cache(maxsize=256)
def _number_reader(kind: type, bounds: tuple[tuple[str, Any], ...]) -> Callable[[Any], object]:
    """Return what reads a number; it raises ValueError for what is outside the bounds, and for NaN and infinity
    unless the bounds allow them."""
    from pydantic import Field, TypeAdapter

    limits: dict[str, Any] = {} if kind is int else {"allow_inf_nan": False}
    for field, bound in bounds:
        limits[field] = Decimal(str(bound)) if kind is Decimal and isinstance(bound, float) else bound
    number: Any = Annotated[kind, Field(**limits)]
    return TypeAdapter(number).validate_python


def _property_names(validator: Any, names: Mapping[str, Any], instance: Any, _: Any) -> Iterator[Any]:
    """Yield an error for each key of an object that does not match ``names``, with the key as its place. A key that is
    a number, as of an IntEnum, is text in JSON."""
    for key in instance if isinstance(instance, dict) else ():
        error = next(validator.descend(key, names, path=key), None)
        if error is not None and not validator.evolve(schema=names).is_valid(_word({}, {}, key)):
            yield error


def _problems(schema: Mapping[str, Any], params: Mapping[str, Any], error: Any) -> list[Problem]:
    """Return what an error of jsonschema says, in terms of the parameters."""
    path = [str(part) for part in error.absolute_path]
    if not path and error.validator == "additionalProperties":
        properties = schema.get("properties", {})
        return [Problem(ProblemKind.UNKNOWN, name) for name in params if name not in properties]
    if not path and error.validator == "required":
        return [Problem(ProblemKind.MISSING, name) for name in error.validator_value if name not in params]
    obvious = error.validator in ("type", "anyOf", "oneOf", "enum", "const", "format", "$ref")
    detail = "" if obvious and len(path) == 1 else error.message
    return [Problem(ProblemKind.WRONG, ".".join(path) or WHOLE, error.instance, detail)]


# --- words of a command line -------------------------------------------------------------------


_KINDS = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    list: ("array",),
    dict: ("object",),
}


def _word(schema: Mapping[str, Any], prop: Mapping[str, Any], text: str) -> Any:
    """Return the value that a word means for this property."""
    nodes = alternatives_of(schema, prop)
    if any(text in node.get("enum", ()) or node.get("const") == text for node in nodes):
        return text
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    kinds = {node.get("type") for node in nodes}
    if kinds == {None} and type(value) is float and text.lstrip("-").isdigit():
        return text  # where any value is allowed, a whole number of more than 64 bits keeps its digits
    if "string" not in kinds:
        return value
    if type(value) in (int, float):
        kept, is_decimal = Decimal(repr(value)), any(node.get("format") == "decimal" for node in nodes)
        if Decimal(text) != kept or (is_decimal and text != repr(value)):
            return text  # a Decimal, or a text: as a number it would lose digits, the last 0 of 1.50 too
    others = _KINDS.get(type(value), ("null",) if value is None else ())
    return value if kinds.intersection(others) else text
