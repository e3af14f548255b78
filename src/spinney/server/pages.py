"""The pages: rendered whole on the server, readable without any script; htmx and event streams make them live.

A page is a route that calls ``control`` once (``context.run``), passes the result to a template, and watches topics of
``spinney.web.events``: when one has changed, the page's script fetches the parts that show it and merges them into the
page, so that focus, scroll position and unfolded details stay. A form is a POST that runs a command and redirects to a
page that shows its result. So each page works without the script, too; then it does not update by itself.

The pages are in the features; ``spinney.web.pages`` has what they share.
"""

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI

from spinney.features.accounts import account_page, one_time_links, sign_in_page, tokens_page, users_page
from spinney.features.audit import page as audit
from spinney.features.bridges import page as bridges
from spinney.features.bulk.page import BulkRuns
from spinney.features.failures import page as failures
from spinney.features.holds import page as holds
from spinney.features.inboxes import page as inboxes
from spinney.features.jobs import columns, verbs_page
from spinney.features.jobs import job_page as job
from spinney.features.jobs import list_page as jobs
from spinney.features.jobs import tree_page as job_tree
from spinney.features.locks import page as locks
from spinney.features.nodes import node_page as node
from spinney.features.nodes import page as nodes
from spinney.features.postmortem import page as postmortem
from spinney.features.queues import page as queues
from spinney.features.retention import page as retention
from spinney.features.saved_filters import page as saved_filters
from spinney.features.schedules import page as schedules
from spinney.features.stats import activity_page as activity
from spinney.features.stats import page as overview
from spinney.features.submission import batch_page as batch
from spinney.features.submission import batches_page as batches
from spinney.features.submission import page as submit
from spinney.features.webhooks import page as webhooks
from spinney.pages import Pages
from spinney.server import api_page
from spinney.web.pages import error_pages, page_responses, static_files
from spinney.web.pages.request_coalescer import RequestCoalescer
from spinney.web.timed_cache import TimedCache

FILTER_NAMES_S = 10.0
"""How long the names that filters propose may be old, in seconds."""


def add_to(app: FastAPI, of_packages: Sequence[Pages] = ()) -> None:
    """Add all pages, and those of installed packages. This is to be called after ``problems.add_to``, whose error
    handlers it extends."""
    page_responses.add_to(app, tuple(of_packages))
    app.state.filter_names = TimedCache(FILTER_NAMES_S)
    app.state.coalesced = RequestCoalescer()
    app.state.runs = BulkRuns()
    app.state.beside.append(app.state.runs)
    for part in (static_files.router, *routers(), *(pages.router for pages in of_packages)):
        app.router.routes.extend(part.routes)  # as they are: include_router would make a copy of each
    error_pages.add_to(app)


def routers() -> list[APIRouter]:
    """Return the routers of the pages. If two routes match an address, the earlier one counts."""
    return [
        overview.router,
        activity.router,
        jobs.router,
        verbs_page.router,
        columns.router,
        saved_filters.router,
        job.router,
        job_tree.router,
        postmortem.router,
        batches.router,
        batch.router,
        failures.router,
        submit.router,
        schedules.router,
        bridges.router,
        inboxes.router,
        queues.router,
        nodes.router,
        node.router,
        holds.router,
        locks.router,
        audit.router,
        retention.router,
        users_page.router,
        tokens_page.router,
        webhooks.router,
        api_page.router,
        sign_in_page.router,
        one_time_links.router,
        account_page.router,
    ]
