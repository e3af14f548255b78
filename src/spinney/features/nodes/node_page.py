"""The page of one node: its state and orders, what it runs, and when its slots were in use.

The picture shows how busy the node was, not which slot ran what: the store does not keep the slot of an
attempt that has ended, so attempts are laid into rows as they fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.nodes.recent_sql import NodeAttempt
from spinney.model.fleet import NodeStatus
from spinney.model.jobs import Filter, Job
from spinney.model.states import LEASED
from spinney.web.pages.forms import page_or_part, read_coalesced
from spinney.web.pages.text_formats import lasting
from spinney.web.pages.timelines import Segment, Timeline, TimelineRow, kind_of, segment
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)

RUNNING_MAX = 100
"""How many of the jobs that a node has are listed."""
DRAWN_US = 3_600_000_000
"""The picture of the slots goes back for an hour, or to the first attempt in it."""
ROWS_MAX = 64
"""The most rows of the picture of slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node with what it does."""

    node: NodeStatus
    jobs: Sequence[Job]
    """What it has claimed or runs, by number, at most ``RUNNING_MAX``."""
    timeline: Timeline | None
    """The attempts of the last hour by slot; None: the node has run nothing lately."""


@router.get("/nodes/{name}")
async def node(request: Request, context: Authenticated, name: str) -> Response:
    """Show a node: its state, what it runs, and its slots over the last hour."""
    key = ("node", name, context.principal.rights)
    shown = await read_coalesced(request, context, key, lambda control: read(control, name))
    if shown is None:
        raise HTTPException(404)
    return page_or_part(request, context, "node", topics=("nodes", "overview"), shown=shown, node=shown.node)


def read(control: Control, name: str) -> NodeView | None:
    """Read the newest node of this name that has not left, or died not long ago; None: there is none.

    Its jobs are only those that the caller may see.
    """
    nodes = [node for node in control.queries.nodes() if node.node == name]
    if not nodes:
        return None
    shown = max(nodes, key=lambda node: node.id)
    within, now_us = control.queries.within(Filter()).within, control.clock()
    attempts = control.store.node_attempts
    return NodeView(
        node=shown,
        jobs=control.queries.jobs(Filter(node=name, states=tuple(LEASED)), limit=RUNNING_MAX),
        timeline=slots(
            attempts.running(shown.id, within), attempts.ended(shown.id, now_us - DRAWN_US, within), now_us
        ),
    )


def slots(running: Sequence[NodeAttempt], ended: Sequence[NodeAttempt], now_us: int) -> Timeline | None:
    """Return the attempts in as few rows as hold them side by side, those that run first; None without
    any.

    They come latest first, and each goes into the first row that is free after it. What does not fit into
    ``ROWS_MAX`` rows is left out.
    """
    if not running and not ended:
        return None
    from_us = max(now_us - DRAWN_US, min(attempt.started_us for attempt in (*running, *ended)))
    rows: list[list[Segment]] = []
    busy_from_us: list[int] = []
    # The latest attempts come first, so a row is free up to the start of the segment that it got last.
    for attempt in (*running, *ended):
        end_us = attempt.ended_us or now_us
        free = next((n for n, from_ in enumerate(busy_from_us) if end_us <= from_), None)
        if free is None:
            if len(rows) >= ROWS_MAX:
                continue
            free = len(rows)
            rows.append([])
            busy_from_us.append(now_us)
        rows[free].append(_segment(attempt, end_us, from_us, now_us))
        busy_from_us[free] = attempt.started_us
    return Timeline(
        from_us=from_us,
        until_us=now_us,
        rows=[TimelineRow(label=str(number), segments=row) for number, row in enumerate(rows, start=1)],
    )


def _segment(attempt: NodeAttempt, end_us: int, from_us: int, now_us: int) -> Segment:
    """Return an attempt as a segment of the picture, with a title that says what it was."""
    seconds = (end_us - attempt.started_us) / 1e6
    if attempt.outcome is None:
        ended = f"runs for {lasting(seconds)}"
    else:
        ended = f"ran {lasting(seconds)}, {attempt.outcome.replace('_', ' ')}"
    stage = attempt.type if attempt.stage == attempt.type else f"{attempt.type}.{attempt.stage}"
    title = f"#{attempt.job_id} {stage}: {ended}"
    return segment(
        kind_of(attempt.outcome), attempt.started_us, end_us, from_us, now_us, title, attempt.job_id
    )
