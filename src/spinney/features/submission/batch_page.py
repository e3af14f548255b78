"""The page of one batch: all jobs below a job at the top, as a grid of states that fills in.

The page has two parts with different costs. Facts, causes and holds are small and are read at each change of
the tree. The grid has up to ``CELLS`` cells and has an address of its own, so that the page's script can
fetch it less often and the server can write it once for all who may see the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.responses import HTMLResponse, Response

from spinney.commands.control import Control
from spinney.features.bulk import verb_forms as verbs
from spinney.features.explain.cause_words import Pieces
from spinney.features.explain.service import Explainer
from spinney.features.failures.page import with_own_messages
from spinney.features.files import page as output
from spinney.features.holds.commands import LayHold, lift_holds, sweep_holds
from spinney.features.jobs.job_page import JobId, sentence
from spinney.features.submission.batches import Batch, Batches
from spinney.model.access import Role
from spinney.model.attempts.failure_groups import FailureGroups
from spinney.model.errors import NoSuch, Refused, UnlawfulTransition, UsageError
from spinney.model.homes import DirectoryEntry
from spinney.model.jobs import JOB_ID_MAX, Filter, Job
from spinney.model.operators.bulk_orders import Verb
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import NOT_DELETED, SETTLED, State
from spinney.model.types import TypeSpec
from spinney.model.values.products import products_of, summaries_of
from spinney.service.queries import Queries
from spinney.web.media_types import wants_part
from spinney.web.pages.forms import Form, FormFields, page_or_part
from spinney.web.pages.page_responses import part, redirect, with_query
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

CELLS = 2_000
"""The most jobs in one grid; further ones are on further pages."""
LARGE = 240
"""The most cells of a grid whose cells are drawn large enough for a finger."""
CAUSES = 20
"""How many causes of failures the page of a batch shows."""
EXACT_MAX = 20_000
"""How many jobs below the direct subjobs are counted exactly, without superseded ones; of more the number is
an upper bound."""
_VERBS_WHILE_OPEN = (Verb.CANCEL, Verb.HOLD)
"""The verbs for the whole tree that are offered while anything in it is open."""

After = Annotated[int, Query(ge=0, le=JOB_ID_MAX)]
States = Annotated[list[State] | None, Query(max_length=len(State))]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """What the page of a batch shows, except its grid."""

    batch: Batch
    failures: FailureGroups
    """The causes of failures in the tree, at most ``CAUSES``."""
    holds: Sequence[Hold]
    """The holds on the tree as a whole, without wider ones that also cover it."""
    allowed: Sequence[str]
    """The verbs for the whole tree that the caller may use now."""
    sentence: Pieces
    """Why the batch itself does not run, in pieces: text, and the number of the job that is named behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One page of the grid of a batch: its objects, one cell for each."""

    cells: Sequence[Job]
    """The jobs of this page, by number."""
    counts: Mapping[str, int]
    """How many jobs are in each state, over all pages and whatever states are chosen."""
    deeper: int
    """How many more jobs are below the direct subjobs; 0 where the grid shows them, too."""
    next: int | None
    """What ``after`` of the next page has to be; None: this is the last one."""


@router.get("/batches/{job}")
async def batch(
    request: Request,
    context: Authenticated,
    job: JobId,
    state: States = None,
    after: After = 0,
    below: bool = False,
) -> Response:
    """Show a batch. Its live part comes without the grid, which has an address of its own. The address of a subjob
    leads to its page as a job."""
    try:
        shown = await _shown(context, job)
    except NoSuch:
        return redirect(f"/jobs/{job}")
    grid = {} if wants_part(request) else await _grid(context, job, state, after, below)
    return page_or_part(request, context, "batch", topics=(f"job:{job}", f"tree:{job}"), **shown, **grid)


@router.get("/batches/{job}/grid")
async def batch_grid(
    request: Request,
    context: Authenticated,
    job: JobId,
    state: States = None,
    after: After = 0,
    below: bool = False,
) -> Response:
    """Return the grid alone, for the page that shows it; any other request is redirected to that page."""
    if not wants_part(request):
        chosen = [str(item) for item in state or ()]
        return redirect(with_query(f"/batches/{job}", state=chosen, after=after or None, below=below))

    async def make() -> bytes:
        shown = part(
            request, context.principal, "batch_grid.html", **await _grid(context, job, state, after, below)
        )
        return bytes(shown.body)

    # Rendering thousands of cells is expensive, and the result is the same for all callers with the same limits.
    key = ("grid", context.principal.rights.within, job, tuple(state or ()), after, below)
    text = await request.app.state.coalesced.get(key, make)
    return HTMLResponse(text, headers={"Cache-Control": "no-store", "Vary": "HX-Request"})


@router.get("/batches/{job}/report")
async def batch_report(request: Request, context: Authenticated, job: JobId) -> Response:
    """Show the result of the stage that reports on the batch, its products and summaries, and the files in its folder
    whose names begin with ``report``. Where the folder cannot be listed, the page says why instead of failing."""
    root = request.app.state.folders
    report = await context.run(lambda control: _report(control, job, root), long=True)
    return page_or_part(request, context, "batch_report", job_id=job, **report)


@router.post("/batches/{job}/verb")
async def verb(context: Authenticated, job: JobId, form: Form) -> Response:
    """Hold, release or cancel a batch with all jobs below it, and redirect to its page, which says what
    became of it.

    Other verbs are refused: a retry of failed jobs is done to these, and makes the batch regrow by
    itself.
    """
    back = f"/batches/{job}"
    try:
        verb_ = verbs.verb(form.text("verb"))
        if verb_ in (Verb.HOLD, Verb.RELEASE):
            return await _held(context, job, verb_, form, back)
        if verb_ is not Verb.CANCEL:
            raise UsageError(f"a batch as a whole is held, released or cancelled; {verb_} its jobs instead")
        report = await verbs.run_on(
            context, verbs.order({**form.values, "verb": str(verb_), "tree": "1"}), job
        )
    except (NoSuch, Refused, UsageError, UnlawfulTransition) as error:
        return redirect(back, refused=str(error))
    finally:
        context.stores.stats_cache.changed(_topic(job))  # the caller must see the change at once
    if job in report.refused and not report.touched:
        return redirect(back, refused=report.refused[job])
    done, refused = verbs.outcome_sentences(verb_, report)
    return redirect(back, done=done, refused=f"{done}; {refused}" if refused else None)


async def _held(context: RequestContext, job_id: int, verb_: Verb, form: FormFields, back: str) -> Response:
    """Hold or release the tree, and redirect with the outcome. The jobs themselves are swept after the
    answer has been sent."""
    # Claiming respects the hold from its commit on; only the states that are shown lag behind until the
    # sweep.
    reason, until_us = form.maybe("reason"), form.moment("until")

    def call(control: Control) -> Sequence[Hold]:
        if verb_ is Verb.HOLD:
            control.do(LayHold(scope=Scope.TREE, name=str(job_id), reason=reason or "", until=until_us))
        else:
            lift_holds(control, Scope.TREE, str(job_id), reason=reason)
        return control.queries.holds_on(job_id)

    holds = await context.run(call)
    outcome = f"is released, but still held by {verbs.named(holds)}" if holds else "goes on"
    if verb_ is Verb.HOLD:
        outcome = "is held, with all below it; what runs finishes its stage"
    answer = redirect(back, done=f"batch {job_id} {outcome}")
    answer.background = BackgroundTask(context.run, sweep_holds, long=True)
    return answer


# --- reads ------------------------------------------------------------------------------------


async def _shown(context: RequestContext, job_id: int) -> dict[str, Any]:
    """Read the live part of the page; callers with the same name and rights share it until the tree
    changes."""
    stats_cache, viewer = context.stores.stats_cache, (context.principal.name, context.principal.rights)
    view = await context.run(
        lambda control: stats_cache.get(_topic(job_id), viewer, lambda: read(control, job_id))
    )
    usable = verbs.usable(context.principal)
    return {"shown": view, "job": view.batch.job, "may_retry": Verb.RETRY in usable}


def _topic(job_id: int) -> str:
    return f"tree:{job_id}"


def read(control: Control, job_id: int) -> BatchView:
    """Read what the page of a batch shows, except its grid. Raises NoSuchJob, and NoSuch for a job that has a
    parent."""
    part_ = control.part(Batches)
    batch_ = part_.find(job_id)
    open_ = batch_.job.state not in SETTLED or batch_.settled < batch_.total
    # Verbs for the tree are allowed as long as anything in it is open; ``Control`` checks the rights of the caller
    # again.
    allowed = [str(v) for v in _VERBS_WHILE_OPEN] if open_ and _reaches(control, batch_.job) else []
    holds = control.queries.holds_on(job_id) if open_ else ()
    return BatchView(
        batch=batch_,
        failures=with_own_messages(control.queries, part_.failures(job_id, limit=CAUSES), root_id=job_id),
        holds=[hold for hold in holds if hold.scope is Scope.TREE and hold.name == str(job_id)],
        allowed=allowed,
        sentence=sentence(control.part(Explainer).in_pieces(job_id)[1]),
    )


def _reaches(control: Control, job: Job) -> bool:
    """Return whether the caller may cancel such a job at all, whatever its state: an operator, or its own
    submitter."""
    rights = control.rights
    return rights.permits(Role.OPERATOR) or (rights.permits(Role.SUBMITTER) and job.submitter == control.by)


async def _grid(
    context: RequestContext, job_id: int, states: Sequence[State] | None, after: int, below: bool
) -> dict[str, Any]:
    """Return the values of the template of the grid; callers with the same limits share the jobs until
    the tree changes."""
    key = (context.principal.rights.within, tuple(states or ()), after, below)

    def look(control: Control) -> Grid:
        return context.stores.stats_cache.get(
            _topic(job_id), key, lambda: _objects(control, job_id, states, after, below)
        )

    grid = await context.run(look)
    chosen = [str(state) for state in states or ()]
    query = {"state": chosen, "below": below}
    batch_path = f"/batches/{job_id}"
    return {
        "grid": grid,
        "job_id": job_id,
        "chosen": chosen,
        "below": below,
        "after": after,
        "now_path": with_query(f"{batch_path}/grid", **query, after=after or None),
        "next": with_query(batch_path, **query, after=grid.next) if grid.next else None,
        "first": with_query(batch_path, **query) if after else None,
        "large": len(grid.cells) <= LARGE,
        "as_list": with_query("/jobs", **({"root": job_id} if below else {"parent": job_id}), state=chosen),
    }


def _objects(control: Control, job_id: int, states: Sequence[State] | None, after: int, below: bool) -> Grid:
    """Read one page of the grid: the direct subjobs of a job, or with ``below`` all jobs below it, by
    number.

    Superseded and deleted jobs are left out of cells and counts. ``states`` narrows the cells only, so
    that the counts say what else there is. ``after``: the last number of the page before.
    """
    look = control.queries
    top = look.job(job_id)
    where = Filter(root_id=job_id, below=top.lineage) if below else Filter(parent_id=job_id)
    current = replace(where, superseded=False)
    counts = {str(s): n for s, n in look.counts(current).items() if n and s != State.DELETED}
    chosen = tuple(dict.fromkeys(states)) if states else NOT_DELETED
    cells = look.jobs(replace(current, states=chosen), after=after, limit=CELLS + 1)
    deeper = 0 if below else _deeper(look, top, sum(counts.values()))
    return Grid(
        cells=cells[:CELLS],
        counts=counts,
        deeper=max(0, deeper),
        next=cells[CELLS - 1].id if len(cells) > CELLS else None,
    )


def _deeper(look: Queries, top: Job, direct: int) -> int:
    """Return how many jobs that count are below the direct subjobs.

    An index tells when there are none, as in most batches. In a tree with more than ``EXACT_MAX`` of
    them, the number includes superseded ones, since leaving these out would read the tree.
    """

    def count(job_filter: Filter) -> int:
        return sum(n for state, n in look.counts(job_filter).items() if state != State.DELETED)

    further = count(Filter(root_id=top.id)) - 1 - direct
    if further > 0:
        further -= count(Filter(parent_id=top.id)) - direct
    if not 0 < further <= EXACT_MAX:
        return max(0, further)
    return count(Filter(root_id=top.id, below=top.lineage, superseded=False)) - direct


def _report(control: Control, job_id: int, root: FilePath) -> dict[str, Any]:
    """Read what the report shows: the result of the last stage that has one other than None. Before the batch has
    completed only stages marked ``again`` report; what others return is not about the subjobs."""
    job = control.queries.job(job_id)
    results = control.queries.results(job_id)
    data = control.queries.data(job_id)
    spec: TypeSpec | None = control.queries.types().get(job.type)
    completed = job.state is State.COMPLETED
    order = [stage.name for stage in spec.stages if completed or stage.again] if spec else []
    last = next((name for name in reversed(order) if results.get(name) is not None), None)
    files: Sequence[DirectoryEntry] = ()
    trouble = None
    try:
        entries = output.listing(control, job_id, root, "")
        files = [
            entry for entry in entries if entry.kind == "file" and entry.name.lower().startswith("report")
        ]
    except Refused as error:
        trouble = str(error)
    return {
        "job": job,
        "stage": last,
        "value": results.get(last) if last else None,
        "files": files,
        "products": products_of(data),
        "summaries": summaries_of(data),
        "trouble": trouble,
    }
