"""Describe values for people who look at them later: type, length, shape, text and parts, all of it bounded.

No code of the described value is run: no ``__repr__``, ``__len__``, ``__getattr__`` or property. Builtin types and
their subclasses are read by the functions of the builtin type, instances by the descriptors of ``__dict__`` and of
slots, which belong to the interpreter. Only a short list of types of the standard library, whose code is known, is
converted by ``repr``. Arrays of NumPy, with types derived from them seen as plain arrays (masked elements of a masked
array as None), and tables of pandas are read through their public methods, which for columns of an extension type call
the methods of that; types derived from tables are read as other objects.

A description is a JSON object: ``type``, and where they apply ``text``, ``len``, ``shape``, ``dtype``, ``hidden`` (a
secret), ``cut`` (how many parts are left out) and ``parts``, a list of ``[step, description]``, where a step is written
as in Python: ``.name``, ``[3]``, ``['key']``.
"""

import re
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

Description = dict[str, Any]

HIDDEN = "••••••"
"""The text of a value that is hidden because of its name."""

_NODE_BYTES = 60
"""How many bytes a description takes as JSON, beside its texts."""
_WINDOW_CHARS = 4096
"""How many characters beyond the shown text are searched for secrets at least, since a secret may cross the
end of that text."""
_INTEGER_BITS = 4000
"""Integers with more bits than this are described by their length: writing them in decimal takes quadratic
time."""

_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)?s?$|^pwd|secret|token|credential|authorization|api_?key|private_?key|access_?key|cookie"
    r"|signature",
    re.IGNORECASE,
)
"""Matches names of variables, attributes and keys whose values are hidden."""
_USER_OF_URL = re.compile(r"(?<=://)[^/\s@]+(?=@)")
"""Matches user and password in a URL, which are hidden in any text."""
_OPAQUE = ("spinney.define.", "spinney.node.", "spinney.store.", "asyncio.", "logging", "sqlalchemy.")
"""Modules whose instances are described by their type only: their insides tell a user nothing."""

_REPRESENTED = frozenset(
    id(kind)
    for kind in (
        bool,
        type(None),
        float,
        complex,
        range,
        type(...),
        type(NotImplemented),
        date,
        datetime,
        time_of_day,
        timedelta,
        timezone,
        Decimal,
        Fraction,
        UUID,
        re.Pattern,
        PosixPath,
        PurePosixPath,
        PureWindowsPath,
    )
)
"""The ids of types of builtins and the standard library whose ``repr`` is known to run no other code. Subclasses are
not among them. Types are recognized by their ids: to compare or hash a type may run code of its metaclass."""
_PLAIN = frozenset(id(kind) for kind in (int, float, bool, type(None)))
"""The ids of types whose values are short, and are described without looking at time and room."""
_SEQUENCES: tuple[type[Any], ...] = (list, tuple, deque, set, frozenset)
_NAMED = (types.FunctionType, types.BuiltinFunctionType, types.CoroutineType, types.GeneratorType)
"""Types of functions, coroutines and generators, which are described by their qualified name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is kept of one failure. When a bound is reached, the rest is cut and counted, and nothing
    fails."""

    document_bytes: int = 2**20
    """The most bytes of the whole document; 0: nothing is kept."""
    depth: int = 4
    """How many levels of parts below a variable are described."""
    parts: int = 40
    """The most parts of one value."""
    text_chars: int = 1000
    """The most characters of one text."""
    frames: int = 50
    """The most frames of one exception: two thirds of them innermost, the others outermost."""
    time_s: float = 0.004
    """The most seconds of processor time for all values, so that a busy machine loses none; what is left when they are
    over is described by its type only."""


