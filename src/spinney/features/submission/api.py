"""The routes of submission: one job, one with files, many.

They are written by hand, where other routes are made from their commands: a job may come as JSON or as a form
with files, and many jobs come as lines of JSON. Rights are checked before a body is read, since a body may be
long.
"""

import asyncio
from typing import Annotated

import orjson
from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from spinney.features.files import job_uploads
from spinney.features.submission.commands import SubmitJob, SubmitJobs
from spinney.model.access import Role
from spinney.schemas import CreatedJob, CreatedJobs
from spinney.store.contract import SubmitResult
from spinney.web.api.command_routes import request_model, set_fields
from spinney.web.api.json_routes import LINE_SCHEMA, read_long, require_flat, respond, routes
from spinney.web.api.request_types import REPLAYED, IdempotencyKey, replayed
from spinney.web.files import multipart, spool
from spinney.web.long_requests.bodies import raise_bound
from spinney.web.media_types import JSON, NDJSON, body_type, wrong_body_type
from spinney.web.problems import documented, sentence
from spinney.web.request_context import Authenticated, RequestContext

router = routes("jobs")
_Job = request_model(SubmitJob, without=("idempotency_key",))
_Options = request_model(SubmitJobs, without=("lines", "idempotency_key"), strict=False)
_EXAMPLE = {"type": "resize", "params": {"picture": "/scans/page-1.tif", "width": 200}, "priority": 40}


@router.post(
    "/jobs",
    summary="Submit a job",
    status_code=201,
    responses=documented(404, 408, 409, 413, 415, 507)
    | {201: {"description": "The job is accepted.", "headers": REPLAYED}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": _Job.model_json_schema(), "example": _EXAMPLE},
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
    """The job is durable when this answers. It comes as JSON; or as a form with the job in the part `job`
    and files beside it, which are in the job's folder before it may start."""
    kind = body_type(request)
    if kind == multipart.MULTIPART:
        return await _with_files(request, context, key)
    if kind != JSON:
        raise wrong_body_type(request, f"{JSON}, or a form ({multipart.MULTIPART})")
    await _require_submitter(context)
    command = await _command(await request.body(), key)
    result: SubmitResult = await context.run(command.submit)
    return _created(result.ids[0], held=result.held > 0, repeated=result.repeated)


async def _with_files(request: Request, context: RequestContext, key: str | None) -> CreatedJob:
    """Submit a job from a form with files.

    The files are received into a temporary directory beside the folders, so that they only have to be
    renamed; it is removed in any case. With an idempotency key, a digest of the files is a part of the
    request, so that other files under the same key are refused. Raises HTTPException for a form that
    cannot be read, and what the submission raises.
    """
    root = request.app.state.folders
    raise_bound(request)

    await job_uploads.require(context, root)
    async with spool.upload(root) as upload:
        body = await multipart.read(request.headers["content-type"], request.stream(), upload)
        command = await _command(body, key)
        digest = "" if key is None else await asyncio.to_thread(upload.digest)
        once = command.once(context.principal.name, files=digest)
        begun = await job_uploads.with_files(
            context, root, upload, command.type, command.params, command.options(), once=once
        )
    return _created(begun.job_id, held=False, repeated=begun.repeated)


@router.post(
    "/jobs/batch",
    summary="Submit many jobs",
    status_code=201,
    responses=documented(404, 408, 409, 413, 415)
    | {201: {"description": "All jobs are accepted.", "headers": REPLAYED}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                NDJSON: {
                    "schema": {
                        "type": "string",
                        "description": "A JSON object a line, as of POST /jobs; in `needs`, -k means the "
                        "job of the k-th line. With `type`, each line is the parameters of a job.",
                        LINE_SCHEMA: {"anyOf": [_Job.model_json_schema(), {"type": "object"}]},
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
    options: Annotated[_Options, Query()],  # type: ignore[valid-type]
    key: IdempotencyKey = None,
) -> CreatedJobs:
    """The body has a job as JSON in each line: all are accepted, or none; an error names the number of
    its line. Options in the query hold for all lines, and those of a line win. Bodies of some thousand
    lines are fastest."""
    if body_type(request) != NDJSON:
        raise wrong_body_type(request, f"JSON lines as {NDJSON}")
    await _require_submitter(context)
    lines = await asyncio.to_thread(_lines, await request.body())
    command = SubmitJobs(lines=lines, idempotency_key=key, **set_fields(options))
    result: SubmitResult = await context.run(command.submit, long=command.is_long())
    return respond(CreatedJobs(ids=result.ids, held=result.held), 201, headers=replayed(result.repeated))


async def _require_submitter(context: RequestContext) -> None:
    """Raise Forbidden for a caller who may not submit, before a body is read that may be long. Others need no store for
    this."""
    if not context.principal.rights.permits(Role.SUBMITTER):
        await context.run(lambda control: control.require(Role.SUBMITTER, "submit jobs"))


def _lines(body: bytes) -> list[bytes]:
    """Return the lines of a body. Raises HTTPException for one that is nested too deeply, before a parser
    recurses into it."""
    lines = body.split(b"\n")
    for line in filter(None, lines):
        require_flat(line)
    return lines


async def _command(body: bytes, key: str | None) -> SubmitJob:
    """Return the submission in a body of JSON. Raises HTTPException (400) for no JSON,
    RequestValidationError (422) else."""
    try:
        job = _Job.model_validate(await read_long(body))
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the job is not JSON: {error}; correct it and send it again") from None
    except ValidationError as error:
        raise RequestValidationError(
            [{**e, "loc": ("body", *e["loc"]), "msg": sentence(e, _Job)} for e in error.errors()]
        ) from None
    return SubmitJob(idempotency_key=key, **set_fields(job))


def _created(job_id: int, *, held: bool, repeated: bool) -> CreatedJob:
    """Return the answer to a submission, with the address of the job, and a header when it is the
    repetition of an earlier one."""
    headers = {"Location": f"/api/v1/jobs/{job_id}"} | replayed(repeated)
    return respond(CreatedJob(id=job_id, held=held), 201, headers=headers)
