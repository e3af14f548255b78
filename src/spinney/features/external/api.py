"""The route by which an external worker stores what an attempt prints.

Output is kept where a node would keep it: in the job's folder, by stage, fence and stream.
"""

import asyncio
from pathlib import Path as PathOnDisk
from typing import Annotated, Literal

from fastapi import Path, Request
from pydantic import Field

from spinney.features.external.commands import WorkerKey
from spinney.features.external.service import External
from spinney.folders import folders
from spinney.model.errors import Refused
from spinney.node.worker.capture import append
from spinney.schemas import KeptOutput
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import Fence, JobId, RequestModel
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("external", "/external")
_PRINT_MAX = 2**18
"""The most characters of output in one request."""
OUTPUT_BYTES = 10 * 2**20
"""How many bytes of a stream of an attempt are kept; what comes after is cut off."""
_CUT = b"\n[spinney: more output was cut here]\n"

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
        keep,
        request.app.state.folders,
        job,
        f"{lease.stage}.{lease.fence}",
        piece.stream,
        piece.text.encode(),
    )
    return KeptOutput(kept_bytes=kept_bytes)


def keep(
    root: PathOnDisk, job_id: int, attempt: str, stream: str, data: bytes, *, most: int = OUTPUT_BYTES
) -> int:
    """Append output to the file of a stream, and return how many bytes were kept: fewer than were given once
    the file has ``most`` bytes.

    ``attempt``: ``<stage>.<fence>``. Where output is cut off, a line in the file says so, once. Raises
    Refused when the disk takes none.
    """
    try:
        file = folders.make(root, job_id) / folders.OWN / f"{attempt}.{stream}"
        size = file.lstat().st_size if file.exists() else 0
        head = data[: max(0, most - size)]
        cut = len(head) < len(data) and size <= most  # once: with ``_CUT`` the file is longer than ``most``
        written = append(file, head + _CUT if cut else head) if head or cut else 0
    except OSError as error:
        raise Refused(
            f"the output of job {job_id} cannot be kept: {error.strerror or error}; continue without it, or send it "
            f"again later"
        ) from error
    return min(written, len(head))
