"""The routes for the files in a job's folder and the output of its attempts."""

import asyncio
from collections.abc import AsyncIterator
from enum import StrEnum
from functools import partial
from pathlib import Path as PathOnDisk
from typing import Annotated, Any

from fastapi import Path, Query, Request
from starlette.responses import Response, StreamingResponse

from spinney.commands.control import Control
from spinney.features.files import folder_writes, job_uploads
from spinney.features.files.content import WithoutEnd, listed, opened
from spinney.features.files.job_folder import output_path
from spinney.features.files.output_stream import follow
from spinney.model.errors import NoSuch
from spinney.model.jobs import Attempt
from spinney.schemas import File, Files, UploadedFile
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import Fence, JobId
from spinney.web.files import spool
from spinney.web.files.content import Content
from spinney.web.files.responses import BINARY, TEXT, answer
from spinney.web.long_requests.bodies import LargeBody
from spinney.web.long_requests.long_responses import or_end_with_reason, permission
from spinney.web.long_requests.quotas import acquire_quota
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

router = routes("files")
_BYTES = {"schema": {"type": "string", "format": "binary"}}
FilePath = Annotated[
    str, Path(description="The path of the file in the job's folder.", examples=["scans/page-1.tif"])
]


def _partial(whole: str, media_type: str) -> dict[int | str, dict[str, Any]]:
    """Return the documented answers of a route that sends a file, or a part of one. ``whole``: what it sends."""
    content = {media_type: _BYTES}
    return documented(404, 409, 416) | {
        200: {"description": whole, "content": content},
        206: {"description": "The part that `Range` requests.", "content": content},
        304: {"description": "The file is unchanged: it has the tag that `If-None-Match` names."},
    }


class Stream(StrEnum):
    """The output streams of an attempt."""

    STDOUT = "stdout"
    STDERR = "stderr"


@router.get("/jobs/{job}/files", summary="List the files of a job", responses=documented(404, 409))
async def list_files(job: JobId, context: Authenticated, request: Request) -> Files:
    """Returns all files below its folder, by path; output and the like are in `.spinney`. A folder that lies more than
    200 levels deep, or cannot be read, is listed itself, in place of what is in it."""
    entries, complete = await listed(context, request.app.state.folders, job)
    files = [File(path=name, kind=entry.kind, size=entry.size) for name, entry in entries]
    return Files(items=files, more=not complete)


@router.get(
    "/jobs/{job}/files/{path:path}",
    summary="Download a file of a job",
    response_class=Response,
    responses=_partial("The file.", BINARY),
)
async def download(job: JobId, path: FilePath, context: Authenticated, request: Request) -> Response:
    """Returns the file, or a part of it (`Range: bytes=…`, one range). Links are not followed."""
    content = await opened(context, request.app.state.folders, job, path)
    return await answer(request, context, job, content, media_type=BINARY, name=path.rpartition("/")[2])


@router.put(
    "/jobs/{job}/files/{path:path}",
    summary="Upload a file into a job's folder",
    status_code=201,
    responses=documented(404, 408, 409, 413, 507),
    dependencies=[LargeBody],
    openapi_extra={"requestBody": {"required": True, "content": {BINARY: _BYTES}}},
)
async def upload(job: JobId, path: FilePath, context: Authenticated, request: Request) -> UploadedFile:
    """The body is the file. Operators may upload, and so may the submitter of the job, but not while the job
    is at work. A file of that name is replaced once the whole new file has come."""
    root = request.app.state.folders
    path = spool.checked(path)

    await job_uploads.require_put(context, root, job)
    size = 0
    async with spool.upload(root) as files:
        async with spool.in_threads(files.writing(path)) as file:
            async for piece in request.stream():
                size += len(piece)
                await asyncio.to_thread(file.write, piece)
        await job_uploads.require_put(context, root, job)  # it may have begun meanwhile
        await asyncio.to_thread(folder_writes.put, root, job, files.files)
    return UploadedFile(path=path, size=size)


@router.get(
    "/jobs/{job}/attempts/{fence}/{stream}",
    summary="Read the output of an attempt",
    response_class=Response,
    responses=_partial("The output.", "text/plain"),
)
async def read_output(
    job: JobId,
    fence: Fence,
    stream: Stream,
    context: Authenticated,
    request: Request,
    follow_: Annotated[
        bool, Query(alias="follow", description="Continue until the attempt has ended.")
    ] = False,
    start: Annotated[int, Query(ge=0, le=2**62, description="With `follow`: start at this byte.")] = 0,
) -> Response:
    """Returns what the attempt wrote to stdout or stderr, as text. While it runs, the last bytes are left out
    as long as they may be the beginning of a secret. Secret parameters are redacted."""
    attempt, redactor = await context.run(
        lambda control: (_attempt(control, job, fence), control.queries.redactor(job))
    )
    path = output_path(attempt, stream)
    if follow_:
        acquire_quota(request, context, request.app.state.quotas.followers)
        tail = _tail(context, request.app.state.folders, attempt, path, start)
        return StreamingResponse(or_end_with_reason(tail), media_type=TEXT)
    content: Content
    try:
        content = file = await opened(context, request.app.state.folders, job, path)
    except NoSuch:
        return Response(media_type=TEXT)  # files are made at the first byte
    if attempt.ended_us is None and (back := redactor.overlap_bytes):
        content = WithoutEnd(content=file, back=back)
    return await answer(request, context, job, content, media_type=TEXT, name=None)


def _tail(
    context: RequestContext, root: PathOnDisk, attempt: Attempt, path: str, start: int
) -> AsyncIterator[bytes]:
    """Yield the output of an attempt until it has ended, as long as the caller may see the job."""
    job, fence = attempt.job_id, attempt.fence

    async def ended() -> bool:
        return (await context.run(lambda control: _attempt(control, job, fence))).ended_us is not None

    open_ = partial(opened, context, root, job, path)
    return follow(open_, ended, permission(context, job), start=start)


def _attempt(control: Control, job_id: int, fence: int) -> Attempt:
    """Return the attempt of a job with this fence. Raises NoSuchJob, NoSuch."""
    for attempt in control.queries.attempts(job_id):
        if attempt.fence == fence:
            return attempt
    raise NoSuch(f"job {job_id} has no attempt {fence}; its history lists them")
