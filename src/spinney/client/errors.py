"""Errors of a server, as the exceptions that a command raises on a store for the same reason."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson

from spinney.model import errors
from spinney.model.errors import Forbidden, Refused, SpinneyError, StoreUnavailable, UsageError


class Unidentified(Forbidden):
    """The server wants to know who asks: there is no token, or it is not valid; pass one that is."""


_ASK_AGAIN = "ask again, or see what its log tells"
_TYPE = "urn:spinney:problem:"
_BY_WORD: Mapping[str, type[SpinneyError]] = MappingProxyType(
    {
        "forbidden": Forbidden,
        "unidentified": Unidentified,
        "no-such-job": errors.NoSuchJob,
        "not-found": errors.NoSuch,
        "stale-fence": errors.StaleFence,
        "duplicate-key": errors.DuplicateKey,
        "unfinished": errors.SubmissionUnfinished,
        "unlawful-transition": errors.UnlawfulTransition,
        "refused": Refused,
        "unknown-type": errors.UnknownType,
        "bad-parameters": errors.BadParameters,
        "cycle": errors.Cycle,
        "usage": UsageError,
        "invalid": UsageError,
        "malformed": UsageError,
        "disk-full": errors.DiskFull,
        "fate-unknown": errors.CommitUncertain,
        "store-away": StoreUnavailable,
        "store-unusable": errors.StoreUnusable,
        "too-many": Refused,
    }
)
"""The exceptions by the last word of a problem's type. A word that only a newer server knows becomes
SpinneyError."""


class ServerUnavailable(StoreUnavailable):
    """The server does not answer; see that it runs, and that its address is right."""


class IncompleteResponse(Refused):
    """The server broke its answer off, and what has come is not the whole; ask again, or see what its log tells."""

    def __init__(self, why: str = "the server broke its answer off", todo: str = _ASK_AGAIN) -> None:
        super().__init__(f"{why}, and what has come is not the whole; {todo}")


class UnexpectedResponse(SpinneyError):
    """What answered is no server of Spinney, or something stands between; the message tells what it said."""


_BEHIND_PROXY = (502, 503, 504)
"""How a proxy answers while the server behind it does not."""


def unexpected_response(status: int, content: bytes) -> SpinneyError:
    """Return the error for a response that no Spinney server gives, with the beginning of its body: ServerUnavailable
    for that of a proxy whose server is away, else UnexpectedResponse."""
    text = content[:200].decode("utf-8", "replace").strip()
    if status in _BEHIND_PROXY:
        return ServerUnavailable(
            f"a proxy answered {status} in place of the server: {text!r}; see that the server behind it runs"
        )
    advice = "check its address"
    if 300 <= status < 400:
        advice = (
            "a client follows no redirects: give the address that this one leads to (with https:// if this one has "
            "http://), and let a proxy pass the API without a sign-in of its own"
        )
    return UnexpectedResponse(
        f"the server answered {status}, and not as a Spinney server does: {text!r}; {advice}"
    )


def error_from_response(status: int, content: bytes) -> SpinneyError:
    """Return the exception for a response whose status is no success. Its message is the server's. It is
    that of ``unexpected_response`` when the body is no problem document (RFC 9457), as when a proxy answers."""
    try:
        problem = orjson.loads(content)
        word, detail = str(problem["type"]).removeprefix(_TYPE), str(problem["detail"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return unexpected_response(status, content)
    return _made(_BY_WORD.get(word, SpinneyError), detail, problem)


def _made(kind: type[SpinneyError], detail: str, problem: Any) -> SpinneyError:
    """Return an exception of this class with the server's message and the fields of the problem: some classes
    would make their message from parts."""
    error = kind.__new__(kind)
    Exception.__init__(error, detail)
    for name in ("job_id", "key", "fence", "before", "after"):
        if isinstance(problem, dict) and name in problem:
            setattr(error, name, problem[name])
    return error
