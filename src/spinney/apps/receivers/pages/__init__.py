"""The pages of the service: receivers with their timelines, uploads, and failures by cause.

People whose rights are limited to collections or queues see their uploads; receivers belong to no collection, so that
their pages and the failures take rights that are not limited."""

import sqlite3
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.apps.receivers import failures, settings, timeline
from spinney.apps.receivers.application import MADE, exports, reruns, syncs, uploads
from spinney.apps.receivers.database import ReceiverDatabase
from spinney.errors import Forbidden
from spinney.jobs import Filter, Job
from spinney.operations import Control, Failure, RelabelJob, Role
from spinney.pages import Authenticated, Form, NavItem, Pages, RequestContext, run_and_redirect

NEWEST = 20
COUNTED = ("files", "sessions", "runs", "hits")

pages = Pages(
    "receivers", "spinney.apps.receivers.pages", nav=[NavItem(path="", label="Receivers", icon="nodes")]
)


@pages.get("")
async def overview(request: Request, context: Authenticated) -> Response:
    """Show the receivers and the newest uploads."""

    def read(control: Control) -> dict[str, Any]:
        listed = [
            job
            for kind in (uploads, syncs)
            for job in control.queries.jobs(
                Filter(type=kind.name, roots_only=True), limit=NEWEST, newest=True
            )
        ]
        return {
            "jobs": sorted(listed, key=lambda job: -job.id)[:NEWEST],
            "receivers": _receivers() if control.rights.everywhere else None,
        }

    return pages.show(
        request,
        context,
        "overview.html",
        live="overview_now.html",
        topics=(f"jobs:type={uploads.name}",),
        **await context.run(read),
    )


@pages.get("/receivers/{receiver}")
async def receiver_page(request: Request, context: Authenticated, receiver: str) -> Response:
    """Show the boot sessions of a receiver over time, its files, runs, and the jobs that wrote them."""
    _require_everywhere(context)

    def read(_: Control) -> timeline.Timeline:
        if receiver not in {path.stem for path in _databases()}:
            raise HTTPException(404, f"there is no receiver {receiver}")
        with _database(receiver).reading() as db:
            return timeline.read(db)

    return pages.show(request, context, "receiver.html", receiver=receiver, timeline=await context.run(read))


@pages.post("/receivers/{receiver}/jobs")
async def start(context: Authenticated, receiver: str, form: Form) -> Response:
    """Start a rerun of boot sessions, or an export."""
    _require_everywhere(context)
    first, last = form.whole("first", "boot session"), form.whole("last", "boot session")

    def submit(control: Control) -> int:
        control.require(Role.OPERATOR, "start jobs of receivers")
        if receiver not in {path.stem for path in _databases()}:
            raise HTTPException(404, f"there is no receiver {receiver}")
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
    """Show an upload: which receivers were in it, what became of each, and what was put aside."""

    def read(control: Control) -> dict[str, Any]:
        upload = control.queries.job(job_id)
        if upload.type not in (uploads.name, syncs.name):
            raise HTTPException(404, f"job {job_id} is no upload")
        children = control.queries.children(job_id)
        results = {child.id: control.queries.results(child.id) for child in children}
        return {
            "upload": upload,
            "results": control.queries.results(job_id),
            "children": [(child, results[child.id].get("detect") or {}) for child in children],
            "bad_list": f"{MADE}/bad_files.txt",
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
    """Move an upload to another project."""
    project = form.text("project")
    return await run_and_redirect(
        context,
        f"{pages.prefix}/uploads/{job_id}",
        lambda control: control.do(RelabelJob(job=job_id, collection=project)),
        f"The upload belongs to the project {project}",
    )


@pages.get("/failures")
async def failures_page(request: Request, context: Authenticated) -> Response:
    """Show failed jobs by cause, with the receivers that each concerns."""
    _require_everywhere(context)

    def read(control: Control) -> list[tuple[Failure, list[Job], list[str]]]:
        shown = []
        for cause in failures.causes(control.queries.failures):
            jobs = control.queries.jobs(Filter(fingerprint=cause.fingerprint), limit=NEWEST, newest=True)
            shown.append(
                (cause, jobs, sorted({job.params["receiver"] for job in jobs if "receiver" in job.params}))
            )
        return shown

    return pages.show(request, context, "failures.html", causes=await context.run(read))


def _require_everywhere(context: RequestContext) -> None:
    if not context.principal.rights.everywhere:
        raise Forbidden("the pages of receivers need rights that are not limited to collections or queues")


def _databases() -> list[Path]:
    return sorted((settings.load().data / "databases").glob("*.sqlite"))


def _database(receiver: str) -> ReceiverDatabase:
    return ReceiverDatabase(settings.load().database(receiver), ())


def _receivers() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in _databases():
        try:
            with _database(path.stem).reading() as db:
                counts = {name: db.execute(f"select count(*) from {name}").fetchone()[0] for name in COUNTED}  # noqa: S608
                (last,) = db.execute("select max(begun) from files").fetchone()
        except sqlite3.Error as error:
            rows.append({"receiver": path.stem, "fault": str(error)})
        else:
            rows.append({"receiver": path.stem, "last": last, **counts})
    return rows
