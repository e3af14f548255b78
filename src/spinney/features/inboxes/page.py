"""The pages of inboxes: the list, an inbox with what was dropped there and what was rejected and why, and the
form for uploads.

The list and an inbox are for operators without limits; the form is for all who may submit the inbox's jobs.
With the page's script a file goes in pieces over the API (``api``), and can be resumed; without it the
browser sends the form whole.
"""

import asyncio
import secrets
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.inboxes.api import finished
from spinney.features.inboxes.commands import ListArrivals, ListInboxes, PauseInbox, ScanInbox, ShowInbox
from spinney.features.inboxes.uploads import InboxUploads
from spinney.features.submission.page import read_form, redirect_from
from spinney.folders.upload_folder import OpenUpload
from spinney.folders.upload_pieces import PIECE_BYTES
from spinney.model.access import Role
from spinney.model.errors import SpinneyError, UsageError
from spinney.model.settings.inboxes import Arrival, Inbox, Upload
from spinney.model.values.lists import Page
from spinney.web.files import spool
from spinney.web.pages.forms import add_action, page_or_part, run_and_redirect
from spinney.web.pages.page_responses import page, segment, with_query
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

ARRIVALS = 50
"""How many arrivals a page has."""
_TOPICS = ("overview",)


@router.get("/inboxes")
async def inboxes(request: Request, context: Authenticated) -> Response:
    """Show all inboxes, and what keeps files from being taken."""
    listed = await context.run(lambda control: control.do(ListInboxes()).items)
    return page_or_part(request, context, "inboxes", topics=_TOPICS, inboxes=listed)


@router.get("/inboxes/{name}")
async def inbox(
    request: Request, context: Authenticated, name: str, rejected: str = "", after: int = 0
) -> Response:
    """Show an inbox with a page of what was dropped there."""

    def call(control: Control) -> tuple[Inbox, Page[Arrival]]:
        listed = ListArrivals(name=name, rejected=bool(rejected), after=after, limit=ARRIVALS)
        return control.do(ShowInbox(name=name)), control.do(listed)

    shown, arrivals = await context.run(call)
    own = f"/inboxes/{segment(name)}"
    return page_or_part(
        request,
        context,
        "inbox",
        topics=_TOPICS,
        inbox=shown,
        arrivals=arrivals.items,
        rejected=bool(rejected),
        own=own,
        here=with_query(own, rejected=rejected, after=after or ""),
        next=with_query(own, rejected=rejected, after=arrivals.next) if arrivals.next else None,
        first=with_query(own, rejected=rejected) if after else None,
        may=_is_unlimited(context, Role.ADMIN),
    )


@router.get("/inboxes/{name}/upload")
async def upload_form(request: Request, context: Authenticated, name: str) -> Response:
    """Show the form that uploads files to an inbox."""
    root = request.app.state.folders

    def call(control: Control) -> tuple[Inbox, list[Upload]]:
        uploads = control.part(InboxUploads)
        return uploads.require_may(name), uploads.opened(root, name)

    inbox, opened = await context.run(call, disk=True)
    return page(
        request,
        context.principal,
        "inbox_upload.html",
        inbox=inbox,
        opened=opened,
        piece_bytes=PIECE_BYTES,
        own=f"/inboxes/{segment(name)}",
        may_look=_is_unlimited(context, Role.OPERATOR),
    )


@router.post("/inboxes/{name}/upload")
async def uploaded(request: Request, context: Authenticated, name: str) -> Response:
    """Make a job of each file, and redirect to the job of a single one, or back to the form.

    Each file is taken by itself: when one is refused, those before it have their jobs, and the message
    names these.
    """
    root, form = request.app.state.folders, f"/inboxes/{segment(name)}/upload"
    await context.run(lambda control: control.part(InboxUploads).require_may(name))
    made: list[Upload] = []
    try:
        async with spool.upload(root) as sent:
            await read_form(request, context, sent)
            if not sent.files:
                raise UsageError("no file was chosen; choose one, and upload it")
            for file, at in sent.files.items():
                made.append(await _taken(context, root, name, file, at))
    except (SpinneyError, HTTPException) as error:
        sentences = [str(getattr(error, "detail", error)), *([_made_text(made)] if made else [])]
        return redirect_from(request, form, refused="; ".join(sentences))
    return redirect_from(
        request, f"/jobs/{made[0].job_id}" if len(made) == 1 else form, done=_made_text(made)
    )


@router.post("/inboxes/{name}/upload/{upload}/withdraw")
async def withdrawn(request: Request, context: Authenticated, name: str, upload: str) -> Response:
    """Remove an interrupted upload, and redirect to the form."""
    root = request.app.state.folders
    return await run_and_redirect(
        context,
        f"/inboxes/{segment(name)}/upload",
        lambda control: control.part(InboxUploads).withdraw(root, name, upload),
        lambda withdrawn_upload: f"The upload of {withdrawn_upload.name} was withdrawn",
        disk=True,
    )


async def _taken(context: RequestContext, root: Path, inbox: str, name: str, at: Path) -> Upload:
    """Return the upload of a file that is on the disk as a whole, with its job. The file is moved and not
    copied."""

    def begin(control: Control) -> OpenUpload | Upload:
        uploads = control.part(InboxUploads)
        # Another file of this name and size must not be taken for this one, and it has come whole anyway.
        own = secrets.token_hex(8)
        described = Upload(id="", inbox=inbox, name=name, size=at.stat().st_size, by="", modified=own)
        upload = uploads.begin(root, described, is_here=True)
        return uploads.open(root, inbox, upload.id, upload.received)

    opened = await context.run(begin, disk=True)
    if isinstance(opened, Upload):
        return opened  # another request has finished it meanwhile
    with opened:
        await asyncio.to_thread(opened.adopt, at)
        return await finished(context, opened)


def _made_text(made: Sequence[Upload]) -> str:
    return ", ".join(f"{upload.name} became job {upload.job_id}" for upload in made)


def _is_unlimited(context: RequestContext, role: Role) -> bool:
    """Return whether the caller has this role for all jobs."""
    rights = context.principal.rights
    return rights.permits(role) and rights.everywhere


_add_action = partial(add_action, router, "/inboxes")
_add_action("pause", PauseInbox, "Inbox {name} is paused", paused=True)
_add_action("resume", PauseInbox, "Inbox {name} is resumed", paused=False)
_add_action("scan", ScanInbox, "Inbox {name} is looked through")
