"""Batches: jobs with others below them, and how far each has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.control.batches import PAGE, Batch, Batches
from spinney.model.access import Role
from spinney.server.asking import Asked as AskedHands
from spinney.server.asking import Hands, now_us
from spinney.server.ui.filtering import Asked, asked
from spinney.server.ui.rendering import page, part

router = APIRouter(include_in_schema=False)

FILTERS = ("state", "type", "queue", "collection", "submitter", "message")
"""What a list of batches may be filtered by: all of the job at the top."""
_BESIDE = ("after",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A page of the list."""

    batches: Sequence[Batch]
    next: int | None


@router.get("/batches", summary="Batches")
async def batches(request: Request, hands: AskedHands) -> Response:
    """A list that its address filters."""
    shown, errors = await _shown(request, hands)
    topics = () if shown["after"] or errors else ("batches", "overview")
    return page(request, hands.asker, "batches.html", topics=topics, status=422 if errors else 200, **shown)


@router.get("/batches/now", summary="What the list of batches shows now")
async def batches_now(request: Request, hands: AskedHands) -> Response:
    """Its live part."""
    shown, _ = await _shown(request, hands)
    return part(request, hands.asker, "batches_now.html", **shown)


async def _shown(request: Request, hands: Hands) -> tuple[dict[str, Any], Mapping[str, str]]:
    which = asked(request.query_params.multi_items(), now_us(), beside=_BESIDE)
    unfit = {
        name: "batches cannot be filtered by this; look through the jobs instead"
        for name in which.given
        if name not in FILTERS
    }
    errors = {**which.errors, **unfit}
    text = request.query_params.get("after", "")
    after = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    found = Found(batches=(), next=None) if errors else await _found(request, hands, which, after)
    query = which.query()
    return {
        "which": which,
        "found": found,
        "after": after,
        "errors": errors,
        "now_path": f"/batches/now?{request.query_params}" if request.query_params else "/batches/now",
        "next": f"/batches?{which.query(after=found.next)}" if found.next else None,
        "first": (f"/batches?{query}" if query else "/batches") if after else None,
        "may_submit": hands.asker.rights.permits(Role.SUBMITTER),
    }, errors


async def _found(request: Request, hands: Hands, which: Asked, after: int) -> Found:
    def call(control: Control) -> Found:
        found, next_ = control.part(Batches).page(which.which, before=after, limit=PAGE)
        return Found(batches=found, next=next_)

    key = ("batches", hands.asker.rights.within, which.which, after)
    return await request.app.state.coalesced.get(key, lambda: hands.run(call))  # type: ignore[no-any-return]
