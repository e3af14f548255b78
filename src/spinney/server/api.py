"""``/api/v1``: the routes of all features, made of their commands or declared in their ``api``.

Lists are pages: ``{"items": […], "next": …}``, where ``next`` is what ``after`` of the next page has to be, or null.
Times are microseconds since 1970 UTC, in fields that end in ``_us``, as in ``--json`` of the command line.
"""

from collections.abc import Mapping, Sequence
from types import ModuleType

from fastapi import FastAPI

from spinney.commands import Command, job_queries
from spinney.features.accounts import commands as accounts
from spinney.features.audit import commands as audit
from spinney.features.bridges import commands as bridges
from spinney.features.bulk import commands as bulk
from spinney.features.collections import commands as collections
from spinney.features.doctor import commands as doctor
from spinney.features.explain import commands as explain
from spinney.features.external import api as external_output
from spinney.features.external import commands as external
from spinney.features.failures import commands as failures
from spinney.features.files import api as files
from spinney.features.holds import commands as holds
from spinney.features.homes import commands as homes
from spinney.features.inboxes import api as inbox_uploads
from spinney.features.inboxes import commands as inboxes
from spinney.features.jobs import commands as jobs
from spinney.features.locks import commands as locks
from spinney.features.nodes import commands as nodes
from spinney.features.queues import commands as queues
from spinney.features.retention import commands as retention
from spinney.features.schedules import commands as schedules
from spinney.features.stacks import commands as stacks
from spinney.features.stats import commands as stats
from spinney.features.submission import api as submissions
from spinney.features.submission.commands import ListBatches, ListObjects, ShowBatch
from spinney.features.types import commands as types
from spinney.features.webhooks import commands as webhooks
from spinney.schemas import Me
from spinney.server import openapi
from spinney.web.api.command_routes import command_routes
from spinney.web.api.json_routes import routes
from spinney.web.files import spool
from spinney.web.request_context import Authenticated


def _of(*modules: ModuleType) -> Sequence[type[Command]]:
    """Return the commands that these modules define, in their order, without those whose names begin with an
    underscore, which are bases of others."""
    return [
        kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Command) and not name.startswith("_")
        if kind.__module__ == module.__name__
    ]


COMMANDS: Mapping[str, Sequence[type[Command]]] = {
    "jobs": _of(explain, job_queries, stacks),
    "batches": (ListBatches, ShowBatch, ListObjects),
    "failures": _of(failures),
    "verbs": _of(bulk, jobs, collections),
    "doctor": _of(doctor),
    "homes": _of(homes),
    "queues": _of(queues),
    "nodes": _of(nodes),
    "holds": _of(holds),
    "locks": _of(locks),
    "schedules": _of(schedules),
    "inboxes": _of(inboxes),
    "bridges": _of(bridges),
    "retention": _of(retention),
    "webhooks": _of(webhooks),
    "accounts": _of(accounts),
    "audit": _of(audit),
    "types": _of(types),
    "stats": _of(stats),
    "external": _of(external),
}
"""The commands by their group in the OpenAPI document: all commands of each module, but of the submission module only
those that read batches, because the routes that submit jobs are written by hand."""

me = routes("accounts")


@me.get("/me", summary="Show the caller")
async def show_me(context: Authenticated) -> Me:
    """Your name, how you signed in, and your rights."""
    return Me(name=context.principal.name, how=context.principal.how, rights=context.principal.rights)


PARTS = (
    submissions.router,
    files.router,
    *(command_routes(tag, commands) for tag, commands in COMMANDS.items()),
    inbox_uploads.router,
    external_output.router,
    me,
)
"""The routers of the API, in the order in which addresses are compared."""


def add_to(app: FastAPI) -> None:
    """Add all routes to the application, and the background tasks that they need."""
    app.state.beside.append(spool.clearing(app.state.folders))
    for part in (*PARTS, openapi.router):
        app.router.routes.extend(part.routes)
