"""Placeholders for JSON that cannot be read, so that a damaged row of the database affects only itself.

Code that shows values shows the placeholder; code that acts on a value checks for ``Unreadable`` first.
"""

from typing import Any

import orjson

from spinney.model.errors import SpinneyError

UNREADABLE = (SpinneyError, AttributeError, KeyError, TypeError, ValueError)
"""The errors of making a value of the model from JSON that a newer version, or an edit of the database, wrote."""


class Unreadable(dict[str, str]):
    """The placeholder for an unreadable value: an object with one entry, ``unreadable``, that says so in a sentence."""

    def __init__(self, description: str) -> None:
        """``description``: the value in words, as in "the parameters of job 5"."""
        super().__init__(
            unreadable=f"{description} cannot be read: the database is damaged there ('spinney doctor' names the row)"
        )

    def __str__(self) -> str:
        return self["unreadable"]


def json_value(text: Any, description: str) -> Any:
    """Return the value of a JSON text of the database; ``Unreadable`` when it cannot be read."""
    try:
        return orjson.loads(text)
    except (TypeError, ValueError):
        return Unreadable(description)


def json_object(text: Any, description: str) -> dict[str, Any]:
    """Return the object of a JSON text, such as parameters; ``Unreadable`` when it cannot be read."""
    value = json_value(text, description)
    return value if isinstance(value, dict) else Unreadable(description)


def json_list(text: Any) -> list[Any]:
    """Return the list of a JSON text; an empty one when it cannot be read."""
    value = json_value(text, "")
    return value if isinstance(value, list) else []


def of_job(job_id: int) -> str:
    """Return the description of a job's parameters, for ``Unreadable``."""
    return f"the parameters of job {job_id}"
