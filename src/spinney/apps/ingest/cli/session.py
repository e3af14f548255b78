"""The service that a command asks, at hand or behind a server, and how its refusals are told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol
from uuid import uuid4

import orjson

from spinney.apps.ingest.config import settings
from spinney.apps.ingest.staff import Service, refused, submit
from spinney.apps.ingest.verbs import Verb, written
from spinney.apps.ingest.verbs.archive import File, Manifest
from spinney.apps.ingest.verbs.deposits import Submit, answer_of
from spinney.command_line import client_of, endpoint, open_control, resolve_settings
from spinney.errors import CommitUncertain

if TYPE_CHECKING:
    from spinney.command_line import Call
    from spinney.operations import Control

BELOW = "/apps/ingest"


class Asked(Protocol):
    """A service that is asked: each answer is a value of JSON."""

    @property
    def control(self) -> "Control":
        """Of the engine; through a server its twin."""

    def do(self, verb: Verb) -> Any:
        """The answer of a verb."""

    def submit(self, payload: BinaryIO, asked: Submit, key: str | None) -> Any:
        """Hand a payload in. ``key``: see ``expect``."""

    def content(self, asked: File | Manifest) -> Iterator[bytes]:
        """A file of a stored object, or the manifest of all. Raises Refused where it is damaged, before its end."""


@contextmanager
def serving(store: str | None, by: str | None = None) -> Iterator[Asked]:
    """The service in force here, in somebody's name; the store is closed at the end."""
    with refused(), open_control(store, by) as control:
        yield _Afar(control) if endpoint.server(store) is not None else _AtHand(control, store)


@dataclass(frozen=True, slots=True)
class _AtHand:
    control: "Control"
    _url: str | None

    def do(self, verb: Verb) -> Any:
        return orjson.loads(written(verb.run(self._service)))

    def submit(self, payload: BinaryIO, asked: Submit, key: str | None) -> Any:
        return orjson.loads(written(answer_of(submit(self._service, payload, asked.deposit(), key))))

    def content(self, asked: File | Manifest) -> Iterator[bytes]:
        return asked.content(self._service).pieces

    @property
    def _service(self) -> Service:
        return Service(
            control=self.control, settings=settings.load(), folders=resolve_settings(self._url).folders
        )


@dataclass(frozen=True, slots=True)
class _Afar:
    control: "Control"

    def do(self, verb: Verb) -> Any:
        from spinney.command_line import Call, query_params  # with httpx, which is slow to load

        method, said = "POST" if verb.changes else "GET", verb.model_dump(mode="json", exclude_defaults=True)
        asked: dict[str, Any] = {"json": said} if verb.changes else {"query": query_params(**said)}
        return self._send(Call(method=method, path=f"{BELOW}/{verb.name}", decode=orjson.loads, **asked))

    def submit(self, payload: BinaryIO, asked: Submit, key: str | None) -> Any:
        from httpx import ConnectError

        from spinney.command_line import IDEMPOTENCY, Call, query_params
        from spinney.errors import ServerUnavailable, UnexpectedResponse

        asked.deposit()  # what cannot be meant is refused before the payload is sent
        said = query_params(**asked.model_dump(mode="json", exclude_defaults=True))
        key = key or uuid4().hex
        call = Call(
            method="POST",
            path=f"{BELOW}/submit",
            decode=_accepted,
            query=said,
            content=payload,
            headers={"Content-Type": "application/octet-stream", IDEMPOTENCY: key},
        )
        try:
            return self._send(call)
        except (CommitUncertain, UnexpectedResponse, ServerUnavailable) as error:
            if isinstance(error.__cause__, ConnectError):  # nothing was sent
                raise
            raise type(error)(
                f"{error}. It may have been accepted: hand it in again with --key {key}, which makes no second batch"
            ) from error

    def content(self, asked: File | Manifest) -> Iterator[bytes]:
        from spinney.command_line import Call, query_params

        said = query_params(**asked.model_dump(exclude_defaults=True))
        name = "file" if isinstance(asked, File) else "manifest"
        call = Call(method="GET", path=f"{BELOW}/{name}", decode=bytes, query=said)
        return client_of(self.control).pieces(call)

    def _send(self, call: "Call[Any]") -> Any:
        return client_of(self.control).send(call)


def _accepted(answer: bytes) -> Any:
    """What is said at hand, too: links lead to the server."""
    return {name: value for name, value in orjson.loads(answer).items() if name != "links"}
