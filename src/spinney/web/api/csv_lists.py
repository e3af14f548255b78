"""Lists as CSV: with ``format=csv``, or an ``Accept`` that prefers ``text/csv``, the route of a list answers with all
of its pages.

Each page is read when the ones before it have been sent, with the rights that the caller has then. So a list
of any length takes the memory of one page; it is no snapshot, and a row that changes meanwhile appears as it
is when its page is read."""

from collections.abc import AsyncIterator
from typing import Any, Literal, cast

from fastapi import Request
from pydantic.fields import FieldInfo
from starlette.responses import StreamingResponse

from spinney.commands import Command, csv_lines
from spinney.commands.csv_lines import CSV
from spinney.model.errors import UsageError
from spinney.model.values.lists import All
from spinney.web.long_requests.long_responses import or_abort
from spinney.web.media_types import JSON, preferred
from spinney.web.request_context import RequestContext

FIELD = "format"
Format = Literal["json", "csv"]


def format_field() -> FieldInfo:
    """Return the parameter of a list's route that chooses the form of the answer."""
    description = f"`csv` answers with the whole list, or `limit` of it; so does `Accept: {CSV}`."
    return FieldInfo(annotation=Format, default="json", description=description)


def is_wanted(request: Request, format_: Format | None) -> bool:
    """Return whether this request is answered with CSV. ``format_``, from the query, counts more than the
    header; None: it was not set."""
    return format_ == "csv" or (format_ is None and preferred(request, (JSON, CSV)) == CSV)


async def answer(context: RequestContext, command: Command, item: type) -> StreamingResponse:
    """Return the list as a file, named after the last fixed part of the route's path. A ``limit`` that the
    request sets ends it there; otherwise all pages follow.

    Raises what the command raises, since the first page is read before anything is sent, and UsageError for a
    list without pages that is too long. An error of a later page closes the connection without the end."""
    most, is_limited = _most(type(command)), "limit" in command.model_fields_set
    if most is not None and not is_limited:
        command = command.model_copy(update={"limit": most})
    first = await _page(context, command)
    if isinstance(first, All) and not is_limited and len(first.items) == most:
        raise UsageError(
            f"the list has {most:,} lines or more, and one file has up to {most:,}; name a limit for the first of them"
        )

    async def pieces() -> AsyncIterator[bytes]:
        yield csv_lines.header(item)
        page, page_command = first, command
        while True:
            yield csv_lines.lines(item, page.items)
            if page.next is None or is_limited:
                return
            page_command = page_command.model_copy(update={"after": page.next})
            page = await _page(context, page_command)

    name = [part for part in command.route.path.split("/") if "{" not in part][-1]
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(or_abort(pieces()), media_type=f"{CSV}; charset=utf-8", headers=headers)


def _most(command: type[Command]) -> int | None:
    """Return the largest ``limit`` that the command allows; None: it has no such field."""
    limit = command.model_json_schema()["properties"].get("limit", {})
    return cast("int | None", limit.get("maximum"))


async def _page(context: RequestContext, command: Command) -> Any:
    """Return one page of the list, by a call that may take long."""
    return await context.run(lambda control: control.do(command), long=True)
