"""The session in which a command uses the ingest service, on a local store or through a server, and commands made from
verbs.

A *verb* is an operation of the service as a value: its fields are the parameters, and ``run`` does it. On a
local store it is run here; through a server it is sent as query (GET) or body (POST) of the route of its
name, without the fields that have their default, and the server runs it. The answer is the same JSON either
way: that of a local verb is serialized and parsed again.

The fields of a verb are the arguments and options of its command (``spinney.command_line.add_command``). What remains
to be written for a command is how its answer looks::

    @command(app, Sweep)
    def show_sweep(query: Sweep, answer: Mapping[str, Any], *, json: JsonOption = False) -> None: ...

A command that does more than one verb, or reads files, is a function of Typer's whose options come from
``spinney.command_line.with_fields``.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import uuid4

import orjson
import typer

from spinney.apps.ingest.config import settings
from spinney.apps.ingest.verbs import Verb, written
from spinney.apps.ingest.verbs.archive import File, Manifest
from spinney.apps.ingest.verbs.arrivals import submit
from spinney.apps.ingest.verbs.service import Service, refused
from spinney.apps.ingest.verbs.submission import Submit
from spinney.command_line import add_command, endpoint, open_client, open_control
from spinney.errors import CommitUncertain

if TYPE_CHECKING:
    from spinney.command_line import Call, RetryingClient
    from spinney.operations import Control

ROUTE_PREFIX = "/apps/ingest"
_NO_QUERY: Mapping[str, Any] = {}
Show = Callable[..., None]
"""Prints the answer of a verb; it gets the verb, the answer, and the values of options of its own."""


@dataclass(frozen=True, slots=True)
class _LocalSession:
    """Runs verbs on a store that this host can open, in the name of the login user or of ``--by``. Every answer is a
    JSON value, the same as that of a server."""

    performer: "Control"
    """Does commands of the engine."""

    def do(self, verb: Verb) -> Any:
        """Run a verb, and return its answer. Raises the verb's errors."""
        return orjson.loads(written(verb.run(self._service)))

    def submit(self, payload: BinaryIO, submission: Submit, key: str | None) -> Any:
        """Submit a payload, and return the batch. ``key``: an idempotency key (``arrivals.expect``); None: none."""
        return orjson.loads(written(submit(self._service, payload, submission, key).answer()))

    def content(self, selection: File | Manifest) -> Iterator[bytes]:
        """Yield the bytes of a file of a stored object, or of the object's manifest. Raises Refused before the end if
        the stored file is damaged."""
        return selection.content(self._service).pieces

    @property
    def _service(self) -> Service:
        return Service(control=self.performer, settings=settings.load())


@dataclass(frozen=True, slots=True)
class _RemoteSession:
    """Sends verbs to the routes of a server (``routes``), which runs them in the name of the token's user. Its methods
    are those of a local session, and raise a server's errors by its response."""

    performer: "RetryingClient"

    def do(self, verb: Verb) -> Any:
        fields = verb.model_dump(mode="json", exclude_defaults=True)
        if verb.changes:
            return self.performer.send(_call("POST", verb.name, orjson.loads, json=fields))
        return self.performer.send(_call("GET", verb.name, orjson.loads, fields))

    def submit(self, payload: BinaryIO, submission: Submit, key: str | None) -> Any:
        from httpx import ConnectError

        from spinney.command_line import IDEMPOTENCY
        from spinney.errors import ServerUnavailable, UnexpectedResponse

        _ = submission.expected_digest  # raises for an invalid one, before the payload is sent
        fields = submission.model_dump(mode="json", exclude_defaults=True)
        key = key or uuid4().hex
        headers = {"Content-Type": "application/octet-stream", IDEMPOTENCY: key}
        try:
            return self.performer.send(
                _call("POST", "submit", _without_links, fields, content=payload, headers=headers)
            )
        except (CommitUncertain, UnexpectedResponse, ServerUnavailable) as error:
            if isinstance(error.__cause__, ConnectError):  # nothing was sent
                raise
            raise type(error)(
                f"{error}. It may have been accepted: submit it again with --key {key}, which creates no second batch"
            ) from error

    def content(self, selection: File | Manifest) -> Iterator[bytes]:
        name = "file" if isinstance(selection, File) else "manifest"
        return self.performer.pieces(_call("GET", name, bytes, selection.model_dump(exclude_defaults=True)))


IngestSession = _LocalSession | _RemoteSession


@contextmanager
def open_session(store: str | None, by: str | None = None) -> Iterator[IngestSession]:
    """Open a session on ``store``: the URL of a store or of a server, by default the configured one.

    ``by``: the name in which local changes are made, by default the login name; a server knows the user by
    the token, and UsageError is raised for a name. NotAdmitted within the block becomes Refused, which the
    command line shows.
    """
    with refused():
        if endpoint.server(store) is None:
            with open_control(store, by) as control:
                yield _LocalSession(control)
        else:
            with open_client(store, by) as client:
                yield _RemoteSession(client)


def command(app: typer.Typer, verb: type[Verb]) -> Callable[[Show], Show]:
    """Add a command that runs ``verb`` and shows its answer by the decorated function.

    The command's options are the fields of the verb, the keyword parameters of the function, ``--by`` if the
    verb changes something, and ``--store``. Its help is the docstring of the verb, its name that of the verb. The
    function gets the verb with its parameters and the answer as JSON values, and returns nothing; it may end the
    command with ``typer.Exit``. It is called after the session has been closed.
    """

    def decorate(show: Show) -> Show:
        def run(
            query: Verb, own: Mapping[str, Any], *, json: bool, by: str | None, store: str | None
        ) -> None:
            with open_session(store, by) as session:
                answer = session.do(query)
            show(query, answer, **own)

        add_command(app, verb, verb.name, verb.__doc__, show, run, changes=verb.changes)
        return show

    return decorate


def _call(
    method: str, name: str, decode: Callable[[bytes], Any], query: Mapping[str, Any] = _NO_QUERY, **parts: Any
) -> "Call[Any]":
    """Return the request to a route of the service."""
    from spinney.command_line import Call, query_params  # with httpx, which is slow to load

    path = f"{ROUTE_PREFIX}/{name}"
    return Call(method=method, path=path, decode=decode, query=query_params(**query), **parts)


def _without_links(answer: bytes) -> Any:
    """Return a server's answer to a submission as a local session would: without the links to the server's
    pages."""
    return {name: value for name, value in orjson.loads(answer).items() if name != "links"}
