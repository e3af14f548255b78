"""Failures by cause."""

from typing import Annotated

from fastapi import Path, Query

from spinney.answers import FailureShown
from spinney.control import Control
from spinney.model.errors import NoSuch
from spinney.model.jobs import Filter
from spinney.model.operators import FailureGroups
from spinney.server.api.missing import not_there
from spinney.server.api.parsing import routes
from spinney.server.api.shapes import Word
from spinney.server.api.showing import shown
from spinney.server.asking import Asked
from spinney.server.problems import documented

router = routes("failures")
GROUPS_MAX = 10_000
NEWEST = 10


@router.get("/failures", summary="List failures by cause")
async def list_failures(
    hands: Asked,
    type_: Annotated[Word | None, Query(alias="type", description="Only of this job type.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="How many causes.")] = 100,
) -> FailureGroups:
    """Jobs that stand failed by an attempt of their own, in groups of the same cause, the largest first."""
    return await hands.run(lambda control: control.look.failures(type_, limit))


@router.get("/failures/{fingerprint}", summary="Show a cause of failures", responses=documented(404))
async def show_failure(
    fingerprint: Annotated[
        str, Path(pattern=r"^[0-9a-fA-F]{1,16}$", description="Its first digits are enough.")
    ],
    hands: Asked,
) -> FailureShown:
    """What it is, and the newest jobs that stand failed with it."""

    def call(control: Control) -> FailureShown:
        look = control.look
        with not_there():
            mark = look.fingerprint(fingerprint)
        groups = look.failures(limit=GROUPS_MAX).groups
        found = next((group for group in groups if group.fingerprint == mark), None)
        if found is None:
            raise NoSuch(f"no job stands failed with {mark} any more; /failures lists what there is")
        newest = look.jobs(Filter(fingerprint=mark), limit=NEWEST, newest=True)
        return FailureShown(failure=found, newest=shown(control, newest))

    return await hands.run(call)
