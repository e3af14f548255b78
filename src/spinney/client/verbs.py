"""The methods of both clients that are not commands: submission, files, and what is not JSON.

Each is the request that it makes, and names its parameters as the API does. A name that Python has for itself bears an
underscore behind it (``type_``).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, TypedDict, Unpack

import orjson

from spinney.client.calls import (
    IDEMPOTENCY,
    Call,
    decode_json,
    get,
    json_body,
    path,
    query_params,
    request,
    verb,
)
from spinney.schemas import CreatedJob, CreatedJobs, Files, KeptOutput, Me, UploadedFile


class Options(TypedDict, total=False):
    """How a job is to be submitted; what is left out comes from the type, or the defaults."""

    queue: str | None
    priority: int | None
    share: str | None
    collection: str | None
    submitter: str | None
    key: str | None
    """Of all jobs with this key only one is unsettled."""
    forever: bool
    at: int | str | None
    """Not before: microseconds since 1970 UTC, or ISO 8601 with a zone."""
    needs: Sequence[int]
    data: Mapping[str, Any]


class Verbs:
    """The methods that both clients have. They raise what the server refuses, and ServerUnavailable.

    Those that submit take an ``idempotency_key``, a text that is new for each submission. The same request sent again
    with it within a day, also after a crash, returns the same jobs."""

    @verb
    def submit(
        self: None,
        type_: str | None,
        params: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> Call[CreatedJob]:
        """Submit a job; without a type it is of the default type of its queue. It is durable when this returns."""
        return Call(
            method="POST",
            path="/jobs",
            decode=decode_json(CreatedJob),
            headers=_idempotency_header(idempotency_key),
            json=json_body(type_=type_, params=params, **options),
        )

    @verb
    def submit_with_files(
        self: None,
        type_: str | None,
        params: Mapping[str, Any],
        files: Mapping[str, bytes | IO[bytes]],
        *,
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> Call[CreatedJob]:
        """The same, with files that are in the job's folder, under these paths, before it may start."""
        job = orjson.dumps(json_body(type_=type_, params=params, **options))
        parts = [("file", (name, content, "application/octet-stream")) for name, content in files.items()]
        return Call(
            method="POST",
            path="/jobs",
            decode=decode_json(CreatedJob),
            headers=_idempotency_header(idempotency_key),
            files=(("job", (None, job, "application/json")), *parts),
        )

    @verb
    def submit_many(
        self: None,
        jobs: Iterable[Mapping[str, Any]],
        *,
        type_: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[CreatedJobs]:
        """Submit many: all, or none. Each is ``type``, ``params`` and options, in whose ``needs`` -k is the k-th of
        them; with ``type_``, each is the parameters of a job. Some thousand at once are fastest."""
        lines = b"".join(orjson.dumps(job, option=orjson.OPT_APPEND_NEWLINE) for job in jobs)
        return lines_call(lines, type_, idempotency_key)

    @verb
    def files(self: None, job: int) -> Call[Files]:
        """All below its folder, by path; ``download`` and ``output`` of the clients give what is in them."""
        return get(path("/jobs/{}/files", job), Files)

    @verb
    def upload(
        self: None, job: int, file: str, content: bytes | IO[bytes] | Iterable[bytes]
    ) -> Call[UploadedFile]:
        """Put a file into its folder; not while it is at work. An AsyncClient takes bytes alone."""
        return Call(
            method="PUT",
            path=f"/jobs/{job}/files/{file_path(file)}",
            decode=decode_json(UploadedFile),
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )

    @verb
    def me(self: None) -> Call[Me]:
        """Who asks, and what that one may."""
        return get("/me", Me)

    @verb
    def keep_output(
        self: None, worker: str, job: int, fence: int, text: str, *, stream: str = "stdout"
    ) -> Call[KeptOutput]:
        """Append to the output of an attempt of an external worker."""
        address = path("/external/{}/attempts/{}/{}/output", worker, job, fence)
        return request("POST", address, KeptOutput, json_body(stream=stream, text=text))


def lines_call(lines: bytes, type_: str | None, idempotency_key: str | None) -> Call[CreatedJobs]:
    """Submit jobs that are lines of JSON already."""
    return Call(
        method="POST",
        path="/jobs/batch",
        decode=decode_json(CreatedJobs),
        query=query_params(type_=type_),
        content=lines,
        headers={"Content-Type": "application/x-ndjson", **_idempotency_header(idempotency_key)},
    )


def _idempotency_header(key: str | None) -> dict[str, str]:
    return {} if key is None else {IDEMPOTENCY: key}


def file_path(text: str) -> str:
    """A path in a job's folder, as an address writes it."""
    return "/".join(path("{}", part) for part in text.split("/"))
