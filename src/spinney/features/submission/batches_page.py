"""Batches: jobs with others below them, and how far each has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.submission.batches import PAGE, Batch, Batches
from spinney.model.access import Role
from spinney.web.pages.filters import FilterQuery, parse_filters
from spinney.web.pages.rendering import page, part
from spinney.web.request_context import Authenticated, RequestContext, now_us

router = APIRouter(include_in_schema=False)

FILTERS = ("state", "type", "queue", "collection", "submitter", "message")
"""What a list of batches may be filtered by: all of the job at the top."""
_BESIDE = ("after",)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPage:
    """A page of the list."""

    batches: Sequence[Batch]
    next: int | None


@router.get("/batches", summary="Batches")
async def batches(request: Request, context: Authenticated) -> Response:
    """A list that its address filters."""
    shown, errors = await _shown(request, context)
    topics = () if shown["after"] or errors else ("batches", "overview")
    return page(
        request, context.principal, "batches.html", topics=topics, status=422 if errors else 200, **shown
    )


@router.get("/batches/now", summary="What the list of batches shows now")
async def batches_now(request: Request, context: Authenticated) -> Response:
    """Its live part."""
    shown, _ = await _shown(request, context)
    return part(request, context.principal, "batches_now.html", **shown)


async def _shown(request: Request, context: RequestContext) -> tuple[dict[str, Any], Mapping[str, str]]:
    filters = parse_filters(request.query_params.multi_items(), now_us(), beside=_BESIDE)
    unfit = {
        name: "batches cannot be filtered by this; look through the jobs instead"
        for name in filters.values
        if name not in FILTERS
    }
    errors = {**filters.errors, **unfit}
    text = request.query_params.get("after", "")
    after = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    batch_page = (
        BatchPage(batches=(), next=None) if errors else await _batch_page(request, context, filters, after)
    )
    query = filters.query()
    return {
        "filters": filters,
        "batch_page": batch_page,
        "after": after,
        "errors": errors,
        "now_path": f"/batches/now?{request.query_params}" if request.query_params else "/batches/now",
        "next": f"/batches?{filters.query(after=batch_page.next)}" if batch_page.next else None,
        "first": (f"/batches?{query}" if query else "/batches") if after else None,
        "may_submit": context.principal.rights.permits(Role.SUBMITTER),
    }, errors


async def _batch_page(
    request: Request, context: RequestContext, filters: FilterQuery, after: int
) -> BatchPage:
    def call(control: Control) -> BatchPage:
        batches_, next_ = control.part(Batches).page(filters.job_filter, before=after, limit=PAGE)
        return BatchPage(batches=batches_, next=next_)

    key = ("batches", context.principal.rights.within, filters.job_filter, after)
    return await request.app.state.coalesced.get(key, lambda: context.run(call))  # type: ignore[no-any-return]
