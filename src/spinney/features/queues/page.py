"""Queues: what stands in each, how it is set, who serves it; and to set it otherwise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.queues.commands import ChangeQueue, CreateQueue, DeleteQueue, ShowQueue, may_set
from spinney.features.stats.page import CHARTED_US
from spinney.model.errors import UsageError
from spinney.model.rights.operators import QueueInfo, QueueStats, ShareStats, Stats
from spinney.model.values import limits
from spinney.model.values.limits import Limit, as_text
from spinney.web.events.history import Sample
from spinney.web.pages.charts import Spark, spark
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    FormFields,
    listed_in_words,
    page_or_part,
    read_coalesced,
    run_and_redirect,
    sentence,
)
from spinney.web.pages.rendering import redirect, segment
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

QUEUES = "/queues"
_NO_LIMIT = ("", "none")
_TOPICS = ("queues", "overview")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A queue with what the charts show of it."""

    info: QueueInfo
    stats: QueueStats | None
    """None: no job stands in it."""
    depth: Spark | None
    throughput: Spark | None
    notes: Sequence[str]
    """What keeps its jobs from running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueList:
    """All queues as of about one moment, and what there is to choose from."""

    queues: Sequence[QueueInfo]
    stats: Stats
    types: Sequence[str]
    nodes: Sequence[str]


@router.get(QUEUES, summary="Queues")
async def queues(request: Request, context: Authenticated) -> Response:
    """All in sight."""
    return await _list(request, context)


@router.post(QUEUES, summary="Create a queue")
async def create(request: Request, context: Authenticated, form: Form) -> Response:
    """One that no application declares."""
    try:
        asked = CreateQueue(
            name=form.text("name"),
            limit=_limit(form),
            order=form.text("order") or "default",
            sharing=form.maybe("sharing"),
            type=form.maybe("type"),
            pinned=[*form.words("pinned")],
            barred=[*form.words("barred")],
            reason=form.maybe("reason"),
        )
        await context.run(lambda control: control.do(asked))
    except FORM_ERRORS as error:
        return await _list(request, context, said=form.said, wrong=sentence(error), status=422)
    return redirect(_path(asked.name), done=f"Queue {asked.name} is created")


@router.get(f"{QUEUES}/{{name}}", summary="One queue")
async def queue(request: Request, context: Authenticated, name: str) -> Response:
    """Settings, who serves it, what stands in it."""
    info = await context.run(lambda control: control.do(ShowQueue(name=name)))
    found = await _found(request, context)
    shares: Sequence[ShareStats] = [
        share for share in found.stats.shares if share.queue == name and share.share
    ]
    return page_or_part(
        request,
        context,
        "queue",
        topics=_TOPICS,
        line=_line(info, found.stats, _samples(request, context)),
        found=found,
        shares=shares[:20],
        may=may_set(context.principal.rights, name),
        path=_path(name),
    )


@router.post(f"{QUEUES}/{{name}}/limit", summary="Set the limit of a queue")
async def set_limit(context: Authenticated, name: str, form: Form) -> Response:
    """Slots over the whole cluster."""

    def said(info: QueueInfo) -> str:
        limit = info.in_force.limit
        return f"Queue {name} now has {'no limit' if limit is None else f'the limit {as_text(limit, info.limit)}'}"

    return await _set(context, name, form, lambda: {"limit": _limit(form)}, said)


@router.post(f"{QUEUES}/{{name}}/type", summary="Set the default type of a queue")
async def set_type(context: Authenticated, name: str, form: Form) -> Response:
    """Of what is submitted by the queue's name alone."""

    def said(info: QueueInfo) -> str:
        type_ = info.in_force.type
        return f"Queue {name} now has {'no default type' if type_ is None else f'the default type {type_}'}"

    return await _set(context, name, form, lambda: {"type": form.maybe("type")}, said)


@router.post(f"{QUEUES}/{{name}}/pinned", summary="Set the nodes that alone serve a queue")
async def set_pinned(context: Authenticated, name: str, form: Form) -> Response:
    """Those that were taken out of the list, or put into it."""
    return await _set_nodes(context, name, form, "pin", "unpin")


@router.post(f"{QUEUES}/{{name}}/barred", summary="Set the nodes that do not serve a queue")
async def set_barred(context: Authenticated, name: str, form: Form) -> Response:
    """Those that were taken out of the list, or put into it."""
    return await _set_nodes(context, name, form, "bar", "unbar")


@router.post(f"{QUEUES}/{{name}}/declared", summary="Set a queue as it is declared")
async def as_declared(context: Authenticated, name: str, form: Form) -> Response:
    """Take back what operators set."""
    return await _set(
        context,
        name,
        form,
        lambda: {"declared": [*form.all("field")]},
        lambda info: f"Queue {name} is reset to what is declared",
    )


