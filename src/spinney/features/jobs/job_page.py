"""The pages of one job: its state and the reason for it, what it did, and the actions that are allowed.

The main page and its live part are read as a whole (``read``). Output, files, subjobs and history have
addresses of their own, since they are longer and are read only by those who open them. Verbs come as forms
and end in a redirect, so that loading the page again repeats nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import JSONResponse, Response

from spinney.commands.control import Control
from spinney.features.bulk import verb_forms as verbs
from spinney.features.explain.cause_words import Pieces
from spinney.features.explain.explanation import Explanation
from spinney.features.explain.service import Explainer
from spinney.features.files import page as output
from spinney.features.files.uploads import Uploads
from spinney.features.jobs.job_history import ENTRIES
from spinney.features.jobs.job_history import entries as job_history_of
from spinney.model.errors import Forbidden, NoSuchJob, Refused, UnlawfulTransition, UsageError
from spinney.model.jobs import JOB_ID_MAX, Attempt, Filter, Job
from spinney.model.operators.bulk_orders import Verb
from spinney.model.operators.bulk_runs import Plan
from spinney.model.rights.allowed_verbs import may
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import SETTLED, UNSUCCESSFUL, State
from spinney.model.types import TypeSpec
from spinney.model.values.products import Product, Summary, products_of, summaries_of, without_entries
from spinney.web.pages.forms import Form, page_or_part
from spinney.web.pages.page_responses import redirect
from spinney.web.pages.stages import Step, current, numbered, steps
from spinney.web.pages.text_formats import capital, cut
from spinney.web.pages.timelines import Timeline, of_job
from spinney.web.pages.tracebacks import Piece, failure_text
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)

JobId = Annotated[int, Path(ge=1, le=JOB_ID_MAX)]
"""The number of a job in an address."""
ABOVE = 12
"""How many ancestors are named, the nearest ones."""
BELOW = 200
"""How many subjobs the page of a job shows."""
ATTEMPTS = 100
"""How many attempts are shown, the latest ones."""

SENTENCE = 400
"""How many characters of an explanation are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """Everything that the page of a job shows, as of about one moment."""

    job: Job
    spec: TypeSpec | None
    """The job type; None where no node has registered it."""
    explanation: Explanation
    sentence: Pieces
    """The sentence of the explanation in pieces: text, and the number of the job that is named behind it."""
    ring: Sequence[int]
    """The jobs that wait for each other, to which the page leads beside the sentence."""
    steps: Sequence[Step]
    """The stages with their attempts, for the picture."""
    timeline: Timeline | None
    """When its stages waited and ran; None before the first attempt."""
    attempts: Sequence[Attempt]
    """The attempts, the newest first, at most ``ATTEMPTS``."""
    numbers: Mapping[int, int]
    """The number by which pages call each attempt, by its fence."""
    failure: Attempt | None
    """The last attempt that ended, if it ended with an error and is not superseded."""
    is_past: bool
    """Whether the failure is that of an earlier attempt than the one of which picture and output speak."""
    failed_program: bool
    """Whether ``failure`` is of a stage that runs a program, which keeps frames only if it does so itself."""
    message: str
    """The message of ``failure``."""
    pieces: Sequence[Piece]
    """The traceback of ``failure``, in lines of the application and of others."""
    data: Mapping[str, Any]
    """The job's data without the products and summaries, which have parts of their own."""
    products: Sequence[Product]
    summaries: Sequence[Summary]
    results: Mapping[str, Any]
    """The results of the stages that have passed, by stage."""
    holds: Sequence[Hold]
    """The holds that cover the job; none for a settled one."""
    allowed: Sequence[str]
    """The verbs that the state of the job and the rights of the caller allow now."""
    above: Sequence[Job | None]
    """The nearest ancestors, from the top down, at most ``ABOVE``; None in place of one that the caller may not see."""
    children: Mapping[str, int]
    """How many direct subjobs that count are in each state."""
    retries_children: bool
    """Whether a retry is done to failed subjobs in its place."""
    queues: Sequence[str]
    """The queues to which the caller may move the job."""
    has_needs: bool
    """Whether it needs jobs, or jobs need it."""


