"""A call of the API as a value: the request, and how its answer is decoded. Nothing is sent here."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import IO, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload
from urllib.parse import quote

from pydantic import TypeAdapter

from spinney.commands.command import Returns, require_command
from spinney.model.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request to the API as a value, which both clients send, with the function that decodes its answer."""

    method: str
    path: str
    """The address below ``/api/v1``, with its parts quoted."""
    decode: Callable[[bytes], T]
    """Decodes the body of the answer."""
    query: tuple[tuple[str, str], ...] = ()
    """Names and values of the query, in their order."""
    json: Any = None
    """The body as a JSON value; None: there is none."""
    content: bytes | IO[bytes] | Iterable[bytes] | None = None
    """The body as bytes, an open file or pieces; None: there is none."""
    files: tuple[tuple[str, "Part"], ...] = ()
    """The parts of a form, each with its name."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of the request."""

    @property
    def repeatable(self) -> bool:
        """Return whether the call may be sent again when its answer was lost: it only reads, or has an idempotency
        key, and its body is no stream, which has been read by then."""
        once = self.method == "GET" or IDEMPOTENCY in self.headers
        return once and isinstance(self.content, bytes | None)


Part = tuple[str | None, bytes | IO[bytes], str]
"""A part of a form: file name (None: it is a field), content, and media type."""
IDEMPOTENCY = "Idempotency-Key"
"""The header of an idempotency key: however often a request with it is sent, it takes effect once."""
IDEMPOTENCY_FIELD = "idempotency_key"
"""The field of a command that travels in this header."""
NDJSON = "application/x-ndjson"
"""The media type of lines of JSON."""
NO_PARTS = frozenset({"", ".", ".."})
"""What cannot be part of a path: an HTTP client would remove it, and the part before ``..``, from the address."""


def path(text: str, *parts: object, **named: object) -> str:
    """Return an address with each part quoted and put in its place: ``path("/jobs/{}/tree", 17)``, or by name
    (``{job}``). A slash in a part is quoted, too. Raises UsageError for a part that would make it another
    address."""
    return text.format(
        *(_quoted(str(part)) for part in parts),
        **{name: _quoted(str(part)) for name, part in named.items()},
    )


def _quoted(part: str) -> str:
    """Return one part of an address, quoted. Raises UsageError for one that cannot be a part."""
    if part in NO_PARTS:
        raise UsageError(
            f"{part!r} cannot be part of an address of the API; give the name or number that is meant"
        )
    return quote(part, safe="")


def json_body(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None as the body of a request. A trailing ``_`` of a name is dropped."""
    return {name.rstrip("_"): value for name, value in fields.items() if value is not None}


def get(address: str, answer: Any, **query: Any) -> "Call[Any]":
    """Return a call that reads. ``answer``: the type of the answer, which is JSON; ``query``: as in
    ``query_params``."""
    return Call(method="GET", path=address, decode=decode_json(answer), query=query_params(**query))


def request(method: str, address: str, answer: Any = None, json: Any = None, **query: Any) -> "Call[Any]":
    """Return a call that may change something. ``answer``: the type of the answer (None: it has no content); ``json``:
    the body; ``query``: as in ``query_params``."""
    decode = no_content if answer is None else decode_json(answer)
    return Call(method=method, path=address, decode=decode, query=query_params(**query), json=json)


def command_call(command: Returns[T]) -> "Call[T]":
    """Return the call by which a server performs a command. Only fields that were set are sent, so that the defaults of
    the server's version apply to the others."""
    value = require_command(command)
    route = value.route
    fields = value.model_dump(mode="json", exclude_unset=True, exclude={route.lines} if route.lines else None)
    address = path(route.path, **{name: fields.pop(name) for name in route.in_path})
    if route.dry_run:
        fields["dry_run"] = True
    key = fields.pop(IDEMPOTENCY_FIELD, None)
    headers = {} if key is None else {IDEMPOTENCY: key}
    query = {name: fields.pop(name) for name in [*fields] if not route.has_body or name in route.query}
    call = request(route.method, address, value.answer(), fields if route.has_body else None, **query)
    if route.lines is None:
        return replace(call, headers=headers)
    content = b"\n".join(line.rstrip(b"\r\n") for line in getattr(value, route.lines))
    return replace(call, content=content, headers=headers | {"Content-Type": NDJSON})


def decode_json(type_: Any) -> Callable[[bytes], Any]:
    """Return the decoder of an answer that is JSON of this type. Fields that only a newer server knows are
    ignored; an answer of another form raises pydantic's ValidationError."""
    return _adapter(type_).validate_json


def no_content(_: bytes) -> None:
    """Decode the body of an answer whose status is 204, which is empty."""


@lru_cache(maxsize=256)
def _adapter(type_: Any) -> "TypeAdapter[Any]":
    """Return the adapter of a type, which takes long to make, and is kept."""
    return TypeAdapter(type_)


def query_params(**values: Any) -> tuple[tuple[str, str], ...]:
    """Return names and values of a query: None is left out, a list gives a pair for each item, a flag is ``true`` or
    ``false``. A trailing ``_`` of a name is dropped."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        items = value if isinstance(value, list | tuple | set | frozenset) else (value,)
        pairs += [(name.rstrip("_"), _query_value(item)) for item in items if item is not None]
    return tuple(pairs)


def _query_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Waits(Protocol):
    """A client that waits for the answer of a call."""

    def send(self, call: Call[T]) -> T: ...


class _Awaits(Protocol):
    """A client whose calls are awaited."""

    async def send(self, call: Call[T]) -> T: ...


class verb(Generic[P, T]):
    """A method of both clients, from the function that makes its call: ``Client`` waits for the answer,
    ``AsyncClient`` returns an awaitable. It is a descriptor, so that one definition has the right type on
    each client."""

    def __init__(self, make: Callable[Concatenate[None, P], Call[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: _Waits, owner: type | None = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: _Awaits, owner: type | None = None) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, client: None, owner: type | None = None) -> "verb[P, T]": ...
    def __get__(self, client: _Waits | _Awaits | None, owner: type | None = None) -> Any:
        if client is None:
            return self

        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.send(self._make(None, *args, **kwargs))

        bound.__name__, bound.__doc__ = self._make.__name__, self.__doc__
        bound.__wrapped__ = partial(self._make, None)  # type: ignore[attr-defined] # help() shows its parameters
        return bound
