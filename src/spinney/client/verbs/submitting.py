"""Jobs, submitted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, TypedDict, Unpack

import orjson

from spinney.answers import Made, MadeMany
from spinney.client.calls import IDEMPOTENCY, Call, answer_of, said, verb, words


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


class SubmittingVerbs:
    """Each takes a ``once``: a word of your choice, new for each submission. Sent again with the same request within a
    day, also after a crash, it answers with the same jobs."""

    @verb
    def submit(
        self: None,
        type_: str | None,
        params: Mapping[str, Any],
        *,
        once: str | None = None,
        **options: Unpack[Options],
    ) -> Call[Made]:
        """Submit a job; without a type it is of the default type of its queue. It is durable when this returns."""
        return Call(
            method="POST",
            path="/jobs",
            meaning=answer_of(Made),
            headers=_once(once),
            json=said(type_=type_, params=params, **options),
        )

    @verb
    def submit_with_files(
        self: None,
        type_: str | None,
        params: Mapping[str, Any],
        files: Mapping[str, bytes | IO[bytes]],
        *,
        once: str | None = None,
        **options: Unpack[Options],
    ) -> Call[Made]:
        """The same, with files that are in the job's folder, under these paths, before it may start."""
        job = orjson.dumps(said(type_=type_, params=params, **options))
        parts = [("file", (name, content, "application/octet-stream")) for name, content in files.items()]
        return Call(
            method="POST",
            path="/jobs",
            meaning=answer_of(Made),
            headers=_once(once),
            files=(("job", (None, job, "application/json")), *parts),
        )

    @verb
    def submit_many(
        self: None, jobs: Iterable[Mapping[str, Any]], *, type_: str | None = None, once: str | None = None
    ) -> Call[MadeMany]:
        """Submit many: all, or none. Each is ``type``, ``params`` and options, in whose ``needs`` -k is the k-th of
        them; with ``type_``, each is the parameters of a job. Some thousand at once are fastest."""
        lines = b"".join(orjson.dumps(job, option=orjson.OPT_APPEND_NEWLINE) for job in jobs)
        return lines_call(lines, type_, once)


def lines_call(lines: bytes, type_: str | None, once: str | None) -> Call[MadeMany]:
    """Submit jobs that are lines of JSON already."""
    return Call(
        method="POST",
        path="/jobs/batch",
        meaning=answer_of(MadeMany),
        query=words(type_=type_),
        content=lines,
        headers={"Content-Type": "application/x-ndjson", **_once(once)},
    )


def _once(key: str | None) -> dict[str, str]:
    return {} if key is None else {IDEMPOTENCY: key}
