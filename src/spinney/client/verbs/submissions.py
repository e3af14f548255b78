"""Jobs, submitted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, TypedDict, Unpack

import orjson

from spinney.client.calls import IDEMPOTENCY, Call, decode_json, json_body, query_params, verb
from spinney.schemas import CreatedJob, CreatedJobs


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


class SubmissionVerbs:
    """Each takes an ``idempotency_key``, a text that is new for each submission. Sent again with the same request
    within a day, also after a crash, it answers with the same jobs."""

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
