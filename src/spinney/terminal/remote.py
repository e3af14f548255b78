"""The client by which commands work through a server (``spinney --server URL …``): it reads the token, and
waits for a server that does not answer for a moment.

A server that is restarted is away for some seconds, and a command that runs for hours (``wait``, a bulk verb)
should survive that. So calls are repeated, but only after the server has answered once in this process: a
wrong URL fails at once. Calls that would be executed twice are not repeated unless they carry an idempotency
key; before the first of these the server is asked who the caller is, so that they are repeated, too. Contents that are
read in pieces continue at the byte where they broke off.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

import httpx
import typer

from spinney.client import Client
from spinney.client.calls import Call
from spinney.client.errors import IncompleteResponse, Unidentified
from spinney.client.verbs import file_path
from spinney.commands import Returns
from spinney.commands.job_queries import ShowJob
from spinney.model.errors import NoSuch, StoreUnavailable, SubmissionUnfinished, UsageError
from spinney.model.homes import DirectoryEntry
from spinney.model.jobs import Attempt
from spinney.terminal.endpoint import FILE_VARIABLE, TOKEN_VARIABLE, Endpoint
from spinney.terminal.output import display

T = TypeVar("T")

PATIENCE_S = 60.0
"""How many seconds a server that has answered before may be away, because it or its store is restarted."""
AGAIN_S = 0.5
"""The pause between two tries, in seconds."""
_TOKEN_MAX = 10_000
"""How many bytes of a token file are read; a larger file holds something else."""


class RetryingClient(Client):
    """A client that repeats a call while a server that has answered before does not answer, if the call may
    be repeated; the first call fails at once. A submission gets an idempotency key, so that it may be
    repeated, too.

    A wait is announced on stderr, once for each outage.
    """

    def __init__(self, url: str, *, token: str | None, outage_limit_s: float) -> None:
        """``outage_limit_s``: for how many seconds a call is repeated; 0: not at all."""
        super().__init__(url, token=token)
        self._outage_limit_s = outage_limit_s
        self._answered, self._has_token = False, token is not None

    def job_files(self, job_id: int) -> "RemoteFiles":
        """Return the files of a job, and its output. Raises NoSuchJob at once, rather than at the first
        file."""
        self.do(ShowJob(job=job_id))
        return RemoteFiles(self, job_id)

    def do(self, command: Returns[T], *, tell: Callable[[Any], None] | None = None) -> T:
        """As ``Client.do``; a command that takes an idempotency key and has none gets one."""
        if getattr(command, "idempotency_key", "") is None:  # so that it may be sent again
            if not self._answered:
                self.me()  # a wrong address fails here; after that, nobody would know whether it was submitted
            command = cast("Any", command).model_copy(update={"idempotency_key": uuid4().hex})
        return super().do(command, tell=tell)

    def send(self, call: Call[T]) -> T:
        """Return the answer to a call, as ``Client.send``, repeated while the server does not answer.

        The time limit begins anew with each call. Raises what the last try raises: StoreUnavailable (from the
        store behind the server, too) after the limit, for the first call, and for a call that may not be
        repeated; other errors at once, since they are the server's answers. A repeated submission waits without a limit
        while the first is being written, which is over a minute after its writer has died.
        """
        give_up: float | None = None
        while True:
            try:
                answer = super().send(call)
            except StoreUnavailable as away:
                now = time.monotonic()
                if not (self._answered and call.repeatable) or now >= (give_up or now + self._outage_limit_s):
                    raise
                if give_up is None:
                    give_up = now + self._outage_limit_s
                    self._tell(away)
                time.sleep(AGAIN_S)
            except SubmissionUnfinished:
                if not call.repeatable:
                    raise
                time.sleep(AGAIN_S)
            except Unidentified as error:
                if self._has_token:
                    raise
                raise Unidentified(
                    f"this server wants a token; name its file with --token-file, or put it into {TOKEN_VARIABLE}; "
                    "'spinney token make NAME' makes one on the host that has the store"
                ) from error
            else:
                self._answered = True
                return answer

    def whole(self, pieces: Callable[[int], Iterator[bytes]], start: int) -> Iterator[bytes]:
        """Yield a content from byte ``start`` to its end; after an interruption it continues where it broke
        off.

        ``pieces`` requests the content from a byte on; it is called once, and again after each interruption.
        Each byte is yielded once. Raises what the last try raises when nothing more has come for as long as a
        call is repeated: the server may answer, and yet fail at the same byte each time.
        """
        give_up: float | None = None
        while True:
            before = start
            try:
                for piece in pieces(start):
                    self._answered, give_up = True, None
                    start += len(piece)
                    yield piece
            except StoreUnavailable:  # from the store behind the server, too
                if not self._answered:
                    raise
                if start == before:
                    give_up = give_up or time.monotonic() + self._outage_limit_s
                    if time.monotonic() >= give_up:
                        raise
                    time.sleep(AGAIN_S)
                self.me()  # answers when it is back, or says that it is not
            else:
                return

    def download_whole(self, job_id: int, file: str, start: int) -> Iterator[bytes]:
        """Yield a file in a job's folder from byte ``start`` on, all of the same version. Raises IncompleteResponse
        when it broke off and the rest of that version is no longer available."""
        version = _Version(start)
        return self.whole(
            lambda at: self._content(
                f"/jobs/{job_id}/files/{file_path(file)}",
                headers=version.headers(at),
                require=lambda answer: version.require(answer, at),
            ),
            start,
        )

    def _tell(self, away: StoreUnavailable) -> None:
        if self._outage_limit_s:
            typer.echo(f"spinney: {display.safe(str(away))}; waiting for it", err=True)


class _Version:
    """Which version of a file a download began with, by its ETag: a job that runs again replaces its files,
    and the beginning of one with the end of another would be neither.

    The rest is requested with ``Range`` and ``If-Range`` (RFC 9110 section 13.1.5), to which a server answers
    with the whole file when the version has changed.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._etag: str | None = None

    def headers(self, at: int) -> dict[str, str]:
        """Return the headers that request the content from byte ``at`` on. Raises IncompleteResponse for the rest of a
        file whose version is unknown, as one on another host's is."""
        if at == self._start:
            return {"Range": f"bytes={at}-"} if at else {}
        if self._etag is None:
            raise IncompleteResponse
        return {"Range": f"bytes={at}-", "If-Range": self._etag}

    def require(self, answer: httpx.Response, at: int) -> None:
        """Remember the version of an answer from the first byte on, or check that a later answer continues
        it.

        Raises IncompleteResponse when a later one is neither the rest of that version nor says, by
        ``Content-Range: bytes */SIZE``, that the file ends exactly at ``at``.
        """
        if at == self._start:
            self._etag = answer.headers.get("ETag")
            return
        rest = answer.status_code == httpx.codes.PARTIAL_CONTENT and answer.headers.get("ETag") == self._etag
        if not rest and answer.headers.get("Content-Range") != f"bytes */{at}":
            raise IncompleteResponse("the file has changed meanwhile", "download it again")


