"""What a request asks for: its parameters, from its body or its query string, and the options among them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import orjson
from starlette.requests import Request

from spinney.bridges.disbatch.interface.wire import BadRequest

OPTIONS = frozenset(
    f".{name}" for name in ["count", "epoch", "fields", "full", "limit", "pretty", "skip", "terse"]
)
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_MOST_FIELDS = 1000


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a request.

    ``options``: those whose names begin with a dot. ``text``: whether all values are text, because they come
    from a form or a query string; a name that is there more than once has a list of texts. ``items``: the
    array, where the body is one."""

    fields: Mapping[str, Any]
    options: Mapping[str, Any]
    text: bool
    items: list[Any] | None = None

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether an option is set. What Perl takes for false is false, and so is ``false``."""
        value = self.options.get(name, default)
        return value not in (None, False, 0, "", "0", "false")

    def number(self, name: str) -> int:
        """Return an option that is a non-negative number; 0 when it is not given. Raises BadRequest."""
        value = self.options.get(name) or 0
        number = whole(value)
        if number is None:
            raise BadRequest(f"'{name}' must be a non-negative integer")
        return number

    def decoded(self, name: str) -> Any:
        """Return a parameter that may be JSON within text, as forms send it, and all clients ``.fields``;
        None when it is not given. Raises BadRequest where such text is no JSON."""
        option = name.startswith(".")
        value = (self.options if option else self.fields).get(name)
        if (self.text or option) and isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            return _json(value.encode(), f"'{name}'")
        return value


def whole(value: object) -> int | None:
    """Return a non-negative integer that is given as such or as digits; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if good and isinstance(value, int) else None


def limit(value: object, name: str) -> int | None:
    """Return how many tasks may run at once, or None for no limit. Raises BadRequest."""
    if value is not None and whole(value) is None:
        raise BadRequest(f"{name} must be a non-negative integer or null")
    return whole(value)


def refuse_unknown(names: Iterable[str], allowed: Collection[str], error: str) -> None:
    """Raise BadRequest with this sentence, which names the first parameter that there is not."""
    if unknown := sorted(set(names) - set(allowed)):
        raise BadRequest(error, param=unknown[0])


async def parameters(request: Request) -> Parameters:
    """Read the parameters: from a form, else from JSON, else from the query string, of which only one counts.
    Bodies of other types are not read. Raises BadRequest, with the status 413 for a body that is too
    large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = (
        await _body(request, request.app.state.service.settings.body_bytes) if kind in (_FORM, _JSON) else b""
    )
    if kind == _JSON and body.strip():
        content = _json(body, "the body")
        if isinstance(content, list):
            return Parameters({}, {}, False, content)
        if not isinstance(content, dict):
            raise BadRequest("the body must be a JSON object or array")
        return _divided(content, text=False)
    try:
        text = (body if kind == _FORM else request.scope["query_string"]).decode("utf-8")
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise BadRequest(f"the parameters must be UTF-8, and at most {_MOST_FIELDS}") from None
    return _divided(
        {name: values[0] if len(values) == 1 else values for name, values in fields.items()}, text=True
    )


def _divided(content: dict[str, Any], *, text: bool) -> Parameters:
    """Divide the content of a request into fields and options. Raises BadRequest for an unknown option."""
    options = {name: value for name, value in content.items() if name.startswith(".")}
    refuse_unknown(options, OPTIONS, f"unknown option; options are {', '.join(sorted(OPTIONS))}")
    return Parameters({name: value for name, value in content.items() if name not in options}, options, text)


def _json(text: bytes, what: str) -> Any:
    """Return the value of JSON text. Raises BadRequest; ``what`` names the text."""
    try:
        return orjson.loads(text)
    except ValueError as error:
        raise BadRequest(f"{what} is not valid JSON: {error}") from None


async def _body(request: Request, most: int) -> bytes:
    """Read a body, at most so many bytes, without relying on the length that it declares."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise BadRequest(f"the body is larger than {most} bytes; send fewer tasks at once", 413)
    return bytes(body)
