"""What stands in the place of JSON that cannot be read, so that a damaged row of the database spoils only itself.

Whoever shows values to people shows the placeholder; whoever acts by a value asks for ``Unreadable`` first.
"""

from typing import Any

import orjson


class Unreadable(dict[str, str]):
    """Stands where an unreadable value should: an object with one entry, ``unreadable``, that says so in a sentence."""

    def __init__(self, what: str) -> None:
        """``what``: the value in words, as in "the parameters of job 5"."""
        super().__init__(
            unreadable=f"{what} cannot be read: the database is damaged there ('spinney doctor' names the row)"
        )

    def __str__(self) -> str:
        return self["unreadable"]


def json_value(text: Any, what: str) -> Any:
    """The value of a JSON text of the database; ``Unreadable`` where it is none."""
    try:
        return orjson.loads(text)
    except (TypeError, ValueError):
        return Unreadable(what)


def json_object(text: Any, what: str) -> dict[str, Any]:
    """The same for an object, as parameters are."""
    found = json_value(text, what)
    return found if isinstance(found, dict) else Unreadable(what)


def json_list(text: Any) -> list[Any]:
    """The same for a list; an empty one where it is none."""
    found = json_value(text, "")
    return found if isinstance(found, list) else []


def of_job(job_id: int) -> str:
    """What the parameters of a job are called."""
    return f"the parameters of job {job_id}"