class RemoteFiles:
    """The files of one job through a server: the counterpart of
    ``spinney.features.files.job_folder.JobFiles``, so that ``files`` and ``logs`` do not care where the
    folder is."""

    def __init__(self, client: "RetryingClient", job_id: int) -> None:
        self._client, self._job_id = client, job_id

    def content(self, path: str, *, start: int = 0, must: bool = True) -> Iterator[bytes]:
        """Yield a file from byte ``start`` on. For one that does not exist it raises NoSuch, or yields nothing when
        ``must`` is False."""
        try:
            yield from self._client.download_whole(self._job_id, path, start)
        except NoSuch:
            if must:
                raise

    def output(self, attempt: Attempt, stream: str, *, start: int = 0) -> Iterator[bytes]:
        """Yield what an attempt wrote to ``stdout`` or ``stderr``, from byte ``start`` to what is there now. A broken
        connection is taken up where it broke."""
        fence = attempt.fence
        return self._client.whole(
            lambda at: self._client.output(self._job_id, fence, stream, start=at), start
        )

    def everything(self) -> Iterator[tuple[str, DirectoryEntry]]:
        """Yield all files of the job with their paths, ordered by path. An entry has the size of its file in
        bytes, and its kind."""
        for file in self._client.files(self._job_id).items:
            yield (
                file.path,
                DirectoryEntry(name=file.path.rpartition("/")[2], kind=file.kind, size=file.size),
            )


def token_of(endpoint: Endpoint) -> str | None:
    """Return the token from the file that is named, else from the environment; None: there is none.

    A file that was named by an option takes precedence over a token in the environment, but one that only the
    environment names does not. The file must be readable for its owner alone, and hold one printable ASCII
    word. Raises UsageError.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if endpoint.token_file is None or (token and endpoint.token_file == os.environ.get(FILE_VARIABLE)):
        return token.strip() or None if token else None
    file = Path(endpoint.token_file)
    try:
        with file.open("rb") as opened:
            if os.fstat(opened.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UsageError(f"other users may read the token in {file}; forbid it: chmod 600 {file}")
            text = opened.read(_TOKEN_MAX)
    except OSError as error:
        raise UsageError(
            f"cannot read the token in {file}: {error.strerror}; name a file that can be read"
        ) from error
    try:
        token = text.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise UsageError(f"there is no token in {file}; put in what 'spinney token make' printed")
    return token
