"""The messages that say which parameter is wrong, why, and what is expected instead.

The message is the same whether a job is submitted with the code of its type (``jobtype.parameters``) or only with the
schema that nodes registered (``params.schema``)."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from spinney.define.params.redaction import MIN_SECRET_LENGTH, holds_secret
from spinney.model.errors import BadName, BadParameters, UsageError
from spinney.model.values import lock_names
from spinney.model.values.hints import did_you_mean
from spinney.model.values.texts import counted

WHOLE = "(all)"
"""The name in a ``Problem`` of all parameters together."""
_SHOWN = 5
"""The most problems in one message; a list of fifty would not help."""
_FIELDS = 8
"""How many fields of an object are named."""

JOB_OPTIONS = frozenset(
    ("queue", "priority", "share", "collection", "submitter", "key", "forever", "at", "needs", "data")
)
"""The names of the fields of ``spinney.define.job.options.Options``, which stands above this module."""


ALLOW_INF_NAN = "allowInfNan"
"""Our keyword for the text of a ``Decimal`` that may also be NaN or infinity, as with pydantic's ``allow_inf_nan``."""
DECIMAL_DIGITS = {"maxDigits": "max_digits", "decimalPlaces": "decimal_places"}
"""The bounds of a ``Decimal`` that JSON schema has no keywords for: ours, and their names in pydantic."""


class ProblemKind(StrEnum):
    """How a parameter is wrong: the type has none of this name, it is required and missing, or its value does
    not fit."""

    UNKNOWN = "unknown"
    MISSING = "missing"
    WRONG = "wrong"


class Problem(NamedTuple):
    """One thing that is wrong with one parameter."""

    fault: ProblemKind
    name: str
    """The parameter, followed by a path when the problem is inside its value."""
    value: Any = None
    detail: str = ""
    """Details beyond the expected form."""


def validation_error(
    type_name: str, schema: Mapping[str, Any], problems: Iterable[Problem], where: str = ""
) -> BadParameters:
    """Return the error that names every problem and what is expected instead."""
    return BadParameters(
        f"job type {type_name!r}{where}: {sentences(schema, problems)}. "
        f"It takes {_signature(schema)}. Nothing was submitted; correct this and submit again"
    )


def require_named(unnamed: tuple[object, ...]) -> None:
    """Raise UsageError when parameters of a job are given by position, as to a function."""
    if unnamed:
        raise UsageError("the parameters of a job are given by name, as in submit(file=…); name each of them")


def of_schedule(error: BadParameters) -> BadParameters:
    """Return the same error for the parameters of a schedule, which nobody has submitted."""
    before, nothing, after = str(error).rpartition("Nothing was submitted; ")
    if not nothing:
        return error
    return BadParameters(f"{before}Nothing was scheduled; {after.replace('submit again', 'try again')}")


def check_locks(type_name: str, templates: Iterable[str], params: Mapping[str, Any]) -> None:
    """Raise BadParameters, which names the parameter, when a lock cannot be named by ``params``."""
    for template in templates:
        try:
            lock_names.render(template, params)
        except BadName as error:
            named = ", ".join(repr(field) for field in lock_names.fields(template))
            raise BadParameters(
                f"job type {type_name!r}: parameter {named} names the lock {template!r}, but {error}. "
                f"Nothing was submitted; correct this and submit again"
            ) from error


def sentences(schema: Mapping[str, Any], problems: Iterable[Problem], *, quotes: bool = True) -> str:
    """Return what is wrong in each place, once, for the first ``_SHOWN`` of them. ``quotes``: see ``sentence``."""
    each = dict.fromkeys(sentence(schema, problem, quotes=quotes) for problem in problems)
    return "; ".join(islice(each, _SHOWN))


def sentence(schema: Mapping[str, Any], problem: Problem, *, quotes: bool = True) -> str:
    """Return what is wrong, and what is expected instead. ``quotes``: also the value, unless it is a secret."""
    name, top = problem.name, problem.name.split(".")[0]
    if problem.fault is ProblemKind.UNKNOWN:
        hint = did_you_mean(name, schema.get("properties", {}))
        if not hint and name in JOB_OPTIONS:
            hint = f" (an option of a job is given beside its parameters, as in .options({name}=…))"
        return f"there is no parameter {name!r}{hint}"
    if problem.fault is ProblemKind.MISSING:
        return f"parameter {name!r} is missing"
    if name == WHOLE:
        # The validator's message may quote them.
        quotes_secret = problem.value is not None and _is_secret(schema, top)
        return "the parameters are wrong" + ("" if quotes_secret else f": {problem.detail}")
    expected = describe(property_of(schema, top), schema)
    if _is_secret(schema, top):
        # Neither its value nor the validator's message, which may quote it.
        return f"parameter {top!r} is wrong{f' at {name!r}' if name != top else ''}: it must be {expected}"
    value = _short(problem.value)
    if name != top:
        return f"parameter {top!r} is wrong at {name!r}{f', {value}' if quotes else ''}: {problem.detail}"
    detail = f" ({problem.detail})" if problem.detail else ""
    return f"parameter {name!r} must be {expected}{f', not {value}' if quotes else ''}{detail}"


