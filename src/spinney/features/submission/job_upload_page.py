"""The form on a job's page with which files are put into its folder, such as one that its next attempt needs.

The folder is written only while no attempt of the job runs. That is checked before files are received, and
again before they are put there, because receiving them may take minutes.
"""

import asyncio

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.features.files import folder_writes, job_uploads
from spinney.features.jobs.job_page import JobId
from spinney.features.submission.page import read_form, redirect_from
from spinney.model.errors import Refused, UsageError
from spinney.model.values.counts import counted
from spinney.web.files import spool
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)


@router.post("/jobs/{job}/upload", summary="Upload files into a job's folder")
async def upload(request: Request, context: Authenticated, job: JobId) -> Response:
    """Put the files into the folder, unless the job is at work, and redirect to its page, which says what
    became of them."""
    root, back = request.app.state.folders, f"/jobs/{job}"

    try:
        await job_uploads.require_put(context, root, job)
        with spool.upload(root) as received:
            await read_form(request, context, received)
            if not received.files:
                return redirect_from(request, back, refused="no file was chosen; choose one, then upload it")
            await job_uploads.require_put(context, root, job)  # it may have begun meanwhile
            await asyncio.to_thread(folder_writes.put, root, job, received.files)
            count = len(received.files)
    except (Refused, UsageError, HTTPException) as error:
        return redirect_from(request, back, refused=str(getattr(error, "detail", error)))
    return redirect_from(
        request, back, done=f"{counted(count, 'file')} uploaded into the folder of job {job}"
    )
