"""The service behind a server: each verb at ``/api/v1/apps/ingest/NAME``, with the name and the rights of the caller.

Servers find it by the entry point ``ingest`` of the group ``spinney.routes``. The settings are those of the server's
own ``SPINNEY_INGEST``; it sees the folders of the service as nodes do.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Body, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.responses import Response

from spinney.apps.ingest.access.contents import Content
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.verbs import VERBS, Verb, written
from spinney.apps.ingest.verbs.archive import File, Manifest
from spinney.apps.ingest.verbs.arrivals import Accepted, accept, expect
from spinney.apps.ingest.verbs.service import Service, refused
from spinney.apps.ingest.verbs.submission import DepositFields, Submit, combine_fields
from spinney.errors import Refused, StoreUnavailable, UsageError
from spinney.operations import Control
from spinney.routes import (
    BINARY,
    FORM,
    REPLAYED,
    Authenticated,
    IdempotencyKey,
    LargeBody,
    RequestContext,
    SingleFileForm,
    attachment,
    documented,
    replayed,
    routes,
)
from spinney.tables import TablesUnusable

T = TypeVar("T")
log = logging.getLogger(__name__)

router = routes("ingest")
FILE = "file"
"""The name of the form's part that is the payload."""
_BINARY = {"type": "string", "format": "binary"}
_CONTENT = {"content": {BINARY: {"schema": _BINARY}}}
_FIELDS = {name.replace("_", "-"): {"type": "string"} for name in DepositFields.model_fields}
_BODIES = {
    BINARY: {"schema": _BINARY},
    FORM: {"schema": {"type": "object", "properties": _FIELDS | {FILE: _BINARY}, "required": [FILE]}},
}
_HEADERS = REPLAYED | {"Location": {"description": "Where the batch is shown.", "schema": {"type": "string"}}}


@router.post(
    "/submit",
    summary="Submit a payload",
    status_code=202,
    dependencies=[LargeBody],
    responses=documented(404, 408, 409, 413)
    | {202: {"description": "The batch is durable.", "headers": _HEADERS}},
    openapi_extra={"requestBody": {"required": True, "content": _BODIES}},
)
async def submit(
    context: Authenticated,
    request: Request,
    query: Annotated[DepositFields, Query()],
    key: IdempotencyKey = None,
) -> dict[str, Any]:
    """The payload (a file, a container or a manifest) is the body, or the last part, `file`, of a form whose other
    fields are those of the query. The batch is durable when this answers."""
    content_type = request.headers.get("content-type", "")
    pieces: AsyncIterator[bytes] = request.stream()
    file_name, fields = "", list[tuple[str, str]]()
    if content_type.partition(";")[0].strip().lower() == FORM:
        form = SingleFileForm(content_type, pieces, name=FILE)
        fields, file_name, pieces = await form.fields(), form.file_name, form.pieces()
    submission = _parse_submission(query, fields, file_name)
    expected = await _run(context, lambda service: expect(service, submission, key))
    with expected.receiving() as arrival:
        async for piece in pieces:
            await asyncio.to_thread(arrival.write, piece)
        await asyncio.to_thread(arrival.finish)
    handed_over = False

    def hand_over(service: Service) -> Accepted:
        nonlocal handed_over
        handed_over = True
        return accept(service, arrival)

    try:
        accepted = await _run(context, hand_over, long=True)
    except Exception:
        if not handed_over:  # the server is busy, or the right was lost; otherwise ``accept`` has removed it
            await asyncio.to_thread(arrival.forget)
        raise
    return _accepted_response(accepted)


def _parse_submission(query: DepositFields, fields: list[tuple[str, str]], file_name: str) -> Submit:
    """Return the submission of a query and a form. Raises RequestValidationError, which names the field."""
    try:
        return combine_fields(query, fields, file_name)
    except ValidationError as error:
        place = "body" if fields else "query"
        errors = [
            {**e, "loc": (place, *e["loc"])} for e in error.errors(include_url=False, include_context=False)
        ]
        raise RequestValidationError(errors) from None


