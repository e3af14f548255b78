"""Failures by cause."""

from typing import Annotated

from fastapi import Path, Query

from spinney.commands.fields import Word
from spinney.control import Control
from spinney.model.errors import NoSuch
from spinney.model.jobs import Filter
from spinney.model.rights.operators import FailureGroups
from spinney.schemas import FailureDetails
from spinney.web.api.job_views import shown
from spinney.web.api.json_routes import routes
from spinney.web.api.not_found import missing_is_404
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("failures")
GROUPS_MAX = 10_000
NEWEST = 10


@router.get("/failures", summary="List failures by cause")
async def list_failures(
    context: Authenticated,
    type_: Annotated[Word | None, Query(alias="type", description="Only of this job type.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="How many causes.")] = 100,
) -> FailureGroups:
    """Jobs that failed by an attempt of their own, grouped by cause, the largest group first."""
    return await context.run(lambda control: control.queries.failures(type_, limit))


@router.get("/failures/{fingerprint}", summary="Show a cause of failures", responses=documented(404))
async def show_failure(
    fingerprint: Annotated[
        str, Path(pattern=r"^[0-9a-fA-F]{1,16}$", description="Its first digits are enough.")
    ],
    context: Authenticated,
) -> FailureDetails:
    """What it is, and the newest jobs that stand failed with it."""

    def call(control: Control) -> FailureDetails:
        look = control.queries
        with missing_is_404():
            mark = look.fingerprint(fingerprint)
        groups = look.failures(limit=GROUPS_MAX).groups
        found = next((group for group in groups if group.fingerprint == mark), None)
        if found is None:
            raise NoSuch(f"no failed job has the failure {mark} any more; /failures lists what there is")
        newest = look.jobs(Filter(fingerprint=mark), limit=NEWEST, newest=True)
        return FailureDetails(failure=found, newest=shown(control, newest))

    return await context.run(call)