@dataclass(slots=True, kw_only=True)
class Describer:
    """Describes the values of one failure, within its bounds."""

    bounds: Bounds
    """How much may be kept of the failure."""
    redact: Callable[[str], str] = str
    """Hides secrets that are known by their text, such as secret parameters."""
    secret_names: frozenset[str] = frozenset()
    """Names of secret values, beside those that look like one (``_SECRET_NAME``)."""
    longest_secret: int = 0
    """The most characters of a secret that ``redact`` hides: one of which only a part was searched would be shown."""
    clock: Callable[[], float] = time.thread_time
    """Returns the processor time of this thread, in seconds."""
    room: int = 0
    """How many bytes are left for the value that is being described; it may fall below 0 by the last part."""
    _deadline: float = field(init=False)
    """When the processor time for all values is over, by ``clock``."""
    _described_variables: dict[int, tuple[object, Description, int]] = field(default_factory=dict)
    """Value, description and size of variables, by the value's id: frames often pass the same object on. The
    value is kept, so that its id is not given to another."""

    def __post_init__(self) -> None:
        self._deadline = self.clock() + self.bounds.time_s

    def variable(self, name: str, value: object, room: int) -> tuple[Description, int]:
        """Return the description of a variable, and how many of ``room`` bytes it has taken, about.

        A variable whose name looks like a secret is hidden, unless it is None. An object that was described
        before is not described again, unless that description is larger than ``room``.
        """
        if self._is_secret(name) or id(type(value)) in _PLAIN:
            self.room = room
            return self._named(name, value, 0, ()), room - self.room
        described = self._described_variables.get(id(value))
        if described is None or described[2] > room:
            self.room = room
            description = self._described(value, 0, ())
            described = self._described_variables[id(value)] = (value, description, room - self.room)
        return described[1], described[2]

    def text(self, text: str) -> str:
        """Return the beginning of a text without its secrets, at most ``Bounds.text_chars`` characters.
        ``text`` must be a plain str."""
        window = text[: self._window].encode("utf-8", "replace").decode()
        return self._shown(self.redact(_USER_OF_URL.sub("…", window)), whole=len(text) <= self._window)

    def _shown(self, redacted: str, *, whole: bool) -> str:
        """Return what is shown of a redacted window. Unless that had the whole text, its last characters may be the
        beginning of a secret, and are not shown, however much shorter redaction has made the others."""
        most = self.bounds.text_chars
        return redacted[: most if whole else max(0, min(most, len(redacted) - self._margin))]

    def _named(self, name: str, value: object, depth: int, above: tuple[int, ...]) -> Description:
        """Return the description of a part by its name and value; a part whose name looks like a secret is
        hidden. None is shown in any case: that a secret is missing is often the cause."""
        if name and value is not None and self._is_secret(name):
            self.room -= _NODE_BYTES
            return {"type": type_name(type(value)), "text": HIDDEN, "hidden": True}
        return self._described(value, depth, above)

    def _is_secret(self, name: str) -> bool:
        return name in self.secret_names or _SECRET_NAME.search(name) is not None

    def _described(self, value: object, depth: int, above: tuple[int, ...]) -> Description:
        """Return the description of a value; ``above`` are the ids of the values that contain it, by which cycles are
        recognized. When room or time are over, only its type is described."""
        kind = type(value)
        self.room -= _NODE_BYTES
        if id(kind) in _PLAIN and (kind is not int or int.bit_length(value) <= _INTEGER_BITS):  # type: ignore[arg-type]
            return {"type": kind.__name__, "text": repr(value)}
        description: Description = {"type": type_name(kind)}
        if self.room <= 0 or self.clock() > self._deadline:
            return description | {"cut": True}
        if id(value) in above:
            return description | {"text": f"the same object, {len(above) - above.index(id(value))} levels up"}
        try:
            self._describe(description, value, kind, depth, (*above, id(value)))
        except Exception:  # noqa: BLE001 - whatever a value does, the others are described
            description.setdefault("text", "cannot be described")
        if "text" in description:
            text = description["text"] = self.text(description["text"])
            self.room -= len(text) if text.isascii() else 4 * len(text)
        return description

    def _describe(
        self, description: Description, value: Any, kind: type, depth: int, above: tuple[int, ...]
    ) -> None:
        """Fill in the description of a value by its type, calling only functions of builtin types and of the few known
        libraries."""
        if id(kind) in _REPRESENTED:
            description["text"] = repr(value) if not issubclass(kind, PurePath) else str(value)
        elif issubclass(kind, str):
            description["len"] = str.__len__(value)
            redacted = self.redact(str.__getitem__(value, slice(0, self._window)))
            description["text"] = repr(self._shown(redacted, whole=description["len"] <= self._window))
        elif issubclass(kind, bytes | bytearray):
            base = bytes if issubclass(kind, bytes) else bytearray
            description["len"] = base.__len__(value)
            description["text"] = repr(bytes(base.__getitem__(value, slice(0, self._window))))
        elif issubclass(kind, int):
            bits = int.bit_length(value)
            description["text"] = (
                int.__repr__(value) if bits <= _INTEGER_BITS else f"an integer of {bits} bits"
            )
        elif issubclass(kind, type):
            description["text"] = type_name(value)
        elif kind is types.ModuleType:
            description["text"] = str(types.ModuleType.__getattribute__(value, "__name__"))
        elif issubclass(kind, _NAMED):
            description["text"] = value.__qualname__
        elif (array := _type_of("numpy", "ndarray")) is not None and issubclass(kind, array):
            # A derived array may have its own properties and methods; this view of its elements has numpy's.
            plain = array.view(value, array)
            if kind is _type_of("numpy.ma", "MaskedArray"):
                # Not the value itself, which may read its elements as a derived array.
                plain = sys.modules["numpy.ma"].array(plain, mask=value.mask)
            self._describe_array(description, plain, depth, above)
        elif any(kind is _type_of("pandas", table) for table in ("DataFrame", "Series")):
            self._describe_table(description, value, depth, above)
        else:
            self._describe_parts(description, value, kind, depth, above)

    @property
    def _margin(self) -> int:
        """The number of characters beyond the shown text that are searched for secrets."""
        return max(_WINDOW_CHARS, self.longest_secret)

    @property
    def _window(self) -> int:
        """The number of characters of a text in which secrets are searched."""
        return self.bounds.text_chars + self._margin

    def _describe_parts(
        self, description: Description, value: Any, kind: type, depth: int, above: tuple[int, ...]
    ) -> None:
        """Fill in the parts of a container or object: items, elements or attributes, without calling code of its
        class."""
        steps: Iterator[tuple[str, str, object]]
        if type_name(kind).startswith(_OPAQUE):
            return
        if issubclass(kind, dict):
            size = description["len"] = dict.__len__(value)
            steps = ((*self._key_step(key), part) for key, part in dict.items(value))
        elif issubclass(kind, list | tuple | deque | set | frozenset):
            base = next(base for base in _SEQUENCES if issubclass(kind, base))
            size = description["len"] = base.__len__(value)
            brackets = "{{{}}}" if issubclass(kind, set | frozenset) else "[{}]"
            steps = ((brackets.format(n), "", part) for n, part in enumerate(base.__iter__(value)))
        else:
            attributes = dict(_attributes(value, kind))
            if issubclass(kind, BaseException):
                attributes["args"] = BaseException.args.__get__(value)  # type: ignore[attr-defined]
            size = len(attributes)
            steps = ((f".{name}", name, part) for name, part in attributes.items())
        self._add_parts(description, steps, size, depth, above)

    def _describe_array(
        self, description: Description, value: Any, depth: int, above: tuple[int, ...]
    ) -> None:
        """Describe a NumPy array by its shape and its first elements, which are plain numbers or objects."""
        description |= {"shape": list(value.shape), "dtype": str(value.dtype)}
        head = value.flat[: self.bounds.parts].tolist()
        step = "[{}]" if len(value.shape) == 1 else ".flat[{}]"
        self._add_parts(
            description, ((step.format(n), "", part) for n, part in enumerate(head)), value.size, depth, above
        )

    def _describe_table(
        self, description: Description, value: Any, depth: int, above: tuple[int, ...]
    ) -> None:
        """Describe a DataFrame or a Series of pandas by its shape and the first values of each column."""
        steps: Iterable[tuple[str, str, object]]
        description["shape"] = list(value.shape)
        if len(value.shape) == 1:
            description["dtype"] = str(value.dtype)
            head = value.iloc[: self.bounds.parts].tolist()
            steps = ((f".iloc[{n}]", "", part) for n, part in enumerate(head))
        else:
            columns = list(value.columns[: self.bounds.parts])
            steps = ((*self._key_step(name), value.iloc[:5, n].tolist()) for n, name in enumerate(columns))
        self._add_parts(description, steps, value.shape[-1], depth, above)

    def _key_step(self, key: object) -> tuple[str, str]:
        """Return the step to what has this key, and the name by which a secret is recognised; empty: it has none."""
        return f"[{_key_text(key, self._window)}]", key if type(key) is str else ""

    def _add_parts(
        self,
        description: Description,
        steps: Iterable[tuple[str, str, object]],
        size: int,
        depth: int,
        above: tuple[int, ...],
    ) -> None:
        """Add the parts to a description, each a tuple of the step as text, the name by which a secret is
        recognised, and the value. ``size``: how many parts the value has, by which those that are left out
        are counted."""
        parts: list[list[Any]] = []
        if depth < self.bounds.depth:
            for step, name, part in islice(steps, self.bounds.parts):
                if self.room <= 0:
                    break
                shown = self.text(step)
                self.room -= len(shown) if shown.isascii() else 4 * len(shown)
                parts.append([shown, self._named(name, part, depth + 1, above)])
        if parts:
            description["parts"] = parts
        if size > len(parts):
            description["cut"] = size - len(parts)


