"""Submits a job with files, for pages and the API: the files are in its folder before the job may start.

The order is fixed: check the rights, receive the files into the upload directory, submit the job under a
hold, rename the files into its folder, release the hold. ``uploads`` says what a crash in between leaves.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spinney.commands.control import Control
from spinney.define.job.options import Options
from spinney.features.files import folder_writes
from spinney.features.files.uploads import PendingUpload, Uploads
from spinney.model.access import Role
from spinney.store.contract import SubmissionKey
from spinney.web.files.spool import Upload
from spinney.web.request_context import RequestContext


async def require(context: RequestContext, root: Path) -> None:
    """Check, before a long body is read, that the caller may submit jobs here and that files can be put into
    a new job's folder. Raises Forbidden, Refused, StoreUnusable."""

    def call(control: Control) -> None:
        control.require(Role.SUBMITTER, "submit jobs")
        folder_writes.require_local_folder(control.store, root, None)

    await context.run(call, disk=True)


async def require_put(context: RequestContext, root: Path, job_id: int) -> None:
    """Check that the caller may put files into the folder of a job now, and that it can be written here. Raises what
    ``Uploads.require_may_put`` and ``folder_writes.require_local_folder`` raise."""

    def call(control: Control) -> None:
        control.part(Uploads).require_may_put(job_id)
        folder_writes.require_local_folder(control.store, root, job_id)

    await context.run(call, disk=True)


async def with_files(
    context: RequestContext,
    root: Path,
    upload: Upload,
    type_: str | None,
    params: Mapping[str, Any],
    options: Options,
    *,
    once: SubmissionKey | None,
) -> PendingUpload:
    """Submit the job under a hold, put its files in place, and release it.

    ``once``: the idempotency key. A repeated request puts its files in place only if the first one did not
    come so far. Raises what ``Submitter.submit`` and ``folder_writes.put`` raise.
    """

    def begin(control: Control) -> PendingUpload:
        return control.part(Uploads).begin(type_, params, options, once=once)

    begun = await context.run(begin)
    if begun.holds:
        await asyncio.to_thread(folder_writes.put, root, begun.job_id, upload.files)
        await context.run(lambda control: control.part(Uploads).finish(begun))
    return begun
