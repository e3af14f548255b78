"""A job among its relatives: above it, below it, what it needs and what needs it.

Relatives are grouped by type and state, so that the picture stays small however many there are. A group opens
to its jobs, some at a time, and each of these to the groups below it. Without scripts every step is a page of
its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.jobs.job_page import JobId, above
from spinney.features.jobs.relatives_sql import RELATIVES_MAX, Group, Relation
from spinney.model.jobs import JOB_ID_MAX, Filter, Job
from spinney.model.states import State
from spinney.web.pages.forms import page_or_part
from spinney.web.pages.page_responses import with_query
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

MEMBERS = 25
"""How many jobs of a group are shown at a time."""

_TITLES = {Relation.SUBJOBS: "Subjobs", Relation.NEEDS: "Needs", Relation.NEEDED_BY: "Needed by"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relatives:
    """The relatives of a job in one relation."""

    job_id: int
    relation: Relation
    title: str
    """The heading."""
    groups: Sequence[Group]
    """The relatives by type and state."""
    total: int
    """How many relatives were counted."""
    partial: bool
    """Whether there are more than were counted (``RELATIVES_MAX``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """One page of the jobs of a group in a tree."""

    job_id: int
    jobs: Sequence[Job]
    """The jobs, by number."""
    parents: frozenset[int]
    """Which of them have subjobs."""
    next: str | None
    """The address of the next ones; None: these are the last."""


@router.get("/jobs/{job}/tree")
async def job_tree(request: Request, context: Authenticated, job: JobId) -> Response:
    """Show what is above and below a job, what it needs and what needs it; each relation as groups with their
    counts."""

    def read(control: Control) -> dict[str, Any]:
        shown = control.queries.job(job)
        relatives = [_relatives(context, control, job, relation) for relation in Relation]
        return {"job": shown, "above": above(control, shown), "relatives": relatives}

    shown = await context.run(read)
    topics = (f"job:{job}", f"tree:{job}")
    return page_or_part(request, context, "job_tree", topics=topics, counted_max=RELATIVES_MAX, **shown)


@router.get("/jobs/{job}/tree/groups")
async def groups(request: Request, context: Authenticated, job: JobId) -> Response:
    """Show the subjobs of a job by type and state, as the next level of a picture that is opened step by
    step."""
    shown = await context.run(lambda control: _relatives(context, control, job, Relation.SUBJOBS))
    return page_or_part(request, context, "job_groups", relatives=shown, counted_max=RELATIVES_MAX)


@router.get("/jobs/{job}/tree/members")
async def members(
    request: Request,
    context: Authenticated,
    job: JobId,
    state: State,
    type_: Annotated[str, Query(alias="type", max_length=200)],
    relation: Relation = Relation.SUBJOBS,
    after: Annotated[int, Query(ge=0, le=JOB_ID_MAX)] = 0,
) -> Response:
    """Show one page of the jobs of a group, the oldest first; the next page continues after the last one."""

    def read(control: Control) -> Members:
        control.queries.job(job)  # raises NoSuchJob for one that is not visible
        where = _filter(control, job, relation, type_, state)
        jobs = control.queries.jobs(where, after=after, limit=MEMBERS + 1)
        shown = jobs[:MEMBERS]
        query = {"relation": relation, "type": type_, "state": state}
        more = len(jobs) > MEMBERS
        return Members(
            job_id=job,
            jobs=shown,
            parents=frozenset(control.store.relatives.parents([member.id for member in shown])),
            next=with_query(f"/jobs/{job}/tree/members", **query, after=shown[-1].id) if more else None,
        )

    return page_or_part(request, context, "job_members", members=await context.run(read))


def _relatives(context: RequestContext, control: Control, job_id: int, relation: Relation) -> Relatives:
    """Read the relatives of a job in one relation, grouped. Raises NoSuchJob.

    The counts may be a little old where they take long; they are shared by callers with the same limits.
    """
    control.queries.job(job_id)  # raises NoSuchJob for one that is not visible
    within = control.queries.within(Filter()).within
    grouped, partial = context.stores.stats_cache.get(
        f"tree:{job_id}",
        (relation, within),
        lambda: control.store.relatives.groups(job_id, relation, within),
    )
    return Relatives(
        job_id=job_id,
        relation=relation,
        title=_TITLES[relation],
        groups=grouped,
        total=sum(group.jobs for group in grouped),
        partial=partial,
    )


def _filter(control: Control, job_id: int, relation: Relation, type_: str, state: State) -> Filter:
    """Return the filter for the jobs of a group. Only the first ``RELATIVES_MAX`` needs are looked at."""
    if relation is Relation.SUBJOBS:
        return Filter(parent_id=job_id, superseded=False, type=type_, states=(state,))
    return Filter(ids=tuple(control.store.relatives.ids(job_id, relation)), type=type_, states=(state,))
