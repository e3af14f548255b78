"""The route by which an external worker stores what an attempt prints."""

import asyncio
from typing import Annotated, Literal

from fastapi import Path, Request
from pydantic import Field

from spinney.features.external import output
from spinney.features.external.commands import WorkerKey
from spinney.features.external.service import External
from spinney.schemas import KeptOutput
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import Fence, JobId, RequestModel
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("external", "/external")
_PRINT_MAX = 2**18
"""The most characters of output in one request."""

_Worker = Annotated[WorkerKey, Path()]


class OutputRequest(RequestModel):
    """A piece of the output of an attempt that an external worker runs."""

    stream: Literal["stdout", "stderr"] = "stdout"
    text: str = Field(
        max_length=_PRINT_MAX, description="The next piece, with its line feeds.", examples=["begun\n"]
    )


@router.post(
    "/{worker}/attempts/{job}/{fence}/output",
    summary="Keep output",
    responses=documented(404, 408, 409, 413, 415),
)
async def keep_output(
    worker: _Worker, job: JobId, fence: Fence, piece: OutputRequest, request: Request, context: Authenticated
) -> KeptOutput:
    """Append to what the attempt has printed, which is read as the output of any other attempt. Send it before the
    attempt is settled."""
    lease = await context.run(lambda control: control.part(External).attempt(worker, job, fence))
    kept_bytes = await asyncio.to_thread(
        output.keep,
        request.app.state.folders,
        job,
        f"{lease.stage}.{lease.fence}",
        piece.stream,
        piece.text.encode(),
    )
    return KeptOutput(kept_bytes=kept_bytes)
