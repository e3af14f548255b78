"""The pages of queues: the list with charts, a queue's settings, nodes and jobs, and the actions on it.

Each form changes one setting, or returns it to what applications declare. Lists of pinned and barred nodes
are sent with what they were before, so that two people who change them at the same time do not undo each
other's changes. Figures and charts are those of the overview (``spinney.features.stats.page``), so that both
pages agree.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.explain.service import Explainer
from spinney.features.queues.commands import ChangeQueue, CreateQueue, DeleteQueue, ShowQueue, may_set
from spinney.features.stats.page import queue_charts
from spinney.model.errors import NoSuchJob, UsageError
from spinney.model.jobs import Filter
from spinney.model.operators.queues import QueueInfo
from spinney.model.operators.stats import QueueStats, ShareStats, Stats
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.model.values import limits
from spinney.model.values.hints import first_of
from spinney.model.values.limits import Limit, as_text
from spinney.model.values.lists import page_by_name
from spinney.web.events.history import Sample
from spinney.web.pages.charts import Spark
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    FormFields,
    RefusedForm,
    add_action,
    form_variables,
    page_or_part,
    read_coalesced,
    run_and_redirect,
)
from spinney.web.pages.page_responses import redirect, segment
from spinney.web.pages.text_formats import capital, moment
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

QUEUES = "/queues"
PAGE = 100
"""How many queues a page of the list has."""
_NO_LIMIT = ("", "none")
"""What a person writes for no limit."""
_TOPICS = ("queues", "overview", "holds")
"""Events at which the page's script reads the live part again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A queue in the list, with its figures and charts of its depth and throughput."""

    info: QueueInfo
    stats: QueueStats | None
    """The figures of the snapshot; None: the queue is newer than that."""
    depth: Spark | None
    """The number of pending jobs over the last minutes; None: there are too few samples, or the caller
    may see none."""
    throughput: Spark | None
    """Ended attempts a second over the last minutes; None as for ``depth``."""
    notes: Sequence[str]
    """A sentence for each thing that keeps its jobs from running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueList:
    """All queues at about one moment, and the names that forms suggest."""

    queues: Sequence[QueueInfo]
    stats: Stats
    holds: Sequence[Hold]
    """The holds in force that cover visible jobs, the oldest first."""
    types: Sequence[str]
    """The names of all job types, by name."""
    nodes: Sequence[str]
    """The names of nodes that the caller may see, by name."""


@router.get(QUEUES)
async def queues(request: Request, context: Authenticated, after: str = "") -> Response:
    """Show a page of the queues that the caller may see, by name."""
    return await _list(request, context, after=after)


@router.post(QUEUES)
async def create(request: Request, context: Authenticated, form: Form) -> Response:
    """Create a queue that no application declares."""
    try:
        command = CreateQueue(
            name=form.text("name"),
            limit=_limit(form),
            order=form.text("order") or "default",
            sharing=form.maybe("sharing"),
            type=form.maybe("type"),
            pinned=[*form.words("pinned")],
            barred=[*form.words("barred")],
            reason=form.maybe("reason"),
        )
        await context.run(lambda control: control.do(command))
    except FORM_ERRORS as error:
        return await _list(request, context, RefusedForm(form=form, error=error))
    return redirect(_path(command.name), done=f"Queue {command.name} is created")


@router.get(f"{QUEUES}/{{name}}")
async def queue(request: Request, context: Authenticated, name: str) -> Response:
    """Show the settings of a queue, its nodes and its jobs, and the 20 shares that occupy most slots."""
    info = await context.run(lambda control: control.do(ShowQueue(name=name)))
    asleep = await context.run(lambda control: _asleep(control, name))
    listed = await _read(request, context)
    (row,) = _rows([info], listed, _samples(request, context))
    shares: Sequence[ShareStats] = [
        share for share in listed.stats.shares if share.queue == name and share.share
    ]
    return page_or_part(
        request,
        context,
        "queue",
        topics=_TOPICS,
        line=replace(row, notes=[*row.notes, *asleep]),
        queue_list=listed,
        shares=shares[:20],
        may=may_set(context.principal.rights, name),
        path=_path(name),
    )


@router.post(f"{QUEUES}/{{name}}/pinned")
async def set_pinned(context: Authenticated, name: str, form: Form) -> Response:
    """Pin the names that were added to the list, and unpin those that were removed. Nodes that never
    joined are named in the answer."""
    return await _set_nodes(context, name, form, "pin", "unpin")


@router.post(f"{QUEUES}/{{name}}/barred")
async def set_barred(context: Authenticated, name: str, form: Form) -> Response:
    """Bar the names that were added to the list, and unbar those that were removed."""
    return await _set_nodes(context, name, form, "bar", "unbar")


def notes(info: QueueInfo) -> Iterator[str]:
    """Yield a sentence for each thing that keeps jobs of the queue from running, the most general first."""
    if info.in_force.limit == 0:
        yield "The limit is 0: nothing starts."
    if not info.active:
        if info.pending:
            yield "No node takes new jobs; start one with 'spinney node', or resume one."
        return
    if info.unknown:
        yield f"No active node knows {first_of(info.unknown)}; start one whose application has it."
    if info.pending and not info.nodes:
        yield "None of the active nodes may serve this queue; change its nodes, or start another node."
    elif info.unserved:
        yield f"Nodes that know {first_of(info.unserved)} may not serve it; change its nodes, or start another."


# --- parts of the page ------------------------------------------------------------------------


async def _list(
    request: Request, context: RequestContext, refused: RefusedForm | None = None, *, after: str = ""
) -> Response:
    """Show the queues behind the name ``after``, with the form for a new queue; ``refused``: with what was
    entered there, and why it was refused."""
    listed = await _read(request, context)
    shown = page_by_name(listed.queues, lambda info: info.queue, after=after, limit=PAGE)
    return page_or_part(
        request,
        context,
        "queues",
        topics=_TOPICS,
        lines=_rows(shown.items, listed, _samples(request, context)),
        queue_list=listed,
        after=after,
        next=shown.next,
        **form_variables(refused),
    )


async def _read(request: Request, context: RequestContext) -> QueueList:
    """Read the queues, their figures and the names for forms; callers with the same limits share one
    reading."""

    def read(control: Control) -> QueueList:
        look = control.queries
        return QueueList(
            queues=look.queues(),
            stats=context.stores.stats_cache.stats(control),
            holds=look.holds(),
            types=sorted(look.types()),
            nodes=sorted(look.names("node")),
        )

    key = ("queues", context.principal.rights.within)
    return await read_coalesced(request, context, key, read)


def _samples(request: Request, context: RequestContext) -> Sequence[Sample]:
    # The samples of this server count all jobs: a caller limited to some collections is shown no chart.
    return request.app.state.history.samples if context.principal.rights.within.collections is None else ()


def _rows(infos: Sequence[QueueInfo], listed: QueueList, samples: Sequence[Sample]) -> Sequence[QueueRow]:
    """Return queues with their figures and charts. Each hold and figure is looked at once, however many there are."""
    figures = {stats.queue: stats for stats in listed.stats.queues}
    holds: dict[str, list[Hold]] = {info.queue: [] for info in infos}
    for hold in listed.holds:
        names = holds if hold.scope is Scope.EVERYTHING else (hold.name,) if hold.scope is Scope.QUEUE else ()
        for name in names:
            if name in holds:
                holds[name].append(hold)
    rows = []
    for info in infos:
        own = figures.get(info.queue)
        depth, throughput = queue_charts(listed.stats, info.queue, own, samples)
        sentences = [*map(_hold_note, holds[info.queue]), *notes(info)]
        rows.append(QueueRow(info=info, stats=own, notes=sentences, depth=depth, throughput=throughput))
    return rows


def _asleep(control: Control, queue: str) -> Iterable[str]:
    """Return a sentence where the first pending job of a queue waits because its stage sleeps for all jobs. Neither
    holds nor settings show why nothing runs then."""
    first = control.queries.jobs(Filter(queue=queue, states=(State.PENDING,)), limit=1)
    try:
        explanation = control.part(Explainer).explain(first[0].id) if first else None
    except NoSuchJob:  # it has been deleted meanwhile
        return ()
    if explanation is None or explanation.cause != "lane asleep":
        return ()
    until = f", until {moment(explanation.start_us)}" if explanation.start_us else ""
    return (f"{capital(explanation.sentence)}{until}; its jobs wait, the first of them {first[0].id}",)


def _hold_note(hold: Hold) -> str:
    """Return the sentence for a hold on the whole queue, or on everything."""
    subject = "Everything" if hold.scope is Scope.EVERYTHING else "The queue"
    return f"{subject} is held by {hold.by}, so that nothing starts: {hold.reason}"


async def _set_nodes(context: RequestContext, name: str, form: FormFields, on: str, off: str) -> Response:
    """Add the names that a form has added to a list of nodes, and remove those that it has removed.

    ``on`` and ``off`` are the fields of ``ChangeQueue``. The difference to what the form was filled with
    is applied, so a change by somebody else meanwhile is kept.
    """
    before, after = form.words("was"), form.words("nodes")
    added, removed = [n for n in after if n not in before], [n for n in before if n not in after]

    def call(control: Control) -> tuple[QueueInfo, list[str]]:
        if not added and not removed:
            raise UsageError("the list of nodes is unchanged; add or remove a node's name")
        lists: Any = {on: added, off: removed}
        info = control.do(ChangeQueue(name=name, reason=form.maybe("reason"), **lists))
        joined = control.store.bulk.names("node")
        return info, [node for node in added if node not in joined]

    def done(result: tuple[QueueInfo, list[str]]) -> str:
        info, unknown_nodes = result
        spec = info.in_force
        nodes = f"only {first_of(spec.pinned)}" if spec.pinned else "any node"
        if spec.barred and not spec.pinned:
            nodes += f" but {first_of(spec.barred)}"
        unknown = (
            f"; no node has ever joined with the name {first_of(unknown_nodes)}" if unknown_nodes else ""
        )
        return f"Queue {name} may now be served by {nodes}{unknown}"

    return await run_and_redirect(context, _path(name), call, done)


def _limit(form: FormFields) -> Limit | None:
    """Return the limit that a form has: a number, a percentage as text, or None. Raises UsageError."""
    if form.text("limit").endswith("%"):
        limits.check("the limit", form.text("limit"))
        return form.text("limit")
    return None if form.text("limit").lower() in _NO_LIMIT else form.whole("limit", "limit")


def _limit_text(name: str, info: QueueInfo) -> str:
    limit = info.in_force.limit
    return (
        f"Queue {name} now has {'no limit' if limit is None else f'the limit {as_text(limit, info.limit)}'}"
    )


def _type_text(name: str, info: QueueInfo) -> str:
    type_ = info.in_force.type
    return f"Queue {name} now has {'no default type' if type_ is None else f'the default type {type_}'}"


def _path(name: str) -> str:
    return f"{QUEUES}/{segment(name)}"


_add_action = partial(add_action, router, QUEUES)
_add_action("limit", ChangeQueue, _limit_text, read=lambda form: {"limit": _limit(form)})
_add_action("type", ChangeQueue, _type_text, read=lambda form: {"type": form.maybe("type")})
_add_action(
    "declared",
    ChangeQueue,
    "Queue {name} is reset to what is declared",
    read=lambda form: {"declared": [*form.all("field")]},
)
_add_action(
    "delete",
    DeleteQueue,
    "Queue {name} is deleted; an application that declares it creates it again",
    removes=True,
)
