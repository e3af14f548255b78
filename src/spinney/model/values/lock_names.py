"""Templates with ``{parameter}`` fields: the names of the locks that a stage must have, and subjects of jobs."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from spinney.model.errors import BadParameters
from spinney.model.values import names

_EXACT = 2**53
"""Whole numbers below this are exact as floats."""
_FIELD = re.compile(r"\{([^{}]*)\}")


def fields(template: str) -> list[str]:
    """Return the parameters that a template names."""
    return _FIELD.findall(template)


def is_balanced(template: str) -> bool:
    """Return whether every brace belongs to a field that has a name."""
    names_ = fields(template)
    return all(names_) and template.count("{") == template.count("}") == len(names_)


def filled(template: str, value: Callable[[str], str]) -> str:
    """Return the template with the value of each of its fields."""
    return _FIELD.sub(lambda match: value(match.group(1)), template)


def render(template: str, params: Mapping[str, Any]) -> str:
    """Return the lock's name for a job with these parameters. A number is written in one way, ``1`` and not ``1.0``: as
    JSON both are the same value, which code and command lines write differently.

    Raises BadParameters when a field is missing, null, no scalar or empty: two jobs must never share a lock, or miss
    one, because of a missing parameter."""

    def value(field: str) -> str:
        param = params.get(field)
        if param is None or isinstance(param, dict | list) or param == "":
            fault = (
                "missing or null"
                if param is None
                else "empty"
                if param == ""
                else "neither text nor a number"
            )
            raise BadParameters(
                f"parameter {field!r} is {fault}, but the lock {template!r} is named by it; submit the job with a "
                f"value for {field!r}, or name the lock by another parameter"
            )
        is_whole = isinstance(param, float) and param.is_integer() and abs(param) < _EXACT
        return str(int(param) if is_whole else param)

    return names.lock_name(filled(template, value))
