"""The list of jobs with its filters, and the search. Filters, sort and page are in the address, so that a list can be
kept as a link."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.bulk import verb_forms as verbs
from spinney.features.jobs import columns
from spinney.features.jobs.columns import Sort
from spinney.features.jobs.sql import EXAMINED_MAX, SORTED_MAX
from spinney.model.errors import Refused, SpinneyError
from spinney.model.jobs import JOB_ID_MAX, Filter, Job
from spinney.model.values.texts import whole_number
from spinney.service.filter_checks import require_known
from spinney.web.pages.filters import FINGERPRINT, FilterQuery, parse_filters
from spinney.web.pages.forms import page_or_part, read_coalesced
from spinney.web.pages.page_responses import number_of, redirect
from spinney.web.request_context import Authenticated, RequestContext, now_us

router = APIRouter(include_in_schema=False)

PAGE = 50
"""How many jobs a page of the list has."""
BESIDE = ("after", "sort", "page")
"""Parameters of the address that are no filters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """One page of the list of jobs, and where the next one begins."""

    jobs: Sequence[Job]
    """The jobs of this page, in the order of the list."""
    next: int | None
    """What ``after`` of the next page has to be; None: this is the last one."""
    hint: str | None
    """Why nothing matches, where a name may be mistyped; None: there is no such reason."""
    partial: bool = False
    """Whether only the newest of the matching jobs were sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterNames:
    """The names that the fields of a filter propose, each sorted, as far as the caller may see them."""

    types: Sequence[str]
    queues: Sequence[str]
    stages: Sequence[str]
    nodes: Sequence[str]
    collections: Sequence[str]
    submitters: Sequence[str]


_NOTHING = JobPage(jobs=(), next=None, hint=None)
"""The page of a list whose filter is invalid."""


@router.get("/jobs")
async def jobs(request: Request, context: Authenticated) -> Response:
    """Show the jobs that match the filters in the address.

    Only the first page follows changes, and none does whose filter and sort have to look through many jobs
    each time. The topic of its filter tells of the newest jobs alone; the counts by state, and a list that is
    sorted otherwise, also follow what the overview counts.
    """
    shown = await _shown(request, context)
    filters: FilterQuery = shown["filters"]
    if shown["first"]:
        topics: tuple[str, ...] = ()
    elif filters.countable:
        topics = (filters.topic, "overview")
    else:
        topics = (filters.topic,) if shown["sort"] is None else ()
    return page_or_part(
        request, context, "jobs", topics=topics, status=422 if filters.errors else 200, **shown
    )


@router.get("/search")
async def search(context: Authenticated, q: str = "") -> Response:
    """Redirect to the job of a number or a key, or to the list of the jobs whose message contains the
    text.

    A number is not looked up first: its page says when there is no such job. A ``#`` before it is
    ignored.
    """
    text = q.strip()
    number = whole_number(text.removeprefix("#"))
    if number is not None and number <= JOB_ID_MAX:
        return redirect(f"/jobs/{number}")
    if text:
        keyed = await context.run(lambda control: control.queries.jobs(Filter(key=text), limit=1))
        if keyed:
            return redirect(f"/jobs/{keyed[0].id}")
    return redirect(parse_filters([("message", text)], now_us()).address("/jobs"))


# --- the list ---------------------------------------------------------------------------------


async def _shown(request: Request, context: RequestContext) -> dict[str, Any]:
    """Return the values of the template. An invalid filter shows no jobs, and never those that match
    without it."""
    pairs = request.query_params.multi_items()
    filters = parse_filters(pairs, now_us(), beside=BESIDE)
    after = number_of(request.query_params.get("after", ""))
    page_number = min(number_of(request.query_params.get("page", "")), SORTED_MAX // PAGE)
    sort = columns.parse_sort(request.query_params.get("sort", ""))
    if filters.errors:
        job_page = _NOTHING
    else:
        try:
            job_page = await read_coalesced(
                request,
                context,
                ("jobs", context.principal.rights, filters.query(), sort, after, page_number),
                lambda control: _job_page(control, filters, sort, after, page_number),
            )
        except SpinneyError as error:
            if not filters.value("failure"):
                raise
            filters = replace(filters, errors={"failure": str(error)})
            job_page = _NOTHING
    sorting = {} if sort is None else {"sort": sort.text}
    query = filters.query(**sorting)
    filter_names = await _filter_names(request, context)
    saved = await context.run(lambda control: control.store.saved_filters.all(context.principal.name))
    return {
        "filters": filters,
        "job_page": job_page,
        "after": after,
        "sort": sort,
        "query": query,
        "sorted_max": SORTED_MAX,
        "examined_max": None if filters.countable else EXAMINED_MAX,
        "columns": columns.chosen(request),
        "all_columns": columns.COLUMNS,
        "headings": columns.headings(filters, sort),
        "saved": saved,
        "counts": await _counts(request, context, filters),
        "filter_names": filter_names,
        "namesakes": _namesakes(filters, filter_names),
        "verbs": verbs.usable(context.principal, filters.job_filter.states),
        "next": _next(filters, sort, job_page, page_number),
        "first": filters.address("/jobs", **sorting) if after or page_number else None,
    }


def _next(filters: FilterQuery, sort: Sort | None, job_page: JobPage, page_number: int) -> str | None:
    """Return the address of the next page; None for the last one.

    By number, a page continues after its last job, so that new jobs do not shift it. A list sorted by
    another column has no such place and is counted in pages.
    """
    if job_page.next is None:
        return None
    further: dict[str, Any] = {} if sort is None else {"sort": sort.text}
    if sort is None or sort.column == columns.OLDEST:
        further["after"] = job_page.next
    else:
        further["page"] = page_number + 1
    return filters.address("/jobs", **further)


def _job_page(
    control: Control, filters: FilterQuery, sort: Sort | None, after: int, page_number: int
) -> JobPage:
    """Read one page of the list. Where nothing matches, the hint says which name of the filter does not
    exist.

    Raises Refused for the prefix of a failure's fingerprint that is not unique or matches none; for a whole fingerprint
    that matches none the page is empty, with a hint.
    """
    try:
        job_filter = filters.resolve(control)
    except Refused:
        if len(filters.value("failure")) != FINGERPRINT:
            raise
        # The form that retries all jobs with this failure leads back here, and so do links that people have kept.
        return replace(_NOTHING, hint="no failed job has this failure any more")
    if sort is not None and sort.column != columns.OLDEST:
        return _sorted_page(control, job_filter, sort, page_number, is_indexed=filters.countable)
    jobs = control.queries.jobs(job_filter, after=after, limit=PAGE + 1, newest=sort is None)
    hint = None
    if not jobs and filters.any:
        try:
            require_known(control.store, job_filter, labels=False, within=control.rights.within)
        except SpinneyError as error:
            hint = str(error)
    return JobPage(
        jobs=jobs[:PAGE],
        next=jobs[PAGE - 1].id if len(jobs) > PAGE else None,
        hint=hint,
    )


def _sorted_page(
    control: Control, job_filter: Filter, sort: Sort, page_number: int, *, is_indexed: bool
) -> JobPage:
    """Read one page of a list that is sorted by a column other than the number.

    ``is_indexed``: whether an index answers the filter. A job that has been deleted meanwhile is left
    out, so a page may be shorter although others follow.
    """
    order = control.store.job_lists.sorted_ids(
        control.queries.within(job_filter),
        sort.column,
        descending=sort.descending,
        offset=page_number * PAGE,
        limit=PAGE + 1,
        now_us=control.clock(),
        is_indexed=is_indexed,
    )
    by_id = {job.id: job for job in control.queries.jobs(Filter(ids=tuple(order.ids[:PAGE])), limit=PAGE)}
    return JobPage(
        jobs=[by_id[job_id] for job_id in order.ids if job_id in by_id],
        next=order.ids[-1] if len(order.ids) > PAGE else None,
        hint=None,
        partial=order.partial,
    )


async def _filter_names(request: Request, context: RequestContext) -> FilterNames:
    """Return the names that the filter proposes, as far as the caller may see them.

    They are kept for some seconds for callers with the same limits. Only a caller without limits gets the
    labels of all jobs by the index alone; for others the visible jobs decide.
    """

    def call(control: Control) -> FilterNames:
        types, named = control.queries.types(), control.queries.names
        is_unlimited = control.rights.everywhere
        lists = control.store.job_lists
        return FilterNames(
            types=sorted(types),
            queues=[queue.queue for queue in control.queries.queues()],
            stages=sorted({stage.name for spec in types.values() for stage in spec.stages}),
            nodes=sorted({node.node for node in control.queries.nodes()}),
            collections=lists.names("collection") if is_unlimited else sorted(named("collection")),
            submitters=lists.names("submitter") if is_unlimited else sorted(named("submitter")),
        )

    key = context.principal.rights.within
    return await request.app.state.filter_names.get(key, lambda: context.run(call))  # type: ignore[no-any-return]


def _namesakes(filters: FilterQuery, names: FilterNames) -> Sequence[tuple[str, str]]:
    """Return what has the name for which messages were searched (a type, a queue, …), as label and filter.

    The search field looks through messages, but somebody who enters the name of a type may want its jobs:
    the page offers these filters beside the list.
    """
    if filters.values.keys() != {"message"}:
        return ()
    text = filters.value("message")
    names_by_label = {
        "of type": ("type", names.types),
        "in queue": ("queue", names.queues),
        "in stage": ("stage", names.stages),
        "of node": ("node", names.nodes),
        "of collection": ("collection", names.collections),
        "of submitter": ("submitter", names.submitters),
    }
    return [(label, name) for label, (name, values) in names_by_label.items() if text in values]


async def _counts(
    request: Request, context: RequestContext, filters: FilterQuery
) -> Mapping[str, int] | None:
    """Return how many jobs are in each state, without the filter by state; None where counting would take
    long.

    They stand beside the choice of states, so they must not depend on what is chosen there.
    """
    if filters.errors or not filters.countable:
        return None
    in_any_state: Filter = replace(filters.job_filter, states=None)
    key = ("counts", context.principal.rights.within, in_any_state)

    def call(control: Control) -> dict[str, int]:
        return context.stores.stats_cache.get(
            filters.topic, key, lambda: dict(control.queries.counts(in_any_state))
        )

    return await read_coalesced(request, context, key, call)
