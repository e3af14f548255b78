"""Read the document of a failure, which a worker or a program of anybody may have written, so nothing in it
is trusted.

Only what fits the dataclasses below is taken over; a description stays a JSON object whose fields are read by
the functions of this module. What they return is text of the failed code: it must be made safe for the
terminal or page that shows it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from spinney.model.errors import Refused

Described = Mapping[str, Any]
"""The description of a value, as ``descriptions`` makes it."""

_NOTHING: Described = {"type": "?", "text": "not described"}
"""Stands for a description that is missing or no object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameView:
    """One frame: where it was, and what its variables held."""

    file: str
    """The path of the source file, as the failed process knew it."""
    line: int
    """The number of the line that ran, from 1."""
    function: str
    """The qualified name of the function."""
    source: Sequence[tuple[int, str]]
    """Lines around the one that ran, with their numbers; empty where the source was not there."""
    arguments: Sequence[str]
    """Which of the variables are arguments of the function."""
    variables: Mapping[str, Described]
    """The descriptions of its arguments and local variables, by name."""

    @property
    def code(self) -> str:
        """Return the line that ran; an empty text where the source was not there."""
        return next((text.strip() for number, text in self.source if number == self.line), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionView:
    """One exception of a failure as it is shown: the one by which the stage failed, its cause, or a member of its
    group."""

    type: str
    """The name of its type, with the module."""
    message: str
    """What ``str`` returned for it, shortened and without secrets."""
    relation: str | None
    """How it is related to exception number ``of``: it is its ``cause``, its ``context`` or a ``member`` of
    its group; None: it is the one by which the stage failed."""
    of: int | None
    """The number of the exception to which ``relation`` relates; None: the one by which the stage failed."""
    frames: Sequence[FrameView]
    """The frames that were kept, the outermost first."""
    hidden_frames: int
    """How many frames in the middle are left out."""

    @property
    def name(self) -> str:
        """Return the type without its module, as people say it."""
        return self.type.rpartition(".")[2]


def read(text: bytes) -> Sequence[ExceptionView]:
    """Return the exceptions of a document: first the one by which the stage failed, then its causes, contexts
    and members, each behind the one to which it is related. Raises Refused for a value that is no such document."""
    try:
        document = orjson.loads(text)
        exceptions = [_exception(item) for item in document["exceptions"]]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(
            "the kept frames of this failure cannot be read, they may have been cut off or changed; "
            "'spinney show' has its traceback"
        ) from error
    return exceptions


def summary(described: Described) -> str:
    """Return a description in one line, without its parts: ``list (3)``, ``int = 5``, ``numpy.ndarray 2x3
    float64``."""
    words = [str(described.get("type", "?"))]
    if "shape" in described:
        words.append("x".join(str(n) for n in _list(described["shape"])))
    if "dtype" in described:
        words.append(str(described["dtype"]))
    if "len" in described:
        words.append(f"({described['len']})")
    if "text" in described:
        words.append(f"= {described['text']}")
    return " ".join(words)


def parts(described: Described) -> Iterator[tuple[str, Described]]:
    """Yield the parts of a value that were kept: the step to each (``.name``, ``[3]``), and its
    description."""
    for part in _list(described.get("parts")):
        if isinstance(part, list) and len(part) == 2:
            yield str(part[0]), part[1] if isinstance(part[1], dict) else _NOTHING


def left_out(described: Described) -> int:
    """Return how many parts of a value were not kept; 0 also where that is not known."""
    cut = described.get("cut", 0)
    return cut if type(cut) is int else 0


def _exception(item: Mapping[str, Any]) -> ExceptionView:
    """Return one exception of a document. Raises ValueError, TypeError, KeyError or AttributeError for a value that is
    no exception."""
    of = item.get("of")
    return ExceptionView(
        type=str(item["type"]),
        message=str(item["message"]),
        relation=None if item.get("relation") is None else str(item["relation"]),
        of=int(of) if of is not None else None,
        frames=[_frame(frame) for frame in item["frames"]],
        hidden_frames=int(item.get("hidden_frames", 0)),
    )


def _frame(item: Mapping[str, Any]) -> FrameView:
    """Return one frame of a document; errors are as in ``_exception``."""
    return FrameView(
        file=str(item["file"]),
        line=int(item["line"]),
        function=str(item["function"]),
        source=[(int(number), str(text)) for number, text in item["source"]],
        arguments=[str(name) for name in _list(item.get("arguments"))],
        variables={
            str(name): value if isinstance(value, dict) else _NOTHING
            for name, value in (item.get("locals") or {}).items()
        },
    )


def _list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
