"""The list of batches: jobs with others below them, and how far each has come.

Filters and page are in the address. They apply to the job at the top, so a batch with failed subjobs is found
by the state ``failed`` only once it has failed itself.
"""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.features.submission.batches import Batch, Batches
from spinney.model.access import Role
from spinney.model.values.lists import Page
from spinney.web.pages.filters import FilterQuery, parse_filters
from spinney.web.pages.forms import page_or_part, read_coalesced
from spinney.web.pages.page_responses import number_of
from spinney.web.request_context import Authenticated, RequestContext, now_us

router = APIRouter(include_in_schema=False)

FILTERS = ("state", "type", "queue", "collection", "submitter", "message")
"""What a list of batches may be filtered by: all of the job at the top."""
_BESIDE = ("after",)
"""Parameters of the address that are no filters."""


@router.get("/batches")
async def batches(request: Request, context: Authenticated) -> Response:
    """Show the batches that match the filters in the address. Only the first page follows changes: on
    others lines would move."""
    shown = await _shown(request, context)
    topics = () if shown["after"] else ("batches", "overview")
    return page_or_part(
        request, context, "batches", topics=topics, status=422 if shown["errors"] else 200, **shown
    )


async def _shown(request: Request, context: RequestContext) -> dict[str, Any]:
    """Read the page. A filter that cannot be applied to batches is an error at its field, since ignoring
    it would show more."""
    filters = parse_filters(request.query_params.multi_items(), now_us(), beside=_BESIDE)
    unfit = {
        name: "batches cannot be filtered by this; look through the jobs instead"
        for name in filters.values
        if name not in FILTERS
    }
    errors = {**filters.errors, **unfit}
    after = number_of(request.query_params.get("after", ""))
    nothing: Page[Batch] = Page(items=(), next=None)
    batch_page = nothing if errors else await _batch_page(request, context, filters, after)
    return {
        "filters": filters,
        "batch_page": batch_page,
        "after": after,
        "errors": errors,
        "next": filters.address("/batches", after=batch_page.next) if batch_page.next else None,
        "first": filters.address("/batches") if after else None,
        "may_submit": context.principal.rights.permits(Role.SUBMITTER),
    }


async def _batch_page(
    request: Request, context: RequestContext, filters: FilterQuery, after: int
) -> Page[Batch]:
    key = ("batches", context.principal.rights.within, filters.job_filter, after)
    return await read_coalesced(
        request, context, key, lambda control: control.part(Batches).page(filters.job_filter, before=after)
    )
