"""The addresses of event streams: one for programs, and one for pages.

Both are served by one function. That of pages is outside of ``/api``, so that it is in no document."""

from typing import Annotated

from fastapi import APIRouter, FastAPI, Header, Query, Request
from starlette.responses import Response, StreamingResponse

from spinney.model.errors import UsageError
from spinney.web.api.json_routes import routes
from spinney.web.events.feed import Feed
from spinney.web.events.history import History
from spinney.web.events.streaming import Stream
from spinney.web.events.topics import TOPICS_MAX, topic
from spinney.web.long_requests.quotas import acquire_quota, quota_stack
from spinney.web.media_types import EVENT_STREAM
from spinney.web.request_context import Authenticated

api = routes("events")
"""The route for programs."""
page = APIRouter(include_in_schema=False)
"""The route for pages, which is left out of the document of the API."""


def add_to(app: FastAPI) -> None:
    """Add the feed, which runs as long as the application, and the addresses."""
    app.state.feed = Feed(app.state.stores)
    app.state.history = History(app.state.stores)
    app.state.beside += [app.state.feed, app.state.history]
    app.router.routes.extend(api.routes + page.routes)


@page.get("/events", response_class=Response)
@api.get(
    "/events",
    summary="Watch what changes",
    response_class=Response,
    responses={
        200: {
            "description": "Server-sent events, each a topic's new state.",
            "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
        }
    },
)
async def events(
    request: Request,
    context: Authenticated,
    topics: Annotated[
        list[str],
        Query(
            alias="topic",
            min_length=1,
            max_length=TOPICS_MAX,
            examples=["job:17", "overview"],
            description="What to watch; may be repeated: `overview`, `batches`, `jobs`, `queues`, `nodes`, `holds`, "
            "`locks`, `schedules`, `failures`, `job:17`, `tree:17`, `jobs:state=failed&type=fetch`.",
        ),
    ],
    last_event_id: Annotated[
        str | None,
        Header(description="Continue after this event; browsers send this header when they reconnect."),
    ] = None,
) -> Response:
    """Server-sent events. Each is named after its topic and contains the topic's whole new state as JSON. Topics are
    read about once a second, and less often where that takes long; if a topic changes several times in between, only
    its last state is sent. A client that reconnects with `Last-Event-ID` gets the states that have changed since then;
    where the server has restarted meanwhile, it gets all. When your rights have changed, all states are sent again as
    you may see them now; when you have lost them, a last event, `end`, contains the problem."""
    watched = [topic(name) for name in dict.fromkeys(topics)]
    if any(not name.isprintable() for name in topics):
        raise UsageError("a topic has an unprintable character; correct its name")
    acquire_quota(request, context, request.app.state.quotas.streams)
    stream = Stream(request.app.state.feed, watched, context, last=last_event_id)
    quota_stack(request).callback(stream.leave)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream.messages(), media_type=EVENT_STREAM, headers=headers)
