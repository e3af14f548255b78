"""The columns of the list of jobs: which ones a user has chosen, and by which one the list is sorted.

The choice is kept in a cookie, since it is a matter of one browser; the sort is in the address, so that it is
part of a link. Both are names that are compared with the known ones, and anything else is ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.features.jobs.sql import SORT_KEYS
from spinney.web.pages.filters import FilterQuery
from spinney.web.pages.forms import Form
from spinney.web.pages.page_responses import redirect
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)

COOKIE = "spinney_columns"
"""The cookie with the chosen columns: their names, joined by dots."""
COOKIE_S = 31_536_000
"""How long the browser keeps it, in seconds: a year."""
COLUMNS: Mapping[str, str] = {
    "type": "Type",
    "subject": "Subject",
    "stage": "Stage",
    "queue": "Queue",
    "collection": "Collection",
    "submitter": "Submitter",
    "node": "Node",
    "priority": "Priority",
    "created": "Created",
    "started": "Started",
    "took": "Took",
    "ended": "Ended",
    "message": "Message",
}
"""Their headings by name, in their order. Number and state are always shown."""
DEFAULT = ("type", "subject", "stage", "created", "took", "ended", "message")
"""The columns of those who have chosen none."""
OLDEST = "job"
"""The sort by which the list begins with the oldest jobs; without a sort it begins with the newest."""
_FALLS = ("took", "ended", "started")
"""Columns whose largest values come first at the first click on their heading: one looks for the longest or
the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """The column by which a list of jobs is sorted, and the direction."""

    column: str
    """A key of ``SORT_KEYS``, or ``OLDEST``."""
    descending: bool
    """Whether the largest values come first."""

    @property
    def text(self) -> str:
        """The value of ``sort`` in the address."""
        return f"-{self.column}" if self.descending else self.column


def parse_sort(text: str) -> Sort | None:
    """Return the sort that the value of ``sort`` in an address asks for, where a ``-`` in front means
    descending.

    None for the default (newest first) and for text that is no sort, such as one from an old link.
    """
    column = text.removeprefix("-")
    if column not in SORT_KEYS and text != OLDEST:
        return None
    return Sort(column=column, descending=text.startswith("-"))


def headings(filters: FilterQuery, sort: Sort | None) -> Mapping[str, tuple[str, str]]:
    """Return, by column, the address that sorts by it, and the direction in which the list is sorted by
    it now.

    The address turns the direction round if the list is sorted by that column already. The direction is
    ``ascending``, ``descending`` or empty. Filters stay in the address; the page does not, so that a new
    order begins at its first page.
    """
    links: dict[str, tuple[str, str]] = {}
    for column in SORT_KEYS:
        if sort is not None and sort.column == column:
            descending, direction = not sort.descending, "descending" if sort.descending else "ascending"
        else:
            descending, direction = column in _FALLS, ""
        target = Sort(column=column, descending=descending).text
        links[column] = (filters.address("/jobs", sort=target), direction)
    if sort is not None and sort.column == OLDEST:
        links[OLDEST] = (filters.address("/jobs"), "ascending")
    else:
        links[OLDEST] = (filters.address("/jobs", sort=OLDEST), "descending" if sort is None else "")
    links["created"] = links[OLDEST]  # a job with a higher number was created later
    return links


def chosen(request: Request) -> Sequence[str]:
    """Return the columns that the user's browser remembers, in the order of ``COLUMNS``, else those by
    default."""
    names = request.cookies.get(COOKIE, "").split(".")
    remembered = [name for name in COLUMNS if name in names]
    return remembered or DEFAULT


@router.post("/jobs/columns")
async def choose(context: Authenticated, form: Form) -> Response:
    """Remember the chosen columns in a cookie; none chosen, or ``reset``: those by default. Redirects to
    the list as it was."""
    query = form.text("query")
    response = redirect(f"/jobs?{query}" if query.isprintable() and query else "/jobs")
    names = [name for name in COLUMNS if name in form.all("column")]
    if form.text("reset") or not names:
        response.delete_cookie(COOKIE, samesite="lax")
    else:
        response.set_cookie(COOKIE, ".".join(names), max_age=COOKIE_S, samesite="lax", httponly=True)
    return response