def _accepted_response(accepted: Accepted) -> dict[str, Any]:
    """Return the response 202, with links to the batch's status and report."""
    links = {what: f"{router.prefix}/{what}?batch={accepted.bid}" for what in ("status", "report")}
    headers = {"Location": links["status"]} | replayed(accepted.repeated)
    return _json_response(written(accepted.answer() | {"links": links}), 202, headers)


@router.get(
    "/file",
    summary="Fetch a file of a stored object",
    response_class=Response,
    responses=documented(404, 409) | {200: {"description": "The file.", **_CONTENT}},
)
async def file(context: Authenticated, request: Request, query: Annotated[File, Query()]) -> Response:
    """The file is compared with its digests while it is sent. If it is damaged and longer than a piece, the connection
    is closed before its end."""
    return await _attached(context, request, query, query.content)


@router.get(
    "/manifest",
    summary="List the files of a stored object as a manifest",
    response_class=Response,
    responses=documented(404, 409) | {200: {"description": "The manifest.", **_CONTENT}},
)
async def manifest(context: Authenticated, request: Request, query: Annotated[Manifest, Query()]) -> Response:
    """The manifest is in Checkm; the URL of each row is that of the file on this server."""
    base = (request.app.state.settings.url or str(request.base_url)).rstrip("/")

    def locate(ark: str, version: int, path: str) -> str:
        parameters = urlencode({"ark": ark, "version": version, "path": path}, quote_via=quote)
        return f"{base}{router.prefix}/file?{parameters}"

    return await _attached(context, request, query, lambda service: query.content(service, locate))


async def _attached(
    context: RequestContext, request: Request, query: File | Manifest, opened: Callable[[Service], Content]
) -> Response:
    """Send content in pieces, as long as the caller may see its object."""
    content = await _run(context, opened, long=True)

    def may(control: Control) -> None:
        _with_service(control, query.require_may)

    name = content.path.rpartition("/")[2]
    return attachment(request, context, content.pieces, size=content.size_bytes, name=name, may=may)


def _add(to: APIRouter, verb: type[Verb]) -> None:
    """Add the route that runs this verb."""
    from_where = Body() if verb.changes else Query()

    async def answer(
        context: Authenticated,
        parameters: Annotated[verb, from_where],  # type: ignore[valid-type]
    ) -> dict[str, Any]:
        run = parameters.run  # type: ignore[attr-defined]
        return _json_response(await _run(context, lambda service: written(run(service)), long=verb.is_long))

    to.add_api_route(
        f"/{verb.name}",
        answer,
        methods=["POST" if verb.changes else "GET"],
        name=f"ingest_{verb.name}",
        summary=(verb.__doc__ or "").partition(";")[0].partition(".")[0],
        description=verb.__doc__,
        responses=documented(404, 409, 415),
    )


def _json_response(
    answer: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a response with JSON that is serialized already, typed as the value that the route returns."""
    return cast("dict[str, Any]", Response(answer, status, headers=headers, media_type="application/json"))


async def _run(context: RequestContext, call: Callable[[Service], T], *, long: bool = False) -> T:
    """Return the result of ``call``, in a thread and in the name of the caller."""
    return await context.run(lambda control: _with_service(control, call), long=long)


def _with_service(control: Control, call: Callable[[Service], T]) -> T:
    """Return the result of ``call``, with errors of the application turned into errors of the engine."""
    try:
        config = settings.load()
    except UsageError as error:
        # The message names files of this host, which only those who run the server should see.
        log.warning("%s", error)
        raise Refused(
            "the settings of the ingest service cannot be read on the server; its log shows why"
        ) from error
    try:
        with refused():
            return call(Service(control=control, settings=config))
    except TablesUnusable as error:
        raise StoreUnavailable(str(error)) from error


for _verb in VERBS:
    _add(router, _verb)
