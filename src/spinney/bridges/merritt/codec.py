"""The bytes in the nodes: JSON objects, numbers, text and times, as Merritt's libraries in Java and Ruby write them."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from spinney.bridges.merritt.errors import MerrittNodeTooLarge, MerrittZKNodeInvalid

LARGEST: Final = 10_000
"""The most bytes that this library writes into a node; ZooKeeper coordinates, and files hold data."""
LONGEST_MESSAGE: Final = 4_000
"""The most bytes of a status message. Longer ones are cut, so that a job can always be failed."""

Fields = Mapping[str, Any]
"""A JSON object that is written into a node."""


def object_bytes(path: str, value: Fields, most: int = LARGEST) -> bytes:
    """Return compact JSON in UTF-8, or nothing for an object without fields. ``path``: the node, for the
    message. Characters that UTF-8 cannot have become ``?``. Raises MerrittNodeTooLarge for more than ``most``
    bytes."""
    if not value:
        return b""
    data = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    if len(data) > most:
        raise MerrittNodeTooLarge(
            f"{path} would have {len(data)} bytes, and a node has {LARGEST} at most. Write the data to a file that all "
            "services can reach, and give its URL here."
        )
    return data


def read_object(path: str, data: bytes | None) -> dict[str, Any]:
    """Return the object in a node; one without data is an object without fields. Raises MerrittZKNodeInvalid."""
    if not data:
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MerrittZKNodeInvalid(f"{path} is no JSON ({error}); run a check, and repair it.") from None
    if not isinstance(value, dict):
        raise MerrittZKNodeInvalid(f"{path} is JSON, but no object; run a check, and repair or delete it.")
    return value


def first_value(fields: Fields, names: Iterable[str]) -> Any:
    """Return the first of these fields that has a value, as programs differ in what they call it; None: none has."""
    return next((fields[name] for name in names if fields.get(name)), None)


def read_number(path: str, data: bytes | None) -> int:
    """Return the number that a node has as text. Raises MerrittZKNodeInvalid."""
    try:
        return int((data or b"").decode("ascii"))
    except ValueError:
        raise MerrittZKNodeInvalid(f"{path} is no number; run a check, and repair or delete it.") from None


def read_text(data: bytes | None) -> str:
    """Return the text in a node; bytes that are not UTF-8 become U+FFFD."""
    return (data or b"").decode(errors="replace")


def short_message(text: str) -> str:
    """Return a status message, cut to what a node can take."""
    data = text.encode(errors="replace")
    if len(data) <= LONGEST_MESSAGE:
        return data.decode()
    return data[:LONGEST_MESSAGE].decode(errors="ignore") + " … (cut)"


def now_text() -> str:
    """Return the local time as ``2026-03-01 14:05:09 -0800``."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
