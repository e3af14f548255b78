"""The pages of inboxes: the list, and an inbox with what was dropped there, and what was rejected and why."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.inboxes.commands import ListArrivals, ListInboxes, PauseInbox, ScanInbox, ShowInbox
from spinney.model.access import Role
from spinney.model.errors import UsageError
from spinney.model.settings.inboxes import Arrival, Inbox
from spinney.model.values.lists import Page
from spinney.web.pages.forms import Form, page_or_part, run_and_redirect
from spinney.web.pages.rendering import segment, with_query
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

ARRIVALS = 50
_DONE = {"pause": "is paused", "resume": "is resumed", "scan": "is looked through"}
_TOPICS = ("overview",)


@router.get("/inboxes", summary="Inboxes")
async def inboxes(request: Request, context: Authenticated) -> Response:
    """Show all inboxes, and what keeps files from being taken."""
    listed = await context.run(lambda control: control.do(ListInboxes()).items)
    return page_or_part(request, context, "inboxes", topics=_TOPICS, inboxes=listed)


@router.get("/inboxes/{name}", summary="An inbox")
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
        may=_is_admin(context),
    )


@router.post("/inboxes/{name}/{verb}", summary="Do a verb to an inbox")
async def verb(context: Authenticated, name: str, verb: str, form: Form) -> Response:
    """Pause, resume or scan an inbox, and lead back to its page."""
    if verb not in _DONE:
        raise UsageError(f"{verb[:40]!r} is no action on an inbox; use one of: {', '.join(_DONE)}")
    reason = form.maybe("reason")

    def call(control: Control) -> Inbox:
        if verb == "scan":
            return control.do(ScanInbox(name=name, reason=reason))
        return control.do(PauseInbox(name=name, paused=verb == "pause", reason=reason))

    return await run_and_redirect(
        context, f"/inboxes/{segment(name)}", call, lambda done: f"Inbox {done.name} {_DONE[verb]}"
    )


def _is_admin(context: RequestContext) -> bool:
    rights = context.principal.rights
    return rights.permits(Role.ADMIN) and rights.everywhere
