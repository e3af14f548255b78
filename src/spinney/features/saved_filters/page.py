"""The forms by which users save and remove filters of the list of jobs."""

from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.model.errors import Refused, UsageError
from spinney.web.pages.filters import parse_filters
from spinney.web.pages.forms import Form, run_and_redirect
from spinney.web.request_context import Authenticated, now_us

router = APIRouter(include_in_schema=False)

NAME_MAX = 60
"""The most characters of a name."""
QUERY_MAX = 4_000
"""The most characters of a filter's query string."""
BESIDE = ("sort",)
"""Names in the query of a saved filter that are no filters."""


@router.post("/jobs/saved")
async def save(context: Authenticated, form: Form) -> Response:
    """Save the filter of a list under a name, or remove one (``remove``), and redirect to the list with
    that filter.

    It is stored as it was parsed, so that nothing else than names and values of a query can be in it.
    """
    query, name, owner = form.text("query"), " ".join(form.text("name").split()), context.principal.name
    pairs = parse_qsl(query[:QUERY_MAX])
    back = f"/jobs?{urlencode(pairs)}" if pairs else "/jobs"
    if form.text("remove"):
        return await run_and_redirect(
            context,
            back,
            lambda control: control.store.saved_filters.remove(owner, name),
            f"The filter “{name}” is removed",
        )

    def call(control: Control) -> None:
        if control.by_configuration:
            raise Refused("filters are saved for users who have an account")
        if not name or len(name) > NAME_MAX or not name.isprintable():
            raise UsageError(f"give the filter a name of 1 to {NAME_MAX} characters")
        if len(query) > QUERY_MAX or parse_filters(pairs, now_us(), beside=BESIDE).errors:
            raise UsageError("this filter is not valid; correct it before you save it")
        control.store.saved_filters.save(owner, name, urlencode(pairs))

    return await run_and_redirect(context, back, call, f"The filter is saved as “{name}”")
