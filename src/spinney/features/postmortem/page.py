"""The frames of a failure with their variables, on the page of its job."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.files.content import files_of
from spinney.features.postmortem import kept_frames
from spinney.model.errors import Refused
from spinney.model.jobs import JOB_ID_MAX, Attempt
from spinney.postmortem.documents import ExceptionView, left_out, parts, summary
from spinney.web.pages.forms import page_or_part
from spinney.web.pages.stages import numbered
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)


@router.get("/jobs/{job}/postmortem")
async def job_postmortem(
    request: Request,
    context: Authenticated,
    job: Annotated[int, Path(ge=1, le=JOB_ID_MAX)],
    fence: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    if_kept: bool = False,
) -> Response:
    """Show the frames of the latest failure whose frames are kept, or of one attempt.

    ``if_kept``: show nothing where none are kept, as of most programs, instead of the reason.
    """
    root = request.app.state.folders

    def look(control: Control) -> tuple[Attempt, int, Sequence[ExceptionView]]:
        files, attempts = files_of(control, job, root), control.queries.attempts(job)
        read_file = partial(files.content, must=False)
        kept, described = kept_frames.latest(attempts, read_file, job, fence=fence)
        return kept, numbered(attempts)[kept.fence], described

    attempt: Attempt | None = None
    number = 0
    exceptions: Sequence[ExceptionView] = ()
    trouble = None
    try:
        attempt, number, exceptions = await context.run(look, long=True)
    except Refused as error:
        trouble = str(error)
    return page_or_part(
        request,
        context,
        "job_postmortem",
        job_id=job,
        attempt=attempt,
        number=number,
        exceptions=exceptions,
        trouble=trouble,
        if_kept=if_kept,
        summary=summary,
        parts=parts,
        left_out=left_out,
    )
