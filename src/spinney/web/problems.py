"""Refusals as ``application/problem+json`` (RFC 9457): a sentence, and what to do next.

The type of a problem is a URN for programs; ``detail`` is a sentence for people, and ``next`` the part of it that says
what would help. For an error in the server, the response says only that it happened, and a number; the server's log has
the traceback under this number.
"""

import logging
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from spinney.files.disk_space import is_full
from spinney.model.errors import (
    BadLogin,
    BadParameters,
    CommitUncertain,
    Cycle,
    DiskFull,
    DuplicateKey,
    Forbidden,
    NoSuch,
    NoSuchJob,
    Refused,
    SpinneyError,
    StaleFence,
    StoreReplaced,
    StoreUnavailable,
    StoreUnusable,
    SubmissionUnfinished,
    TooManyAttempts,
    UnknownType,
    UnlawfulTransition,
    UsageError,
)
from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.texts import plain_message
from spinney.web.media_types import PROBLEM, is_of_page

log = logging.getLogger(__name__)

_ROOM = "ask its administrator to free space there, then send the request again"
_NOTHING_THERE = "there is nothing at this address"
STORE_REPLACED = "The store was replaced"
"""The title of the problem while this server ends, and starts again with what is in the place of its store. Programs
try again, as with a store that does not answer."""
AGAIN_S = 2
"""After how many seconds clients should try again while the store does not answer."""


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(
        examples=["urn:spinney:problem:no-such-job"], description="The kind of the problem, for programs."
    )
    title: str = Field(examples=["No such job"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no job 17; check its number in the list of jobs"])
    next: str | None = Field(
        None, examples=["check its number in the list of jobs"], description="What to do next."
    )
    instance: str | None = Field(None, examples=["/api/v1/jobs/17"])
    errors: list[dict[str, Any]] | None = Field(
        None, description="Each wrong part of the request, if there are several."
    )


class Unidentified(Exception):
    """The request has no credentials, or none that are valid; the answer is 401."""

    def __init__(self, sentence: str = "sign in, or give a token: Authorization: Bearer spn_…") -> None:
        super().__init__(sentence)


class TooMany(SpinneyError):
    """A limit of this server is reached; try again after ``after_s`` seconds."""

    def __init__(self, sentence: str, after_s: float) -> None:
        super().__init__(sentence)
        self.after_s = after_s


_KINDS: tuple[tuple[type[Exception], int, str, str], ...] = (
    (Unidentified, 401, "unidentified", "Unauthorized"),
    (BadLogin, 401, "unidentified", "Unauthorized"),
    (Forbidden, 403, "forbidden", "Not allowed"),
    (NoSuchJob, 404, "no-such-job", "No such job"),
    (NoSuch, 404, "not-found", "Not found"),
    (TooManyAttempts, 429, "too-many", "Too many requests"),
    (TooMany, 429, "too-many", "Too many requests"),
    (StaleFence, 409, "stale-fence", "The lease is lost"),
    (DuplicateKey, 409, "duplicate-key", "The key is taken"),
    (UnlawfulTransition, 409, "unlawful-transition", "The state of the job does not allow this"),
    (SubmissionUnfinished, 409, "unfinished", "The same submission is still being written"),
    (Refused, 409, "refused", "Not possible now"),
    (UnknownType, 422, "unknown-type", "Unknown job type"),
    (BadParameters, 422, "bad-parameters", "The parameters are not valid"),
    (Cycle, 422, "cycle", "Jobs would wait for each other"),
    (UsageError, 422, "usage", "Invalid request"),
    (CommitUncertain, 503, "fate-unknown", "The outcome is unknown"),
    (StoreUnavailable, 503, "store-away", "The store does not answer now"),
    (StoreReplaced, 503, "store-away", STORE_REPLACED),
    (DiskFull, 507, "disk-full", "Insufficient storage"),
    (StoreUnusable, 503, "store-unusable", "The store cannot be used as it is"),
)
"""Status, type and title by the class of the error; the first class that matches counts."""

_BY_STATUS: Mapping[int, tuple[str, str]] = {
    400: ("malformed", "Malformed request"),
    401: ("unidentified", "Unauthorized"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "Not found"),
    405: ("method", "Method not allowed"),
    408: ("too-slow", "Request timeout"),
    409: ("refused", "Not possible now"),
    411: ("length-required", "Length required"),
    413: ("too-large", "Content too large"),
    414: ("long-address", "URI too long"),
    415: ("media-type", "Unsupported media type"),
    416: ("range", "Range not satisfiable"),
    421: ("host", "Misdirected request"),
    422: ("invalid", "The request is not valid"),
    429: ("too-many", "Too many requests"),
    431: ("long-head", "Request header fields too large"),
    500: ("fault", "Internal server error"),
    503: ("store-away", "The store does not answer now"),
    507: ("disk-full", "Insufficient storage"),
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of these problems, beside those that every route has, for ``responses=`` of a
    route. Raises KeyError for a status that no problem has."""
    return {
        status: {
            "description": _BY_STATUS[status][1],
            "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted({400, 401, 403, 414, 422, 429, 503, *statuses})
    }


_LOG_SAYS_WHY = "try again in a moment, or ask the administrator of this server: its log says why"
_PUBLIC_SENTENCES: tuple[tuple[type[StoreUnusable], str], ...] = (
    (
        CommitUncertain,
        "the store was lost during a commit, so the request may have been executed or not; check before you repeat it",
    ),
    (StoreUnavailable, f"the store does not answer now; {_LOG_SAYS_WHY}"),
    (StoreReplaced, f"the store was replaced, and this server has to start again; {_LOG_SAYS_WHY}"),
    (DiskFull, f"a disk of the server is full; {_ROOM}"),
    (
        StoreUnusable,
        "the store cannot be used as it is; ask the administrator of this server: its log says why",
    ),
)
"""What callers who have not signed in read of an error of the store; the first class that matches counts."""


def for_caller(request: Request, error: Exception) -> Exception:
    """Return the error as the caller of the request may read it. The message of an error of the store names files,
    hosts and databases, so a caller who is not authenticated, perhaps because the store does not answer, gets a
    general sentence; the log has the message."""
    if (
        not isinstance(error, StoreUnusable)
        or error.is_public
        or getattr(request.state, "principal", None) is not None
    ):
        return error
    return next(type_(sentence) for type_, sentence in _PUBLIC_SENTENCES if isinstance(error, type_))


def kind(error: Exception) -> tuple[int, str, str] | None:
    """Return status, type and title of a refusal. None: the error is a fault of the server."""
    return next(
        ((status, word, title) for type_, status, word, title in _KINDS if isinstance(error, type_)), None
    )


def problem(
    status: int,
    word: str,
    title: str,
    detail: str,
    *,
    instance: str | None = None,
    errors: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the response of a problem. ``word``: the last part of its type; ``detail``: the sentence, of
    which the part behind the last semicolon says what to do next; ``instance``: the path of the request;
    ``errors``: the places, if several parts are wrong."""
    document = Problem(
        type=f"urn:spinney:problem:{word}",
        title=title,
        status=status,
        detail=detail,
        next=_next(detail),
        instance=instance,
        errors=errors,
    )
    content = orjson.dumps(document.model_dump(exclude_none=True))
    return Response(content, status, headers=dict(headers or {}), media_type=PROBLEM)


def of_status(status: int, detail: str, *, instance: str | None = None, **more: Any) -> Response:
    """Return the response of a problem whose type and title follow from its status."""
    word, title = _BY_STATUS.get(status, ("refused", "Refused"))
    return problem(status, word, title, detail, instance=instance, **more)


def of_error(error: Exception, *, instance: str | None = None) -> Response:
    """Return the response of an error: a problem with its sentence. A full disk is a problem, too. An unknown
    error is logged as a fault, and the response has only its number."""
    if is_full(error):
        log.error("a disk is full at %s", instance, exc_info=error)
        return of_status(507, f"a disk of the server is full; {_ROOM}", instance=instance)
    known_kind = kind(error)
    if known_kind is None:
        return _fault(error, instance)
    status, word, title = known_kind
    return problem(status, word, title, str(error), instance=instance, headers=_headers(status, error))


def add_to(app: FastAPI) -> None:
    """Add handlers to ``app`` that turn each error into a problem. FastAPI chooses a handler by the class of
    the error, so each class that has a status of its own is named."""

    async def refused(request: Request, error: Exception) -> Response:
        path = request.url.path
        if isinstance(error, StoreUnusable) and not isinstance(error, StoreUnavailable):  # this the pool logs
            log.error("at %s: %s", path, error)
        return of_error(for_caller(request, error), instance=path)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        plain = _BY_STATUS.get(error.status_code, ("", "Refused"))[1]
        detail = error.detail if isinstance(error.detail, str) else plain
        headers = {"Allow": _allowed(request, error)} if error.status_code == 405 else error.headers
        return of_status(
            error.status_code,
            _with_hint(request, error.status_code, detail),
            instance=request.url.path,
            headers=headers,
        )

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        of_page = is_of_page(request)
        if of_page and any(e["loc"][0] == "path" for e in error.errors()):  # as of an unknown address
            return of_status(404, _NOTHING_THERE, instance=request.url.path)
        # A field that is not there comes first: it may be the one that is missing, with a typing error.
        faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        errors = [_problem(request, fault) for fault in faults]
        malformed = any(fault["type"] == "json_invalid" for fault in faults)
        first = _summary(faults[0], errors[0]) if errors else "the request is not valid"
        if malformed:
            return of_status(400, f"{first}; send valid JSON", instance=request.url.path)
        detail = first if of_page else f"{first}; /api/v1/openapi.json describes what is allowed"
        return of_status(422, detail, instance=request.url.path, errors=errors)

    for type_, *_ in _KINDS:
        app.add_exception_handler(type_, refused)
    app.add_exception_handler(SpinneyError, refused)
    app.add_exception_handler(Exception, refused)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)


def _allowed(request: Request, error: HTTPException) -> str:
    """Return the methods of all routes with the path that fits this address best: the framework knows only those of
    the first route, and ``/jobs/{job}`` fits ``/jobs/batch``, too."""
    matching = [
        route for route in request.app.routes if route.matches(dict(request.scope))[0] is not Match.NONE
    ]
    path = min((route.path for route in matching), key=lambda path: path.count("{"), default=None)
    methods = {
        method for route in matching if route.path == path for method in getattr(route, "methods", None) or ()
    } or set((error.headers or {}).get("Allow", "").split(", "))
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _fault(error: Exception, instance: str | None) -> Response:
    """Log an unexpected error under a number, and return a response that tells only this number."""
    number = secrets.token_hex(4)
    log.error("fault %s at %s", number, instance, exc_info=error)
    sentence = f"a fault of the server's own; its log tells more under {number}, please report it"
    return of_status(500, sentence, instance=instance)


def _headers(status: int, error: Exception) -> dict[str, str]:
    """Return the headers that belong to a problem: when to try again, and for 401 the scheme of tokens (RFC 6750,
    section 3). No browser knows this scheme, so that none asks for a password by itself."""
    if isinstance(error, TooMany | TooManyAttempts):
        after_s = error.after_s if isinstance(error, TooMany) else error.wait_s
        return {"Retry-After": str(max(1, math.ceil(after_s)))}
    if status == 503:
        return {"Retry-After": str(AGAIN_S)}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}


def _next(detail: str) -> str | None:
    """Return the part of a message after the last semicolon: there, messages of Spinney say what to do next."""
    _, cut, hint = detail.rpartition("; ")
    return hint if cut else None


def _with_hint(request: Request, status: int, detail: str) -> str:
    """Return what to do instead in place of the framework's words for an unknown address or method. A reader of pages
    is not sent to the API's document."""
    if detail not in ("Not Found", "Method Not Allowed"):
        return detail
    sentence, hint = {
        404: (_NOTHING_THERE, "lists what there is"),
        405: ("this method is not for this address", "lists those that are"),
    }.get(status, (detail, ""))
    return sentence if is_of_page(request) or not hint else f"{sentence}; /api/v1/openapi.json {hint}"


def _summary(error: Mapping[str, Any], problem: Mapping[str, Any]) -> str:
    """Return what is wrong with one value of a request (``problem``), as a sentence: that of a parameter in the address
    in plain words, since people write these by hand."""
    place, *names = error["loc"]
    if place not in ("path", "query") or not names:
        return f"{problem['where']}: {problem['problem']}"
    first, should, rest = plain_message(error["msg"]).partition(" should ")  # or "Field required"
    words = f"must {rest}" if should else "is missing" if error["type"] == "missing" else f"is wrong: {first}"
    return f"{_where(tuple(names))!r} in the address {words}"


def sentence(error: Mapping[str, Any], type_: type | None) -> str:
    """Return what is wrong with a value, as pydantic found it (``error``: one of ``ValidationError.errors()``). A field
    that is not there in a value of ``type_`` is told with the name that was probably meant, or with those there are."""
    if error["type"] == "extra_forbidden" and type_ is not None:
        *path, name = error["loc"]
        names = _fields_at(type_, path)
        return f"there is no such field{did_you_mean(str(name), names) or f' (there are: {listed(names)})'}"
    return plain_message(error["msg"])


def _problem(request: Request, error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the place of a wrong value of a request, and what is wrong with it."""
    place, *path = error["loc"]
    # None: the route reads the body itself.
    body = getattr(request.scope.get("route"), "body_field", None) if place == "body" else None
    type_ = None if body is None else body.field_info.annotation
    return {"where": _where(error["loc"]), "problem": sentence({**error, "loc": path}, type_)}


def _fields_at(type_: type, path: Sequence[str | int]) -> set[str]:
    """Return the names of the fields that an object may have at this place of a value of this type. A part of the path
    that leads nowhere is one that pydantic adds for an alternative of a union."""
    schema = TypeAdapter(type_).json_schema()
    definitions = schema.get("$defs", {})

    def alternatives(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        if "$ref" in part:
            yield from alternatives(definitions.get(part["$ref"].rpartition("/")[2], {}))
        for other in part.get("anyOf", part.get("oneOf", part.get("allOf", ()))):
            yield from alternatives(other)
        yield part

    places = [*alternatives(schema)]
    for step in path:
        below = [
            place.get("items") if isinstance(step, int) else place.get("properties", {}).get(step)
            for place in places
        ]
        places = [inner for part in below if part for inner in alternatives(part)] or places
    return {name for place in places for name in place.get("properties", ())}


def _where(loc: tuple[Any, ...]) -> str:
    """Return the place of a wrong value in a request: ``body.limit``."""
    return ".".join(str(part) for part in loc)
