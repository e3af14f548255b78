"""Jobs, submitted: one, one with files, many."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import orjson
from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.exceptions import HTTPException

from spinney.commands.fields import BoundedNumber, Text, Time, Word
from spinney.define.job.options import Options
from spinney.features.files import job_uploads
from spinney.model.types import PRIORITIES
from spinney.schemas import CreatedJob, CreatedJobs
from spinney.store.contract import SubmissionKey, SubmitResult
from spinney.web.api.idempotency import REPLAYED, IdempotencyKey, once_of, replayed
from spinney.web.api.json_routes import JSON, NDJSON, read, require_flat, routes, told
from spinney.web.api.request_types import RequestModel
from spinney.web.bodies import raise_bound
from spinney.web.files import multipart, spool
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

router = routes("jobs")
LONG_LINES = 2_000
"""More jobs than this are not written within a moment."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JobRequest(RequestModel):
    """One job to submit. What is left out comes from the type, or the defaults."""

    type: Word | None = Field(
        default=None, description="The job type; without it, the default type of the queue."
    )
    params: dict[str, Any] = Field(default={}, description="Its parameters, as the type's schema says.")
    queue: Word | None = None
    priority: Annotated[int, Field(ge=PRIORITIES[0], le=PRIORITIES[-1])] | None = Field(
        default=None, description="0 (first) to 99 (last)."
    )
    share: Word | None = Field(default=None, description="Whom it counts against when slots are shared out.")
    collection: Word | None = None
    submitter: Word | None = Field(default=None, description="In whose name, if not in yours.")
    key: Word | None = Field(default=None, description="Of all jobs with this key only one is unsettled.")
    forever: bool = Field(default=False, description="The key stays taken until the job is deleted.")
    at: Time | None = Field(default=None, description="Not before this time.")
    needs: Annotated[list[BoundedNumber], Field(max_length=1_000)] = Field(
        default=[], description="Jobs that must complete first."
    )
    data: dict[Text, Any] = Field(default={}, description="What `job.data` holds from the start.")

    def options(self) -> Options:
        """As ``control`` takes them. Raises UsageError and its kin."""
        at = None if self.at is None else _EPOCH + timedelta(microseconds=self.at)
        return Options(
            queue=self.queue,
            priority=self.priority,
            share=self.share,
            collection=self.collection,
            submitter=self.submitter,
            key=self.key,
            forever=self.forever,
            at=at,
            needs=self.needs,
            data=self.data,
        )


_EXAMPLE = {"type": "resize", "params": {"picture": "/scans/page-1.tif", "width": 200}, "priority": 40}


@router.post(
    "/jobs",
    summary="Submit a job",
    status_code=201,
    responses=documented(404, 408, 409, 413, 415)
    | {201: {"description": "It is accepted.", "headers": REPLAYED}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": JobRequest.model_json_schema(), "example": _EXAMPLE},
                multipart.MULTIPART: {
                    "schema": {
                        "type": "object",
                        "properties": {
                            multipart.JOB: {"type": "string", "description": "The job, as JSON."},
                            "file": {
                                "type": "array",
                                "items": {"type": "string", "format": "binary"},
                                "description": "Files, each in a part of its own, whose file name is its path in the "
                                "job's folder.",
                            },
                        },
                        "required": [multipart.JOB],
                    },
                    "encoding": {multipart.JOB: {"contentType": JSON}},
                },
            },
        }
    },
)
async def submit_job(request: Request, context: Authenticated, key: IdempotencyKey = None) -> CreatedJob:
    """As JSON; or as a form with the job in the part `job` and files beside it, which are in the job's folder before it
    may start. It is durable when this answers."""
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind == multipart.MULTIPART:
        return await _with_files(request, context, key)
    if kind != JSON:
        raise HTTPException(
            415, f"the content type is {given!r:.100}; send {JSON}, or a form ({multipart.MULTIPART})"
        )
    body = await request.body()
    job = _asked(body)
    once = _once(context, key, body)
    done = await context.run(lambda control: control.submit(job.type, [job.params], job.options(), once=once))
    return _made(done.ids[0], held=done.held > 0, repeated=done.repeated)


async def _with_files(request: Request, context: RequestContext, key: str | None) -> CreatedJob:
    root = request.app.state.folders
    raise_bound(request)

    await job_uploads.require(context, root)
    with spool.upload(root) as upload:
        body = await multipart.read(request.headers["content-type"], request.stream(), upload)
        job = _asked(body)
        once = None
        if key is not None:
            once = _once(context, key, body + (await asyncio.to_thread(upload.digest)).encode())

        begun = await job_uploads.with_files(
            context, root, upload, job.type, job.params, job.options(), once=once
        )
    return _made(begun.job_id, held=False, repeated=begun.repeated)


@router.post(
    "/jobs/batch",
    summary="Submit many jobs",
    status_code=201,
    responses=documented(404, 408, 409, 413, 415)
    | {201: {"description": "All are accepted.", "headers": REPLAYED}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                NDJSON: {
                    "schema": {
                        "type": "string",
                        "description": "A JSON object a line, as of POST /jobs; in `needs`, -k means the "
                        "job of the k-th line. With `type`, each line is the parameters of a job.",
                    },
                    "example": (
                        '{"type": "resize", "params": {"picture": "/a.tif"}}\n'
                        '{"type": "resize", "params": {}}\n'
                    ),
                }
            },
        }
    },
)
async def submit_many(
    request: Request,
    context: Authenticated,
    key: IdempotencyKey = None,
    type_: Annotated[
        Word | None, Query(alias="type", description="Lines are parameters of jobs of this type.")
    ] = None,
) -> CreatedJobs:
    """JSON lines: all are accepted, or none; what is wrong is told with the number of its line. Bodies of some thousand
    lines are fastest."""
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != NDJSON:
        raise HTTPException(415, f"the content type is {given!r:.100}; send JSON lines as {NDJSON}")
    body = await request.body()
    lines = body.split(b"\n")
    for line in lines:
        require_flat(line)
    once = _once(context, key, (type_ or "").encode() + b"\0" + body)
    done: SubmitResult = await context.run(
        lambda control: control.submit_lines(lines, type_=type_, once=once), long=len(lines) > LONG_LINES
    )
    return told(CreatedJobs(ids=done.ids, held=done.held), 201, headers=replayed(done.repeated))


def _asked(body: bytes) -> JobRequest:
    try:
        return JobRequest.model_validate(read(body))
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the job is no JSON: {error}; mend it and send it again") from None
    except ValidationError as error:
        raise RequestValidationError([{**e, "loc": ("body", *e["loc"])} for e in error.errors()]) from None


def _once(context: RequestContext, key: str | None, body: bytes) -> SubmissionKey | None:
    return once_of(context.principal.name, key, hashlib.sha256(body).hexdigest())


def _made(job_id: int, *, held: bool, repeated: bool) -> CreatedJob:
    headers = {"Location": f"/api/v1/jobs/{job_id}"} | replayed(repeated)
    return told(CreatedJob(id=job_id, held=held), 201, headers=headers)
