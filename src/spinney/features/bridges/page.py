"""The page of bridges to other systems."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.features.bridges.commands import ListBridges
from spinney.web.pages.forms import page_or_part
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)


@router.get("/bridges")
async def bridges(request: Request, context: Authenticated) -> Response:
    """Show how far behind each bridge is, and its last trouble."""
    listed = await context.run(lambda control: control.do(ListBridges()).items)
    return page_or_part(request, context, "bridges", topics=("overview",), bridges=listed)
