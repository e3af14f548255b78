"""A call of the API as a value: the request, and what its answer means. Nothing is sent here."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload
from urllib.parse import quote

from pydantic import TypeAdapter

from spinney.commands.command import Command, Returns

if TYPE_CHECKING:
    from spinney.client.clients import AsyncClient, Client

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request."""

    method: str
    path: str
    """Below ``/api/v1``, parts quoted."""
    decode: Callable[[bytes], T]
    """What the body of the answer means."""
    query: tuple[tuple[str, str], ...] = ()
    json: Any = None
    content: bytes | IO[bytes] | Iterable[bytes] | None = None
    files: tuple[tuple[str, "Part"], ...] = ()
    """Of a form: name and part."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does nothing twice: it only reads, or the server knows it again."""
        return self.method == "GET" or IDEMPOTENCY in self.headers


Part = tuple[str | None, bytes | IO[bytes], str]
"""File name, content, media type."""
IDEMPOTENCY = "Idempotency-Key"
IDEMPOTENCY_FIELD = "idempotency_key"
"""The field of a command that travels in this header."""
NDJSON = "application/x-ndjson"


def path(text: str, *parts: object, **named: object) -> str:
    """``/jobs/{}/tree`` or ``/jobs/{job}/tree`` with each part in its place, quoted."""
    return text.format(
        *(quote(str(part), safe="") for part in parts),
        **{name: quote(str(part), safe="") for name, part in named.items()},
    )


def json_body(**given: Any) -> dict[str, Any]:
    """A body of JSON: what is None is left out."""
    return {name.rstrip("_"): value for name, value in given.items() if value is not None}


def get(where: str, answer: Any, **query: Any) -> "Call[Any]":
    """A call that reads; its answer is JSON of this type."""
    return Call(method="GET", path=where, decode=decode_json(answer), query=query_params(**query))


def request(method: str, where: str, answer: Any = None, json: Any = None, **query: Any) -> "Call[Any]":
    """A call that does something; ``answer`` None: its answer says nothing."""
    decode = no_content if answer is None else decode_json(answer)
    return Call(method=method, path=where, decode=decode, query=query_params(**query), json=json)


def command_call(command: Returns[T]) -> "Call[T]":
    """The call that has a server do a command."""
    asked = cast("Command", command)
    lines = asked.route.lines
    said = asked.model_dump(mode="json", exclude_unset=True, exclude={lines} if lines else None)
    where = path(asked.route.path, **{name: said.pop(name) for name in asked.route.in_path})
    answer = asked.answer()
    if asked.route.dry_run:
        said["dry_run"] = True
    query = {
        name: said.pop(name) for name in [*said] if not asked.route.has_body or name in asked.route.query
    }
    key = (said if asked.route.has_body else query).pop(IDEMPOTENCY_FIELD, None)
    call = request(asked.route.method, where, answer, said if asked.route.has_body else None, **query)
    headers = {} if key is None else {IDEMPOTENCY: key}
    if lines is None:
        return replace(call, headers=headers)
    content = b"\n".join(line.rstrip(b"\r\n") for line in getattr(asked, lines))
    return replace(call, content=content, headers=headers | {"Content-Type": NDJSON})


def decode_json(type_: Any) -> Callable[[bytes], Any]:
    """The meaning of an answer that is JSON of this type. What a newer server says beside is passed over."""
    return _adapter(type_).validate_json


def no_content(_: bytes) -> None:
    """The meaning of an answer that says nothing."""


@lru_cache(maxsize=256)
def _adapter(type_: Any) -> "TypeAdapter[Any]":
    return TypeAdapter(type_)


def query_params(**given: Any) -> tuple[tuple[str, str], ...]:
    """A query: what is None is left out, lists are repeated, flags are words."""
    found: list[tuple[str, str]] = []
    for name, value in given.items():
        values = value if isinstance(value, list | tuple | set | frozenset) else (value,)
        found += [(name.rstrip("_"), _query_value(v)) for v in values if v is not None]
    return tuple(found)


def _query_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class verb(Generic[P, T]):
    """A verb of both clients, from the function that makes its call: waited for in the one, awaited in the other."""

    def __init__(self, make: Callable[Concatenate[None, P], Call[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: "Client", owner: type | None = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: "AsyncClient", owner: type | None = None) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, client: None, owner: type | None = None) -> "verb[P, T]": ...
    def __get__(self, client: "_Sends | None", owner: type | None = None) -> Any:
        if client is None:
            return self

        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.send(self._make(None, *args, **kwargs))

        bound.__doc__ = self.__doc__
        return bound


class _Sends(Protocol):
    def send(self, call: Call[Any]) -> Any: ...
