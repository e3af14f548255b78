"""Jobs, to look at."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query

from spinney.commands.fields import PAGE, PAGE_MAX
from spinney.commands.job_details import job_details
from spinney.commands.job_filter import JobFilter
from spinney.control import Control
from spinney.model.jobs import Attempt
from spinney.model.rights.operators import Explanation
from spinney.model.values.lists import All, Page
from spinney.schemas import JobDetails
from spinney.web.api.job_filter import JobListRequest
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import After, JobId, Limit, page
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("jobs")
NOT_THERE = documented(404)


@router.get("/jobs", summary="List jobs", responses=documented(404, 409))
async def list_jobs(which: Annotated[JobListRequest, Query()], context: Authenticated) -> Page[JobDetails]:
    """Jobs that fit all of the filters, the newest first. An unknown filter is refused, so that a typing error lists
    nothing rather than everything."""

    def call(control: Control) -> Page[JobDetails]:
        found = control.queries.jobs(
            which.filter(control), after=which.after, limit=which.limit, newest=which.newest
        )
        return page(job_details(control, found), which.limit, found[-1].id if found else None)

    return await context.run(call)


@router.get("/jobs/count", summary="Count jobs by state", responses=documented(404, 409))
async def count_jobs(which: Annotated[JobFilter, Query()], context: Authenticated) -> Mapping[str, int]:
    """How many jobs that fit stand in each state, exactly."""
    return await context.run(lambda control: control.queries.counts(which.filter(control)))


@router.get("/jobs/{job}", summary="Show a job", responses=NOT_THERE)
async def show_job(job: JobId, context: Authenticated) -> JobDetails:
    """Where it stands, and which verbs are allowed now. Parameters that the type declares secret are masked."""
    return await context.run(lambda control: job_details(control, [control.queries.job(job)])[0])


@router.get("/jobs/{job}/tree", summary="Show a job and all below it", responses=NOT_THERE)
async def show_tree(
    job: JobId,
    context: Authenticated,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many at most.")] = PAGE_MAX,
) -> All[JobDetails]:
    """In depth-first order, the job itself first. Of larger trees: `/jobs?root=` in pages."""
    return await context.run(
        lambda control: All(items=job_details(control, control.queries.tree(job, limit=limit)))
    )


@router.get("/jobs/{job}/children", summary="List the direct subjobs of a job", responses=NOT_THERE)
async def list_children(
    job: JobId, context: Authenticated, after: After = 0, limit: Limit = PAGE
) -> Page[JobDetails]:
    """Those that count: not what a stage bore that ran again since."""

    def call(control: Control) -> Page[JobDetails]:
        found = control.queries.children(job, after=after, limit=limit)
        # Those out of sight are left out, so that a page may be short though others follow.
        return Page(items=job_details(control, found), next=found[-1].id if found else None)

    return await context.run(call)


@router.get("/jobs/{job}/attempts", summary="Show the history of a job's stages", responses=NOT_THERE)
async def list_attempts(job: JobId, context: Authenticated) -> All[Attempt]:
    """Every attempt of every stage, oldest first; one that runs is last, without an outcome."""
    return await context.run(lambda control: All(items=control.queries.attempts(job)))


@router.get("/jobs/{job}/data", summary="Show what a job keeps", responses=NOT_THERE)
async def show_data(job: JobId, context: Authenticated) -> Mapping[str, Any]:
    """`job.data`: what its stages and those of its subjobs have kept in it, by name."""
    return await context.run(lambda control: control.queries.data(job))


@router.get("/jobs/{job}/results", summary="Show the results of a job's stages", responses=NOT_THERE)
async def show_results(job: JobId, context: Authenticated) -> Mapping[str, Any]:
    """The values of the stages that have passed, by stage."""
    return await context.run(lambda control: control.queries.results(job))


@router.get("/jobs/{job}/explain", summary="Say why a job is not running", responses=NOT_THERE)
async def explain_job(job: JobId, context: Authenticated) -> Explanation:
    """One exact sentence, a word for programs (`cause`), and when the job is expected to start if that can be known."""
    return await context.run(lambda control: control.queries.explain(job))
