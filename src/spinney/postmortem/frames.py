"""Make the document of a failure: each exception of its chain, the frames of each, and their variables.

Places come first, since a traceback is worth more than values: half of ``Bounds.document_bytes`` is left for
variables, and the innermost frames get theirs first. A document that becomes too long all the same is not
kept.
"""

import inspect
import linecache
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from spinney.model.attempts.user_frames import user_frames
from spinney.postmortem.descriptions import Bounds, Describer, type_name

FORMAT = 1
"""The version of the form of documents, for readers of later versions."""
EXCEPTIONS = 20
"""The most exceptions of a chain or group that are described."""
_BEFORE, _AFTER = 5, 3
"""Lines of the source around the one that ran."""
_LINE_CHARS = 300
"""How many characters of a line of the source are kept."""
_NOT_KEPT = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
"""Types of what every module has among its variables; they are left out of a frame that is the module's
own."""

Frame = tuple[types.FrameType, int]
"""A frame, and the number of the line that ran."""


def capture(
    error: BaseException,
    *,
    bounds: Bounds,
    redact: Callable[[str], str] = str,
    secret_names: frozenset[str] = frozenset(),
    longest_secret: int = 0,
) -> bytes | None:
    """Return the document of an exception as JSON, at most ``bounds.document_bytes`` long; None: nothing is kept.

    ``redact`` hides secrets that are known by their text, of up to ``longest_secret`` characters, ``secret_names`` the
    values of variables, attributes and keys of these names. It raises nothing, whatever the values are: a failure must
    be recorded although its frames cannot be.
    """
    if bounds.document_bytes <= 0:
        return None
    describer = Describer(
        bounds=bounds, redact=redact, secret_names=secret_names, longest_secret=longest_secret
    )
    try:
        text = orjson.dumps({"format": FORMAT, "exceptions": _exceptions(error, describer)})
    except Exception:  # noqa: BLE001 - see above
        return None
    return text if len(text) <= bounds.document_bytes else None


def _exceptions(error: BaseException, describer: Describer) -> list[dict[str, Any]]:
    """Return the exceptions as JSON objects, in the order of ``_chain``: the one by which the stage failed
    first."""
    chain = list(_chain(error))
    all_frames = [_frames(exception, describer.bounds.frames) for exception, _, _ in chain]
    described: list[dict[str, Any]] = [
        {
            "type": type_name(type(exception)),
            "message": _message(exception, describer),
            "relation": relation,
            "of": of,
            "hidden_frames": hidden,
            "frames": [_place(frame, describer) for frame in frames],
        }
        for (exception, relation, of), (frames, hidden) in zip(chain, all_frames, strict=True)
    ]
    # Half of the bytes for variables: the places above have taken some, and JSON escapes.
    room = describer.bounds.document_bytes // 2
    pairs = [
        (frame, place)
        for (frames, _), exception in zip(all_frames, described, strict=True)
        for frame, place in reversed(list(zip(frames, exception["frames"], strict=True)))
    ]
    for number, (frame, place) in enumerate(pairs):
        # The innermost first, which matter most; what one does not need goes to the others.
        room -= _add_variables(place, frame[0], describer, room // (len(pairs) - number))
    return described


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str | None, int | None]]:
    """Yield the exceptions of a chain, breadth first and each once, with what it is to which one before: its
    ``cause``, its ``context``, or a ``member`` of its group. The number of the other one is its position in
    this order."""
    todo: list[tuple[BaseException, str | None, int | None]] = [(error, None, None)]
    visited = {id(error)}
    for number in range(EXCEPTIONS):
        if number >= len(todo):
            return
        exception = todo[number][0]
        yield todo[number]
        related: list[tuple[BaseException | None, str]] = [(exception.__cause__, "cause")]
        if not exception.__suppress_context__:
            related.append((exception.__context__, "context"))
        if isinstance(exception, BaseExceptionGroup):
            related += [(member, "member") for member in exception.exceptions]
        for other, relation in related:
            if other is not None and id(other) not in visited:
                visited.add(id(other))
                todo.append((other, relation, number))


def _frames(error: BaseException, most: int) -> tuple[list[Frame], int]:
    """Return the frames of an exception, the outermost first, and how many of the middle are left out.

    Frames of the engine around the user's code are skipped, unless there are no others.
    """
    frames = list(traceback.walk_tb(user_frames(error) or error.__traceback__))
    if len(frames) <= most:
        return frames, 0
    first = most // 3
    return [*frames[:first], *frames[first - most :]], len(frames) - most


def _place(frame: Frame, describer: Describer) -> dict[str, Any]:
    """Return where a frame is as a JSON object, with the source around. The source is read from the file as
    it is now."""
    code, line = frame[0].f_code, frame[1]
    lines = linecache.getlines(code.co_filename, frame[0].f_globals)
    first = max(1, line - _BEFORE)
    return {
        "file": describer.text(code.co_filename),
        "line": line,
        "function": code.co_qualname,
        "source": [
            [number, describer.text(text.rstrip("\n"))[:_LINE_CHARS]]
            for number, text in enumerate(lines[first - 1 : line + _AFTER], first)
        ],
    }


def _add_variables(place: dict[str, Any], frame: types.FrameType, describer: Describer, room: int) -> int:
    """Add the arguments and local variables of a frame to its place, and return how many bytes they take,
    about.

    ``room`` is shared out: each variable gets an equal part of what is left when its turn comes.
    """
    code, variables = frame.f_code, frame.f_locals
    if code.co_flags & inspect.CO_OPTIMIZED:  # a function, of which Python 3.13 has no dictionary
        variables = dict(variables)
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    place["arguments"] = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags])
    place["locals"] = described = {}
    if type(variables) is not dict:  # code that was run with a mapping of its own
        return 0
    if variables is frame.f_globals:
        variables = {
            name: value
            for name, value in variables.items()
            if not name.startswith("__") and not issubclass(type(value), _NOT_KEPT)
        }
    taken = 0
    for number, (name, value) in enumerate(list(variables.items())):
        share = max(0, room - taken) // (len(variables) - number)
        description, size = describer.variable(name, value, share)
        described[name] = description
        taken += size + len(name)
    return taken


def _message(error: BaseException, describer: Describer) -> str:
    """Return the message of an exception. It is the one place that runs code of the user, ``__str__``, as a
    traceback does."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise whatever it likes
        return "its message cannot be shown"
    return describer.text(text)
