"""``/api/v1``: one module a group of routes, each one call of ``control``.

Lists are pages: ``{"items": […], "next": …}``, where ``next`` is what ``after`` of the next page has to be, or null.
Times are microseconds since 1970 UTC, in fields that end in ``_us``, as in ``--json`` of the command line.
"""

from fastapi import FastAPI

from spinney.server.api import (
    accounts,
    audit,
    batches,
    bulk,
    external,
    failures,
    files,
    holds,
    jobs,
    locks,
    nodes,
    openapi,
    queues,
    schedules,
    store_info,
    submissions,
    verbs,
    webhooks,
)
from spinney.server.files import spool

PARTS = (
    submissions.router,
    bulk.router,
    jobs.router,
    verbs.router,
    files.router,
    batches.router,
    failures.router,
    queues.router,
    nodes.router,
    holds.router,
    locks.router,
    schedules.router,
    store_info.stats,
    store_info.types,
    store_info.retention,
    webhooks.router,
    external.router,
    accounts.router,
    store_info.me,
    audit.router,
)


def add_to(app: FastAPI) -> None:
    """All routes that there are, and what they need beside."""
    app.state.beside.append(spool.clearing(app.state.folders))
    for part in (*PARTS, openapi.router):
        app.router.routes.extend(part.routes)
