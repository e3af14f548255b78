"""The pages: made here, whole, readable without any script; htmx and event streams make them live.

A page is a route that asks ``control`` once (``context.run``), hands what it got to a template, and watches topics of
``spinney.server.events``: when one has changed, the page's script asks for the parts that show it and lays them over
what is there, so that focus, scroll and what is unfolded stay. A form is a POST that calls the verb and leads to a page
that tells what became of it. So each page works without the script, too; only then nothing moves by itself.

``rendering`` templates and the frame · ``formatting`` numbers and times for people · ``charts`` small pictures ·
``error_pages`` errors as pages · ``static_files`` what the browser loads · the others a page or a few each.
"""

from fastapi import APIRouter, FastAPI

from spinney.server.ui import (
    account,
    api_page,
    audit,
    batch,
    batches,
    error_pages,
    failures,
    holds,
    job,
    jobs,
    locks,
    nodes,
    one_time_links,
    overview,
    queues,
    rendering,
    schedules,
    sign_in,
    static_files,
    submit,
    tokens,
    users,
    webhooks,
)
from spinney.server.ui.bulk_runs import BulkRuns
from spinney.server.ui.coalescing import RequestCoalescer
from spinney.server.ui.shared_cache import SharedCache


def add_to(app: FastAPI) -> None:
    """All pages. To be called behind what answers for errors."""
    rendering.add_to(app)
    app.state.shared = SharedCache()
    app.state.coalesced = RequestCoalescer()
    app.state.runs = BulkRuns()
    app.state.beside.append(app.state.runs)
    for part in (static_files.router, *routers()):
        app.router.routes.extend(part.routes)  # as they are: to include them would make each anew
    error_pages.add_to(app)


def routers() -> list[APIRouter]:
    """The pages' routes."""
    return [
        overview.router,
        jobs.router,
        job.router,
        batches.router,
        batch.router,
        failures.router,
        submit.router,
        schedules.router,
        queues.router,
        nodes.router,
        holds.router,
        locks.router,
        audit.router,
        users.router,
        tokens.router,
        webhooks.router,
        api_page.router,
        sign_in.router,
        one_time_links.router,
        account.router,
    ]
