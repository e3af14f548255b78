"""The pages of the service show receivers with their timelines, uploads, and failures by cause.

People whose rights are limited to collections or queues see their uploads; receivers belong to no collection, so that
their pages and the failures take rights that are not limited. The entry point ``receivers`` of the group
``spinney.pages`` names ``pages``.

Specified by ``tests/apps/receivers/test_pages.py``.
"""

import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.apps.receivers import failures, settings, timeline
from spinney.apps.receivers.application import ARRIVALS, BAD_LIST, exports, reruns, syncs, uploads
from spinney.apps.receivers.database.snapshots import snapshot
from spinney.jobs import Filter, Job, State
from spinney.operations import Control, Failure, InboxUploads, RelabelJob, Role
from spinney.pages import Authenticated, Form, NavItem, Pages, run_and_redirect

NEWEST = 20
"""How many uploads the overview shows, and how many jobs of each cause the page of failures."""

pages = Pages(
    "receivers",
    "spinney.apps.receivers.pages",
    nav=[NavItem(path="", label="Receivers", icon="nodes", shown=settings.is_set_up)],
)


@pages.get("")
async def overview(request: Request, context: Authenticated) -> Response:
    """Show the receivers and the newest uploads of all kinds. People with limited rights see the uploads
    within these, and no receivers."""

    def read(control: Control) -> dict[str, Any]:
        listed = [
            job
            for kind in ARRIVALS
            for job in control.queries.jobs(
                Filter(type=kind.name, roots_only=True), limit=NEWEST, newest=True
            )
        ]
        return {
            "jobs": sorted(listed, key=lambda job: -job.id)[:NEWEST],
            "receivers": _receivers() if control.rights.everywhere else None,
            "sync": syncs.name,
            "inboxes": control.part(InboxUploads).names(uploads.name),
        }

    return pages.show(
        request,
        context,
        "overview.html",
        live="overview_now.html",
        topics=tuple(f"jobs:type={kind.name}" for kind in ARRIVALS),
        **await context.run(read),
    )


@pages.get("/receivers/{receiver}")
async def receiver_page(request: Request, context: Authenticated, receiver: str) -> Response:
    """Show the boot sessions of a receiver over time, its files, runs, and the jobs that wrote them."""

    def read(control: Control) -> dict[str, Any]:
        control.require_everywhere(Role.VIEWER, "look at receivers")
        with snapshot(_database(receiver)) as db:
            shown = timeline.read(db, now_s=time.time())
        ids = tuple({batch.job for batch in shown.batches if batch.job})
        kept = control.queries.jobs(Filter(ids=ids, states=tuple(State)), limit=len(ids)) if ids else []
        return {"timeline": shown, "kept": {job.id for job in kept}}

    return pages.show(request, context, "receiver.html", receiver=receiver, **await context.run(read))


@pages.post("/receivers/{receiver}/jobs")
async def start(context: Authenticated, receiver: str, form: Form) -> Response:
    """Start a rerun of the boot sessions that the form names, one or from the first to the last, or an export
    when it names none."""
    first, last = form.whole("first", "boot session"), form.whole("last", "boot session")

    def submit(control: Control) -> int:
        # The types take operators, too; this refuses others before they learn whether the receiver exists.
        control.require_everywhere(Role.OPERATOR, "start jobs of receivers")
        _database(receiver)
        params = {"receiver": receiver}
        sessions = {} if first is None else {"first": first, "last": first if last is None else last}
        kind = exports if first is None else reruns
        return next(iter(control.submit(kind.name, [params | sessions]).ids))

    return await run_and_redirect(
        context,
        f"{pages.prefix}/receivers/{receiver}",
        submit,
        lambda job_id: f"It has started as job {job_id}",
    )


@pages.get("/uploads/{job_id}")
async def upload_page(request: Request, context: Authenticated, job_id: int) -> Response:
    """Show an upload: which receivers were in it, what became of each, and what was put aside. A job of
    another type is answered with the status 404."""

    def read(control: Control) -> dict[str, Any]:
        upload = control.queries.job(job_id)
        if upload.type not in {kind.name for kind in ARRIVALS}:
            raise HTTPException(404, f"job {job_id} is no upload")
        children = control.queries.children(job_id)
        results = {child.id: control.queries.results(child.id) for child in children}
        return {
            "upload": upload,
            "results": control.queries.results(job_id),
            "children": [(child, results[child.id].get("detect") or {}) for child in children],
            "bad_list": BAD_LIST,
        }

    return pages.show(
        request,
        context,
        "upload.html",
        live="upload_now.html",
        topics=(f"job:{job_id}",),
        **await context.run(read),
    )


@pages.post("/uploads/{job_id}/project")
async def move(context: Authenticated, job_id: int, form: Form) -> Response:
    """Move an upload to another project, which is its collection; people of the new project see it then."""
    project = form.text("project")
    return await run_and_redirect(
        context,
        f"{pages.prefix}/uploads/{job_id}",
        lambda control: control.do(RelabelJob(job=job_id, collection=project)),
        f"The upload belongs to the project {project}",
    )


@pages.get("/failures")
async def failures_page(request: Request, context: Authenticated) -> Response:
    """Show failed jobs by cause, the newest first, with the receivers that each concerns and the newest jobs of
    each."""

    def read(control: Control) -> list[tuple[Failure, list[Job], list[str]]]:
        control.require_everywhere(Role.VIEWER, "look at the failures of receivers")
        shown = []
        for cause in failures.causes(control.queries.failures):
            jobs = control.queries.jobs(Filter(fingerprint=cause.fingerprint), limit=NEWEST, newest=True)
            shown.append(
                (cause, jobs, sorted({job.params["receiver"] for job in jobs if "receiver" in job.params}))
            )
        return shown

    return pages.show(request, context, "failures.html", causes=await context.run(read))


def _receivers() -> list[dict[str, Any]]:
    """Return the totals of each receiver, or why its database cannot be read."""
    return [
        {"receiver": receiver} | ({"fault": str(result)} if isinstance(result, sqlite3.Error) else result)
        for receiver, result in timeline.of_each(
            settings.load().data, partial(timeline.totals, now_s=time.time())
        )
    ]


def _database(receiver: str) -> Path:
    """Return the file with the database of a receiver. Only names of databases that exist are taken, so that
    no name of a request becomes part of a path. Raises HTTPException (404)."""
    config = settings.load()
    if config.database(receiver) not in timeline.database_files(config.data):
        raise HTTPException(404, f"there is no receiver {receiver}")
    return config.database(receiver)