def _is_secret(schema: Mapping[str, Any], top: str) -> bool:
    """Return whether a parameter may have a secret in it; this includes parameters that the schema does not name, if
    any may."""
    properties = schema.get("properties", {})
    return holds_secret(schema, properties.get(top, schema))


def _signature(schema: Mapping[str, Any]) -> str:
    """Return what a type takes, as a sentence: each parameter with what it expects."""
    required = schema.get("required", ())
    parts = [
        f"{name} ({describe(prop, schema)}{'' if name in required else ', optional'})"
        for name, prop in schema.get("properties", {}).items()
    ]
    return ", ".join(parts) or ("no parameters" if schema else "any parameters")


_FORMATS = {
    "password": "a secret text",
    "path": "a path",
    "file-path": "a path of a file",
    "directory-path": "a path of a folder",
    "date-time": "a date and time such as '2030-01-31T08:00:00Z'",
    "date": "a date such as '2030-01-31'",
    "time": "a time such as '08:00:00'",
    "duration": "a duration such as 'PT15M'",
    "decimal": "a number as text such as '1.50'",
    "uuid": "a UUID",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "uri": "a URL such as 'https://example.org/'",
}
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "that is a multiple of",
    "pattern": "matching",
}
_DIGITS = {"maxDigits": "digit", "decimalPlaces": "decimal place"}


def describe(prop: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return what a property of the schema expects, in a few words."""
    if "$ref" in prop:
        target = str(prop["$ref"]).rsplit("/", 1)[-1]
        return describe(schema.get("$defs", {}).get(target, {}), schema)
    if alternatives := prop.get("anyOf") or prop.get("oneOf"):  # ``oneOf``: of a union with a discriminator
        return " or ".join(dict.fromkeys(describe(p, schema) for p in alternatives))
    if "enum" in prop:
        return "one of " + ", ".join(_short(v) for v in prop["enum"])
    if "const" in prop:
        return _short(prop["const"])
    format_ = prop.get("format", "") if prop.get("type") == "string" else ""
    base = _FORMATS.get(format_) or _TYPES.get(str(prop.get("type")), "any JSON value")
    if prop.get("type") == "array" and prop.get("items"):
        base = f"a list, each {describe(prop['items'], schema)}"
    elif prop.get("type") == "object" and prop.get("properties"):
        base += f" ({_some(list(prop['properties']))})"
    base += "" if format_ == "uri" else _length(prop)
    if prop.get("format") == "password" and prop.get("minLength", 0) < MIN_SECRET_LENGTH:
        base += f" (redacted outside of the parameters only from {MIN_SECRET_LENGTH} characters on)"
    bounds = [f"{word} {prop[key]}" for key, word in _BOUNDS.items() if key in prop]
    bounds += [f"with at most {counted(prop[key], noun)}" for key, noun in _DIGITS.items() if key in prop]
    return " ".join([base, *([", ".join(bounds)] if bounds else [])])


def _some(names: Sequence[str]) -> str:
    """Return names in a row, at most ``_FIELDS`` of them."""
    return ", ".join(names[:_FIELDS]) + (", …" if len(names) > _FIELDS else "")


def _length(prop: Mapping[str, Any]) -> str:
    """Return the bounds of a text's length: `` of at least 6 characters``; empty if there are none."""
    least, most = prop.get("minLength"), prop.get("maxLength")
    if least is None and most is None:
        return ""
    if least is not None and most is not None:
        bounds = f"{least}" if least == most else f"{least} to {most}"
    else:
        bounds = f"at most {most}" if least is None else f"at least {least}"
    return f" of {bounds} {'character' if (least if most is None else most) == 1 else 'characters'}"


def property_of(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the schema of a parameter; empty for one that the schema does not name."""
    prop: Mapping[str, Any] = schema.get("properties", {}).get(name, {})
    return prop


def _short(value: Any) -> str:
    """Return a value as messages quote it, cut to 60 characters."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