@router.post(f"{QUEUES}/{{name}}/delete", summary="Delete a queue")
async def delete(context: Authenticated, name: str, form: Form) -> Response:
    """All that is said of it."""
    try:
        await context.run(lambda control: control.do(DeleteQueue(name=name, reason=form.maybe("reason"))))
    except FORM_ERRORS as error:
        return redirect(_path(name), refused=sentence(error))
    return redirect(QUEUES, done=f"Queue {name} is deleted; an application that declares it creates it again")


def notes(info: QueueInfo) -> Iterator[str]:
    """What keeps its jobs from running, in sentences."""
    if info.in_force.limit == 0:
        yield "The limit is 0: nothing starts."
    if info.unknown:
        yield f"No running node knows {listed_in_words(info.unknown)}; start one whose application has it."
    if info.unserved:
        yield f"Nodes that know {listed_in_words(info.unserved)} may not serve it; change its nodes, or start another."
    if info.pending and info.active and not info.nodes:
        yield "None of the running nodes may serve this queue; change its nodes, or start another node."
    if info.pending and not info.active:
        yield "No node takes new jobs; start one with 'spinney node', or resume one."


# --- steps ------------------------------------------------------------------------------------


async def _list(
    request: Request, context: RequestContext, *, said: object = None, wrong: str = "", status: int = 200
) -> Response:
    found = await _found(request, context)
    samples = _samples(request, context)
    lines = [_line(info, found.stats, samples) for info in found.queues]
    return page_or_part(
        request,
        context,
        "queues",
        topics=_TOPICS,
        status=status,
        lines=lines,
        found=found,
        said=said or {},
        wrong=wrong,
    )


async def _found(request: Request, context: RequestContext) -> QueueList:
    def read(control: Control) -> QueueList:
        look = control.queries
        return QueueList(
            queues=look.queues(),
            stats=context.stores.stats_cache.stats(control),
            types=sorted(look.types()),
            nodes=sorted(look.names("node")),
        )

    key = ("queues", context.principal.rights.within)
    return await read_coalesced(request, key, lambda: context.run(read))


def _samples(request: Request, context: RequestContext) -> Sequence[Sample]:
    # What this server has seen counts all jobs: who sees those of some collections alone is shown no chart.
    return request.app.state.history.samples if context.principal.rights.within.collections is None else ()


def _line(info: QueueInfo, stats: Stats, samples: Sequence[Sample]) -> QueueRow:
    own = next((q for q in stats.queues if q.queue == info.queue), None)
    from_us = stats.at_us - CHARTED_US
    seen = [(s.at_us, s.queues.get(info.queue, (0, 0, 0.0))) for s in samples]
    pending, throughput = (own.pending, own.rate or 0.0) if own is not None else (0, 0.0)
    depth = [*((at_us, float(of[0])) for at_us, of in seen), (stats.at_us, float(pending))]
    rates = [*((at_us, of[2] or 0.0) for at_us, of in seen), (stats.at_us, throughput)]
    return QueueRow(
        info=info,
        stats=own,
        notes=list(notes(info)),
        depth=spark(depth, from_us=from_us, until_us=stats.at_us) if seen else None,
        throughput=spark(rates, from_us=from_us, until_us=stats.at_us) if seen else None,
    )


async def _set(
    context: RequestContext,
    name: str,
    form: FormFields,
    change: Callable[[], Mapping[str, Any]],
    said: Callable[[QueueInfo], str],
) -> Response:
    def call(control: Control) -> QueueInfo:
        return control.do(ChangeQueue(name=name, reason=form.maybe("reason"), **change()))

    return await run_and_redirect(context, _path(name), call, said)


async def _set_nodes(context: RequestContext, name: str, form: FormFields, on: str, off: str) -> Response:
    before, after = form.words("was"), form.words("nodes")
    more, less = [n for n in after if n not in before], [n for n in before if n not in after]

    def call(control: Control) -> tuple[QueueInfo, list[str]]:
        if not more and not less:
            raise UsageError("the list of nodes is unchanged; add or remove a node's name")
        lists: Any = {on: more, off: less}
        info = control.do(ChangeQueue(name=name, reason=form.maybe("reason"), **lists))
        joined = control.store.bulk.names("node")
        return info, [node for node in more if node not in joined]

    def said(done: tuple[QueueInfo, list[str]]) -> str:
        info, unknown_nodes = done
        spec = info.in_force
        whom = f"only {listed_in_words(spec.pinned)}" if spec.pinned else "any node"
        if spec.barred and not spec.pinned:
            whom += f" but {listed_in_words(spec.barred)}"
        unknown = (
            f"; no node has ever joined with the name {listed_in_words(unknown_nodes)}"
            if unknown_nodes
            else ""
        )
        return f"Queue {name} may now be served by {whom}{unknown}"

    return await run_and_redirect(context, _path(name), call, said)


def _limit(form: FormFields) -> Limit | None:
    if form.text("limit").endswith("%"):
        limits.check("the limit", form.text("limit"))
        return form.text("limit")
    return None if form.text("limit").lower() in _NO_LIMIT else form.whole("limit", "limit")


def _path(name: str) -> str:
    return f"{QUEUES}/{segment(name)}"
