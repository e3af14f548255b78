"""The subject of a job: one line, made of its parameters, by which people tell it from others of its type.

A type may declare a template with ``{parameter}`` fields; ``{order.name}`` is a field of a parameter that is an object.
Without a template, the parameters that differ most between jobs are shown: required ones and those that are not at
their default, texts before numbers before flags, in the order of the declaration. Secrets, which are hidden and look
all the same, are not among them."""

from collections.abc import Iterable, Mapping
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.types import TypeSpec
from spinney.model.values import lock_names

SUBJECT_MAX = 90
"""The longest subject, in characters."""
_VALUE_MAX = 60
_PARTS = 2
"""The most parameters that a subject without a template names."""
_CUT = "…"


def subject(spec: TypeSpec | None, params: Any) -> str:
    """Return the subject of a job of this type; empty if its parameters tell nothing.

    ``params`` must be redacted already: whatever they contain may be shown. ``spec`` is None for a type that is not
    registered any more."""
    if not isinstance(params, Mapping):
        return ""
    properties = {} if spec is None else spec.schema.get("properties", {})
    if spec is not None and spec.subject:
        return shortened(_filled(spec.subject, properties, params), SUBJECT_MAX)
    return shortened(" · ".join(_telling(properties, params)), SUBJECT_MAX)


def require_fields(type_name: str, template: str, schema: Mapping[str, Any]) -> None:
    """Raise UsageError unless this schema of parameters declares every field of a template. It is checked when a type
    is declared, so that a subject cannot be empty by a typo."""
    for field in lock_names.fields(template):
        if not _declares(schema, field.split(".")):
            raise UsageError(
                f"job type {type_name!r} has the subject {template!r}, but no parameter {field!r}; add it to a stage "
                f"or correct the subject"
            )


def _declares(schema: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Return whether the path of these names leads to a declared value, or below an object that may have any fields."""
    place: Any = schema
    for name in names:
        reference = place.get("$ref", "") if isinstance(place, Mapping) else ""
        if reference:
            place = schema.get("$defs", {}).get(reference.rpartition("/")[2])
        if not isinstance(place, Mapping) or "properties" not in place:
            return True
        if name not in place["properties"]:
            return False
        place = place["properties"][name]
    return True


def shortened(text: str, most: int) -> str:
    """Return a text on one line of at most ``most`` characters. What is cut out is its middle, because paths and
    identifiers differ at their ends."""
    bounded = text[: 4 * most] + text[4 * most :][-most:]  # so that a text of megabytes costs no more
    line = "".join(sign if sign.isprintable() else " " for sign in bounded)
    line = " ".join(line.split())
    if len(line) <= most:
        return line
    end = (most - 1) // 2
    return line[: most - 1 - end].rstrip() + _CUT + line[-end:].lstrip()


def _filled(template: str, properties: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """Return the template with the values of its fields. A parameter that was not given has its default, unless it is
    secret; one without a default, or null, leaves nothing."""

    def text(field: str) -> str:
        first, *rest = field.split(".")
        declared = properties.get(first)
        default = (
            declared.get("default") if isinstance(declared, Mapping) and not _is_secret(declared) else None
        )
        value = params.get(first, default)
        for name in rest:
            value = value.get(name) if isinstance(value, Mapping) else None
        return _text(value)

    return lock_names.filled(template, text)


def _telling(properties: Mapping[str, Any], params: Mapping[str, Any]) -> Iterable[str]:
    """Return the parts of a subject without a template. Texts stand alone, numbers and flags with their
    names; lists and objects are left out, since a line has no room for them."""
    names = [*(name for name in properties if name in params), *(n for n in params if n not in properties)]
    parts = []
    for name in names:
        value, declared = params[name], properties.get(name)
        declared = declared if isinstance(declared, Mapping) else {}
        is_default = "default" in declared and declared["default"] == value
        if (
            value is None
            or value == ""
            or is_default
            or isinstance(value, dict | list)
            or _is_secret(declared)
        ):
            continue
        is_text = isinstance(value, str)
        rank = 0 if is_text else 2 if isinstance(value, bool) else 1
        parts.append((rank, _text(value) if is_text else f"{name}={_text(value)}"))
    parts.sort(key=lambda part: part[0])
    return [text for _, text in parts[:_PARTS]]


def _is_secret(declared: Mapping[str, Any]) -> bool:
    """Return whether a parameter is declared secret, or secret or null. An application may have written the schema by
    itself, where ``true`` is a schema, too."""
    options = declared.get("anyOf")
    return any(
        isinstance(option, Mapping) and option.get("writeOnly") is True
        for option in (declared, *(options if isinstance(options, list) else ()))
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return shortened(text, _VALUE_MAX)