def type_name(kind: type) -> str:
    """Return the name of a type with its module (without that for builtins), without asking a metaclass."""
    name = type.__dict__["__qualname__"].__get__(kind)
    module = None
    with suppress(AttributeError):
        module = type.__dict__["__module__"].__get__(kind)
    return f"{module}.{name}" if type(module) is str and module != "builtins" else str(name)


def _type_of(package: str, name: str) -> Any:
    """Return a type of a package, without importing the package; None: it is not imported."""
    kind = getattr(sys.modules.get(package), name, None)
    return kind if isinstance(kind, type) else None


def _key_text(key: object, window: int) -> str:
    """Return the key of a dict as its step shows it. A key of a type whose ``repr`` may run other code is
    shown by its type."""
    if type(key) is str:
        return repr(key[: window + 1])  # so that it can be seen whether it is cut
    if type(key) is int and key.bit_length() <= _INTEGER_BITS:
        return repr(key)
    return repr(key) if id(type(key)) in _REPRESENTED else f"<{type_name(type(key))}>"


def _attributes(value: object, kind: type) -> Iterator[tuple[str, object]]:
    """Yield the attributes that the instance itself holds, in ``__dict__`` and in slots."""
    for base in type.__dict__["__mro__"].__get__(kind):
        for name, descriptor in type.__dict__["__dict__"].__get__(base).items():
            if name == "__dict__" and type(descriptor) is types.GetSetDescriptorType:
                held = descriptor.__get__(value)
                if isinstance(held, dict):
                    yield from ((key, part) for key, part in list(dict.items(held)) if type(key) is str)
            elif type(descriptor) is types.MemberDescriptorType and not name.startswith("__"):
                with suppress(AttributeError):
                    yield name, descriptor.__get__(value)