@router.get("/jobs/{job}")
async def job(request: Request, context: Authenticated, job: JobId) -> Response:
    """Show a job: its state and the reason for it, its stages and attempts, and the actions that are allowed.

    Why a job does not start changes with nodes, settings and other jobs while the job itself stays as it is, so
    the page of one that waits also follows the queues."""
    shown = await context.run(lambda control: read(control, job))
    may_wait = shown.job.state not in (*SETTLED, State.RUNNING)
    topics = (f"job:{job}", f"tree:{job}", *(("queues",) if may_wait else ()))
    return page_or_part(request, context, "job", topics=topics, shown=shown)


@router.post("/jobs/{job}/verb")
async def verb(context: Authenticated, job: JobId, form: Form) -> Response:
    """Carry out a verb, and redirect to the page of the job, which says what became of it; after a
    deletion to the list."""
    back = f"/jobs/{job}"
    try:
        order = verbs.order(form.values)
        report = await verbs.run_on(context, order, job)
    except (Refused, UsageError, UnlawfulTransition) as error:
        return redirect(back, refused=str(error))
    if job in report.refused and not report.touched:
        return redirect(back, refused=report.refused[job])
    done, refused = await verbs.outcome(context, Plan(order=order, job_filter=None, ids=(job,)), report)
    if order.verb is Verb.DELETE and not refused:
        return redirect("/jobs", done=f"job {job}: {done}")
    return redirect(back, done=done, refused=f"{done}; {refused}" if refused else None)


