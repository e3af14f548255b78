"""The routes of uploads to inboxes.

An upload takes a request that begins it, and as many that bring bytes as its uploader likes: each appends to
what has come. What has come stays when a request breaks off, so an upload continues at ``received``, which
every answer has. The request that brings the last bytes answers with the job.

    POST …/uploads                      name and size      → id, received
    PUT  …/uploads/{id}?offset=received bytes              → received, and in the end job_id
    GET  …/uploads/{id}                 after a break      → received
"""

import asyncio
from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import Field

from spinney.features.inboxes.uploads import InboxUploads
from spinney.folders.upload_folder import OpenUpload
from spinney.model.errors import UsageError
from spinney.model.settings.inboxes import Upload
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import RequestModel
from spinney.web.files.responses import BINARY
from spinney.web.long_requests.bodies import LargeBody
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

router = routes("inboxes")
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {BINARY: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_Name = Annotated[
    str, Path(min_length=1, max_length=500, description="The inbox's name.", examples=["uploads"])
]
_Upload = Annotated[
    str,
    Path(min_length=1, max_length=100, description="The id of the upload.", examples=["5f1c0d8e9ab24c37"]),
]


class NewUpload(RequestModel):
    """A file that is to be uploaded."""

    name: str = Field(
        min_length=1,
        max_length=255,
        description="The name of the file in the job's folder.",
        examples=["card.zip"],
    )
    size: int = Field(ge=0, le=2**62, description="The size of the file in bytes.", examples=[1_048_576])
    announced: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="The SHA-256 of the file: a file that came before is refused at once, and one that differs is "
        "refused at the end.",
    )
    modified: str | None = Field(
        None,
        max_length=100,
        description="Any text that changes with the file, such as the time of its last change: with it, another "
        "version of the same size is another upload.",
    )


@router.post(
    "/inboxes/{name}/uploads",
    summary="Begin or resume an upload to an inbox",
    status_code=201,
    responses=documented(404, 409, 415, 507),
)
async def begin_upload(name: _Name, file: NewUpload, context: Authenticated, request: Request) -> Upload:
    """For callers who may submit the inbox's jobs. An open upload of the same file by the same user is
    returned, with the number of bytes that have come. An upload that gets no bytes for seven days is
    removed."""
    root, most = request.app.state.folders, request.app.state.settings.upload_max_bytes
    if file.size > most:
        raise UsageError(
            f"the file is longer than {most:,} bytes; split it, or have [server] upload_max_bytes raised"
        )
    upload = Upload(id="", inbox=name, by="", **file.model_dump())
    return await context.run(lambda control: control.part(InboxUploads).begin(root, upload), disk=True)


@router.get(
    "/inboxes/{name}/uploads/{upload}", summary="Show an upload to an inbox", responses=documented(404)
)
async def show_upload(name: _Name, upload: _Upload, context: Authenticated, request: Request) -> Upload:
    """An upload of your own: how many bytes have come; its job when it is done, for a day; or why it was
    rejected."""
    root = request.app.state.folders
    return await context.run(lambda control: control.part(InboxUploads).find(root, name, upload), disk=True)


@router.put(
    "/inboxes/{name}/uploads/{upload}",
    summary="Send bytes of an upload to an inbox",
    responses=documented(404, 408, 409, 413, 507),
    dependencies=[LargeBody],
    openapi_extra=_BODY,
)
async def send_upload(
    name: _Name,
    upload: _Upload,
    context: Authenticated,
    request: Request,
    offset: Annotated[
        int,
        Query(
            ge=0,
            le=2**62,
            description="Where the bytes belong in the file: `received` of the upload.",
            examples=[4096],
        ),
    ],
) -> Upload:
    """The body is the next bytes, as many as you like. When all are here, the answer has the job
    (`job_id`), and has it again when this is repeated. 409: the bytes came before, and the inbox refuses
    that; the answer names their job. 507: the disk is full; the bytes received are kept, and the
    upload continues when there is room."""
    root = request.app.state.folders
    opened = await context.run(
        lambda control: control.part(InboxUploads).open(root, name, upload, offset), disk=True
    )
    if isinstance(opened, Upload):
        return opened
    # Each piece is written as it comes, so a request that breaks off leaves all pieces before it.
    with opened:
        async for piece in request.stream():
            await asyncio.to_thread(opened.write, piece)
        return await finished(context, opened)


@router.delete(
    "/inboxes/{name}/uploads/{upload}",
    summary="Withdraw an upload to an inbox",
    status_code=204,
    responses=documented(404, 409),
)
async def withdraw_upload(name: _Name, upload: _Upload, context: Authenticated, request: Request) -> None:
    """Removes the bytes that were received of an upload of yours. It must not have a job yet."""
    root = request.app.state.folders
    await context.run(lambda control: control.part(InboxUploads).withdraw(root, name, upload), disk=True)


async def finished(context: RequestContext, opened: OpenUpload) -> Upload:
    """Return an upload as it is after some bytes; with its job, when those were the last."""
    if not await asyncio.to_thread(opened.seal):
        return opened.upload
    return await context.run(lambda control: control.part(InboxUploads).finish(opened), disk=True)
