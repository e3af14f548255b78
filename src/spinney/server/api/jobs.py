"""Jobs, to look at."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query

from spinney.answers import JobShown
from spinney.control import Control
from spinney.model.holds import Hold
from spinney.model.jobs import Attempt
from spinney.model.operators import Explanation
from spinney.server.api.parsing import routes
from spinney.server.api.shapes import PAGE, PAGE_MAX, After, All, JobId, Limit, Page, page
from spinney.server.api.showing import one, shown
from spinney.server.api.which import Listing, Which
from spinney.server.asking import Asked
from spinney.server.problems import documented

router = routes("jobs")
NOT_THERE = documented(404)


@router.get("/jobs", summary="List jobs", responses=documented(404, 409))
async def list_jobs(which: Annotated[Listing, Query()], hands: Asked) -> Page[JobShown]:
    """Jobs that fit all of the filters, the newest first. An unknown filter is refused, so that a typing error lists
    nothing rather than everything."""

    def call(control: Control) -> Page[JobShown]:
        found = control.look.jobs(
            which.filter(control), after=which.after, limit=which.limit, newest=which.newest
        )
        return page(shown(control, found), which.limit, found[-1].id if found else None)

    return await hands.run(call)


@router.get("/jobs/count", summary="Count jobs by state", responses=documented(404, 409))
async def count_jobs(which: Annotated[Which, Query()], hands: Asked) -> Mapping[str, int]:
    """How many jobs that fit stand in each state, exactly."""
    return await hands.run(lambda control: control.look.counts(which.filter(control)))


@router.get("/jobs/{job}", summary="Show a job", responses=NOT_THERE)
async def show_job(job: JobId, hands: Asked) -> JobShown:
    """Where it stands, and which verbs are allowed now. Parameters that the type declares secret are masked."""
    return await hands.run(lambda control: one(control, job))


@router.get("/jobs/{job}/tree", summary="Show a job and all below it", responses=NOT_THERE)
async def show_tree(
    job: JobId,
    hands: Asked,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many at most.")] = PAGE_MAX,
) -> All[JobShown]:
    """In depth-first order, the job itself first. Of larger trees: `/jobs?root=` in pages."""
    return await hands.run(lambda control: All(items=shown(control, control.look.tree(job, limit=limit))))


@router.get("/jobs/{job}/children", summary="List the direct subjobs of a job", responses=NOT_THERE)
async def list_children(job: JobId, hands: Asked, after: After = 0, limit: Limit = PAGE) -> Page[JobShown]:
    """Those that count: not what a stage bore that ran again since."""

    def call(control: Control) -> Page[JobShown]:
        found = control.look.children(job, after=after, limit=limit)
        # Those out of sight are left out, so that a page may be short though others follow.
        return Page(items=shown(control, found), next=found[-1].id if found else None)

    return await hands.run(call)


@router.get("/jobs/{job}/attempts", summary="Show the history of a job's stages", responses=NOT_THERE)
async def list_attempts(job: JobId, hands: Asked) -> All[Attempt]:
    """Every attempt of every stage, oldest first; one that runs is last, without an outcome."""
    return await hands.run(lambda control: All(items=control.look.attempts(job)))


@router.get("/jobs/{job}/data", summary="Show what a job keeps", responses=NOT_THERE)
async def show_data(job: JobId, hands: Asked) -> Mapping[str, Any]:
    """`job.data`: what its stages and those of its subjobs have kept in it, by name."""
    return await hands.run(lambda control: control.look.data(job))


@router.get("/jobs/{job}/results", summary="Show the results of a job's stages", responses=NOT_THERE)
async def show_results(job: JobId, hands: Asked) -> Mapping[str, Any]:
    """The values of the stages that have passed, by stage."""
    return await hands.run(lambda control: control.look.results(job))


@router.get("/jobs/{job}/explain", summary="Say why a job is not running", responses=NOT_THERE)
async def explain_job(job: JobId, hands: Asked) -> Explanation:
    """One exact sentence, a word for programs (`cause`), and when the job is expected to start if that can be known."""
    return await hands.run(lambda control: control.look.explain(job))


@router.get("/jobs/{job}/holds", summary="List the holds that lie on a job", responses=NOT_THERE)
async def list_job_holds(job: JobId, hands: Asked) -> All[Hold]:
    """Those that cover it, oldest first."""
    return await hands.run(lambda control: All(items=control.look.holds_on(job)))
