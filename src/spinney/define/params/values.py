"""Convert results and data of stages to JSON text. Pickle is never used."""

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from spinney.model.errors import BadParameters

NOT_FINITE = "it holds a number that JSON does not have: NaN or infinity"
"""What is wrong with a parameter that ``not_finite`` returns."""
_ALWAYS_FINITE = frozenset((str, int, bool, type(None)))
"""The types of nearly all parts of a usual value, none of which is NaN or infinity."""

_ARRAY_ITEMS = 2**19
"""A longer array needs more than 1 MiB of JSON text, the most that parameters may have; its list is not made."""


def _plain(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    if isinstance(value, Decimal):
        return str(value)
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if _is_array(value):
        return value.tolist()
    if isinstance(value, Mapping):  # ``job.results`` and ``job.params`` are no dicts
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_array(value: Any) -> bool:
    """Return whether a value is an array or a number of numpy, or of a library with the same attributes, and no longer
    than JSON text may be here. Times of numpy do not count: as numbers they would be nanoseconds, and NaT would be
    null."""
    size = getattr(value, "size", None)
    if not (isinstance(size, int) and size <= _ARRAY_ITEMS and hasattr(value, "tolist")):
        return False
    return getattr(getattr(value, "dtype", None), "kind", None) not in ("m", "M")


def to_text(value: Any, description: str, plain: Callable[[Any], Any] = _plain) -> str:
    """Return ``value`` as JSON text; ``description`` names it in the message when it has no JSON form; ``plain``
    converts values that have none of JSON's own types.

    Beyond JSON's own types it accepts dataclasses, datetimes (ISO 8601), enums, UUIDs, decimals (as text), paths, sets,
    named tuples, mappings that are no dicts, pydantic models, and numbers and arrays of numpy; keys that are numbers,
    dates or enums become text.
    NaN and infinity become null; ``finite_text`` refuses them. Raises BadParameters."""
    try:
        return orjson.dumps(value, default=plain).decode()
    except TypeError:
        return _with_other_keys(value, description, plain)


def params_to_text(params: Mapping[str, Any], description: str) -> tuple[str, list[str]]:
    """Return parameters for a job of another application's type as JSON text, with the values of secrets, and these
    values. Models are written by their aliases, by which that application reads them. ``description``: as of
    ``to_text``."""
    secrets: list[str] = []

    def plain(value: Any) -> Any:
        if hasattr(value, "get_secret_value"):
            return revealed(value, None, secrets)
        if not hasattr(value, "model_dump"):
            try:
                return _plain(value)
            except TypeError:
                # Durations, addresses and the like, which pydantic writes as a stage reads them.
                return to_jsonable_python(value)
        dump = partial(value.model_dump, by_alias=True, round_trip=True)
        return revealed(dump(), dump(mode="json"), secrets)

    return to_text(params, description, plain), secrets


def finite_text(value: Any, description: str) -> str:
    """Return a value of a stage or of its data as ``to_text`` does. Raises BadParameters also for NaN and infinity, at
    any depth: JSON has neither, and a later stage would read null."""
    text = to_text(value, description)
    if "null" in text and _holds_not_finite(value):
        raise BadParameters(
            f"{description} cannot be kept as JSON: {NOT_FINITE}; use None or a text in its place"
        )
    return text


def not_finite(params: Mapping[str, Any]) -> str | None:
    """Return the first parameter that is NaN or an infinity, or holds one at any depth; None: there is none. JSON has
    neither, and ``orjson`` writes null for them."""
    return next((name for name, value in params.items() if _holds_not_finite(value)), None)


def revealed(value: Any, json_value: Any, secrets: list[str] | None = None) -> Any:
    """Return ``json_value``, what pydantic dumps of ``value`` in its JSON mode, with the values of secrets in place of
    stars; ``value`` is what it dumps in its Python mode, where secrets are objects. They are added to ``secrets``."""
    if hasattr(value, "get_secret_value"):
        secret = value.get_secret_value()
        plain = secret.decode() if isinstance(secret, bytes) else secret
        if secrets is not None:
            secrets.append(str(plain))
        return plain
    if not isinstance(value, Collection) or not isinstance(json_value, dict | list):
        return json_value
    if len(value) != len(json_value):  # a serializer of the application's own, for one of the modes
        return json_value
    if isinstance(json_value, list):
        return [revealed(*pair, secrets) for pair in zip(value, json_value, strict=True)]
    if not isinstance(value, Mapping):
        return json_value
    # The keys of a dict may be numbers or enums in Python.
    parts = zip(json_value.items(), value.values(), strict=True)
    return {name: revealed(part, json_part, secrets) for (name, json_part), part in parts}


def _holds_not_finite(value: Any) -> bool:
    parts = [value]
    while parts:
        part = parts.pop()
        if type(part) in _ALWAYS_FINITE:
            continue
        if isinstance(part, float):
            if not math.isfinite(part):
                return True
        elif isinstance(part, Mapping):
            parts += part.values()
        elif isinstance(part, list | tuple | set | frozenset | deque):
            parts += part
        elif isinstance(part, Enum):
            parts.append(part.value)
        elif is_dataclass(part):
            names = [field.name for field in fields(part) if not field.name.startswith("_")]  # as orjson
            parts += [getattr(part, name, None) for name in names]
        elif hasattr(part, "model_dump"):
            parts.append(part.model_dump())
        elif _is_array(part):
            parts.append(part.tolist())
    return False


def _with_other_keys(value: Any, description: str, plain: Callable[[Any], Any]) -> str:
    """Try again for dicts whose keys are numbers, dates or enums: this option is slow, so it comes second."""
    try:
        return orjson.dumps(value, default=plain, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError as error:
        # orjson names its own options where a key of a dict is, for example, a tuple.
        reason = "a key of a dict is no text, number, date or enum" if "NON_STR_KEYS" in str(error) else error
        raise BadParameters(
            f"{description} cannot be kept as JSON: {reason}; use text, numbers, lists and dicts, "
            f"and put larger or other things into a file in job.folder"
        ) from error