@router.get("/jobs/{job}/output")
async def job_output(
    request: Request,
    context: Authenticated,
    job: JobId,
    fence: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    q: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the end of each stream of an attempt, or the lines that contain a text.

    ``fence``: the attempt; without it the one of which the job's page shows picture and failure. ``q``:
    the text.
    """
    root = request.app.state.folders

    def call(control: Control) -> tuple[Job, output.Output]:
        return control.queries.job(job), output.output(control, job, root, fence=fence, search=q.strip())

    job_shown, written = await context.run(call, long=True)
    return page_or_part(
        request, context, "job_output", job=job_shown, output=written, q=q.strip(), fence=fence
    )


@router.get("/jobs/{job}/output/{fence}/{stream}")
async def job_output_more(
    request: Request,
    context: Authenticated,
    job: JobId,
    fence: Annotated[int, Path(ge=1, le=2**62)],
    stream: str,
    start: Annotated[int, Query(alias="from", ge=0, le=2**62)] = 0,
) -> Response:
    """Return what a stream has after byte ``from``, as JSON. The page's script calls it again and again
    while the attempt runs."""
    root = request.app.state.folders
    shown = await context.run(
        lambda control: output.more(control, job, root, fence=fence, stream=stream, start=start), long=True
    )
    return JSONResponse(asdict(shown), headers={"Cache-Control": "no-store"})


@router.get("/jobs/{job}/files")
async def job_files(
    request: Request, context: Authenticated, job: JobId, path: Annotated[str, Query(max_length=1000)] = ""
) -> Response:
    """Show one directory of the job's folder; ``path`` is relative to that. Where it cannot be read, the
    page says why."""
    root = request.app.state.folders
    folder = path.strip("/")
    trouble, entries = None, []
    try:
        entries = list(
            await context.run(lambda control: output.listing(control, job, root, folder), long=True)
        )
    except Refused as error:
        trouble = str(error)
    return page_or_part(
        request,
        context,
        "job_files",
        job_id=job,
        path=folder,
        up=folder.rpartition("/")[0],
        entries=entries,
        trouble=trouble,
        most=output.FILES,
        may_upload=not folder and await context.run(lambda control: _may_upload(control, job)),
    )


@router.get("/jobs/{job}/below")
async def job_below(request: Request, context: Authenticated, job: JobId) -> Response:
    """Show the first subjobs of the job, at most ``BELOW``; the page of its tree has all of them."""
    children = await context.run(lambda control: control.queries.children(job, limit=BELOW + 1))
    return page_or_part(
        request, context, "job_below", job_id=job, children=children[:BELOW], more=len(children) > BELOW
    )


@router.get("/jobs/{job}/history")
async def job_history(request: Request, context: Authenticated, job: JobId) -> Response:
    """Show the verbs that were used on the job and on those below it.

    Only the latest ``ENTRIES`` entries of the audit are searched; the page says when they do not reach
    back to the job's creation.
    """
    entries, whole = await context.run(lambda control: job_history_of(control, job), long=True)
    return page_or_part(
        request, context, "job_history", job_id=job, entries=entries, whole=whole, looked=ENTRIES
    )


# --- reads ------------------------------------------------------------------------------------


def read(control: Control, job_id: int) -> JobView:
    """Read everything that the page of a job shows. Raises NoSuchJob.

    The parts are several queries and not one snapshot: a job that moves on between them may show its new
    state beside an attempt less. The page is read anew when the job changes, so that lasts for a moment.
    """
    look = control.queries
    shown_job, attempts = look.job(job_id), look.attempts(job_id)
    spec = look.types().get(shown_job.type)
    failure = _failure(shown_job, attempts)
    holds = () if shown_job.state in SETTLED else look.holds_on(job_id)
    allowed = look.allowed(shown_job)
    if Verb.RELEASE not in allowed and any(hold.scope is Scope.JOB for hold in holds):
        # It waits for something else first; the hold on it can be lifted all the same.
        allowed += [Verb.RELEASE] if may(Verb.RELEASE, shown_job, control.rights, control.by) else []
    data = look.data(job_id)
    explanation, pieces = control.part(Explainer).in_pieces(job_id)
    children = {str(s): n for s, n in look.counts(Filter(parent_id=job_id, superseded=False)).items() if n}
    message, traceback = failure_text(failure) if failure else ("", [])
    return JobView(
        job=shown_job,
        spec=spec,
        explanation=explanation,
        sentence=sentence(pieces),
        ring=explanation.facts.get("ring", ()),
        steps=steps(shown_job, spec, attempts),
        timeline=of_job(shown_job, attempts, control.clock(), most=ATTEMPTS),
        attempts=attempts[::-1][:ATTEMPTS],
        numbers=numbered(attempts),
        failure=failure,
        is_past=failure is not None
        and shown_job.state not in UNSUCCESSFUL
        and current(shown_job, attempts) != failure,
        failed_program=failure is not None and _runs_program(spec, failure.stage),
        message=message,
        pieces=traceback,
        data=without_entries(data),
        products=products_of(data),
        summaries=summaries_of(data),
        results=look.results(job_id),
        holds=holds,
        allowed=allowed,
        above=above(control, shown_job),
        children=children,
        retries_children=Verb.RETRY in allowed and bool(control.store.bulk.failed_children(job_id, limit=1)),
        queues=[queue.queue for queue in look.queues()] if Verb.MOVE in allowed else (),
        has_needs=control.store.relatives.has_needs(job_id),
    )


def _failure(job: Job, attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the last attempt that ended, if it ended with an error and still counts; None for a completed job."""
    if job.state is State.COMPLETED:
        return None
    last = next((a for a in reversed(attempts) if not a.superseded and a.ended_us is not None), None)
    return last if last is not None and last.error else None


def _runs_program(spec: TypeSpec | None, stage: str) -> bool:
    """Return whether a stage runs a program; False also where the type or stage does not exist any more."""
    stage_spec = None if spec is None else spec.stage(stage)
    return stage_spec is not None and bool(stage_spec.program)


def sentence(pieces: Pieces) -> Pieces:
    """Return a sentence in pieces with a capital letter at its beginning and a full stop at its end. Its last piece may
    be a message of any length, and is cut; it then has no full stop."""
    *named, (rest, _) = pieces
    blank = rest[: len(rest) - len(rest.lstrip())]
    end = blank + cut(rest, SENTENCE)
    (first, job), *others = (*named, (end if end.endswith("…") else f"{end}.", None))
    return [(capital(first), job), *others]


def above(control: Control, job: Job) -> list[Job | None]:
    """Return the nearest ancestors of a job, from the top down, at most ``ABOVE``; None in place of one
    that is not visible."""
    ancestors: list[Job | None] = []
    for number in job.lineage.split(".")[:-1][-ABOVE:]:
        try:
            ancestors.append(control.queries.job(int(number)))
        except NoSuchJob:
            ancestors.append(None)
    return ancestors


def _may_upload(control: Control, job_id: int) -> bool:
    """Return whether the page offers a form for files: the caller may put some there, and no attempt is
    running."""
    try:
        control.part(Uploads).require_may_put(job_id)
    except (Refused, Forbidden):
        return False
    return True
