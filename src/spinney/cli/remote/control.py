"""The counterpart of ``Control``."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import orjson

from spinney.cli.remote.client import RetryingClient
from spinney.cli.remote.files import RemoteFiles
from spinney.client.verbs import lines_call
from spinney.commands.command import Returns
from spinney.define.job.options import Options
from spinney.store.contract import SubmitResult
from spinney.terminal.connection import now_us
from spinney.terminal.endpoint import require_not_internal

T = TypeVar("T")

_NO_OPTIONS = Options()


class RemoteControl:
    """One person's hand on the store of a server, which knows that person by the token."""

    def __init__(self, client: RetryingClient) -> None:
        self.client = client
        self.look_s = client.look_s

    def do(self, command: Returns[T], *, tell: Callable[[Any], None] | None = None) -> T:
        """The same command, done by the server."""
        return self.client.do(command, tell=tell)

    def job_files(self, job_id: int) -> RemoteFiles:
        """The files of a job, and what it wrote. Raises NoSuchJob."""
        return self.client.job_files(job_id)

    def clock(self) -> int:
        """Microseconds since 1970 UTC, by the clock here."""
        return now_us()

    def submit(
        self,
        type_: str | None,
        rows: Iterable[Mapping[str, Any]],
        options: Options = _NO_OPTIONS,
        *,
        internal: bool = False,
    ) -> SubmitResult:
        """One job a row. Sent again by itself, with the same key, where the answer got lost."""
        require_not_internal(internal)
        ids: list[int] = []
        held = 0
        for row in rows:
            made = self.client.submit(type_, dict(row), idempotency_key=uuid4().hex, **_options(options))
            ids.append(made.id)
            held += made.held
        return SubmitResult(ids=ids, held=held)

    def submit_lines(
        self,
        lines: Iterable[str | bytes],
        *,
        type_: str | None = None,
        options: Options = _NO_OPTIONS,
        internal: bool = False,
    ) -> SubmitResult:
        """Jobs that are lines of JSON: all, or none."""
        require_not_internal(internal)
        said = _options(options)
        written = [line.encode() if isinstance(line, str) else line for line in lines]
        if said:
            written, type_ = [_with(line, type_, said) for line in written], None
        body = b"\n".join(line.rstrip(b"\r\n") for line in written)
        if not body.strip():
            return SubmitResult(ids=[])
        made = self.client.send(lines_call(body, type_, uuid4().hex))
        return SubmitResult(ids=made.ids, held=made.held)


def _options(options: Options) -> dict[str, Any]:
    names = ("queue", "priority", "share", "collection", "submitter", "key", "forever", "data")
    found = {name: getattr(options, name) for name in names if getattr(options, name)}
    if options.priority is not None:
        found["priority"] = options.priority
    if options.at is not None:
        found["at"] = options.at.isoformat()
    return found | ({"needs": list(options.needs)} if options.needs else {})


def _with(line: bytes, type_: str | None, options: Mapping[str, Any]) -> bytes:
    """The line with what the command says of all, over which its own words count."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line  # the server tells which line it is, and why
    if type_ is not None:
        return orjson.dumps({**options, "type": type_, "params": value})
    return orjson.dumps({**options, **value}) if isinstance(value, dict) else line
