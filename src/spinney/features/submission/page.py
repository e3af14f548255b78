"""Submit one job: choose its type, fill in what the type's schema asks for, drop files for its folder.

With the page's script the form is sent beside the page: files go to disk as they come, and what is written stays where
something is wrong. Without it the browser sends the form as any other, with less room for files. Either way the form
bears a key that is good once, so that sent twice it makes one job.

Files can be put into the folder of a job that is there already, such as one that its next attempt needs. The folder is
written only while no attempt of the job runs. That is checked before files are received, and again before they are put
there, because receiving them may take minutes.
"""

import asyncio
import hashlib
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.define.job.options import Options
from spinney.features.files import folder_writes, job_uploads
from spinney.features.jobs.job_page import JobId
from spinney.model.access import Role
from spinney.model.errors import Refused, SpinneyError, UnknownType, UsageError
from spinney.model.rights.submit_rights import may_submit
from spinney.model.types import TypeSpec
from spinney.model.values.hints import did_you_mean
from spinney.model.values.texts import counted
from spinney.service.submit_rights import require_type
from spinney.store.contract import SubmissionKey, SubmitResult
from spinney.web.files import multipart, spool
from spinney.web.identity.forms import HEADER
from spinney.web.long_requests.bodies import raise_bound
from spinney.web.media_types import body_type, wants_part
from spinney.web.pages import options_form, param_fields
from spinney.web.pages.page_responses import page, part, redirect
from spinney.web.pages.param_fields import PREFIX, Kind
from spinney.web.problems import kind
from spinney.web.request_context import Authenticated, RequestContext, now_us

router = APIRouter(include_in_schema=False)

TYPES_MAX = 200
"""How many types are listed at a time; the field above the list narrows it."""
_CHANGED = "this form was submitted before, and has been changed since; check it, and submit it again"
"""The message for a key that comes again with other content, instead of the one for programs."""
_ONCE = "once"
"""The field of the key by which a form that is sent twice submits once."""
_UNSAID = ("csrf", _ONCE)
"""Fields that make no difference to what is submitted, and are left out of the digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitChoices:
    """What the form for a submission offers: the type's parameters, and the queues."""

    spec: TypeSpec
    queues: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedForm:
    """The fields of a form as they came, with the key by which a form that is sent twice submits once.

    If a name comes twice, ``values`` has its last value.
    """

    values: Mapping[str, str]
    once: SubmissionKey


@router.get("/submit")
async def submit(
    request: Request,
    context: Authenticated,
    type_: Annotated[str, Query(alias="type", max_length=200)] = "",
    q: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the job types that the caller may submit, narrowed by ``q``, or with ``type`` the form of one."""
    await context.run(lambda control: control.require(Role.SUBMITTER, "submit jobs"))
    if not type_:
        types = await context.run(submittable_types)
        text = q.strip().lower()
        matching = [spec for spec in types if _fits(spec, text)]
        return page(
            request,
            context.principal,
            "submit_types.html",
            types=matching[:TYPES_MAX],
            all=len(types),
            q=q.strip(),
            more=len(matching) > TYPES_MAX,
        )
    choices = await context.run(lambda control: _choices(control, type_))
    return page(request, context.principal, "submit.html", **_shown(choices, {}, {}))


@router.post("/submit")
async def submitted(request: Request, context: Authenticated) -> Response:
    """Submit the job and redirect to its page, or show the form again with each error at its field."""
    root = request.app.state.folders
    await context.run(lambda control: control.require(Role.SUBMITTER, "submit jobs"))
    async with spool.upload(root) as upload:
        try:
            sent = await _sent(request, context, upload)
        except (SpinneyError, HTTPException) as error:
            # The form is sent back empty: what was entered could not be read.
            return redirect_from(request, "/submit", refused=str(getattr(error, "detail", error)))
        choices = await context.run(lambda control: _choices(control, sent.values.get("type", "")))
        params, wrong = param_fields.read(choices.spec.schema, sent.values)
        options, also_wrong = options_form.read(sent.values, now_us())
        also_wrong |= _unknown_queue(choices, options.get("queue"))
        errors = {**{PREFIX + name: text for name, text in wrong.items()}, **also_wrong}
        if errors:
            return _again(request, context, choices, sent, errors)
        try:
            job_options = Options(**options)
            job_id, repeated = await _submit(
                context, root, upload, choices.spec.name, params, job_options, sent.once
            )
        except SpinneyError as error:
            refused = kind(error)
            if refused is None or refused[0] >= 500:
                raise
            message = _CHANGED if sent.once.key in str(error) else str(error)
            return _again(request, context, choices, sent, {"": message}, status=refused[0])
    if repeated:
        done = f"job {job_id} was already submitted with this form; open a new form to submit another"
        return redirect_from(request, f"/jobs/{job_id}", done=done)
    return redirect_from(request, f"/jobs/{job_id}", done=f"job {job_id} is submitted")


def redirect_from(
    request: Request, path: str, *, done: str | None = None, refused: str | None = None
) -> Response:
    """Redirect to another page with a message.

    Where the page's script (htmx) has sent the request, the answer is 204 with ``HX-Redirect``, which
    makes it load that page: it would follow an ordinary redirect itself and merge the page that it gets
    into the current one.
    """
    answer = redirect(path, done=done, refused=refused)
    if not wants_part(request):
        return answer
    answer.status_code = 204
    del answer.headers["location"]
    answer.headers["HX-Redirect"] = path
    return answer


# --- reading the form -------------------------------------------------------------------------


async def _sent(request: Request, context: RequestContext, upload: spool.Upload) -> SubmittedForm:
    """Read a submitted form; its files are in ``upload`` then. Raises Refused when the form has lost its
    key."""
    fields = await read_form(request, context, upload)
    values = dict(fields)
    signed = [pair for pair in fields if pair[0] not in _UNSAID]
    digest = hashlib.sha256(repr(signed).encode("utf-8", "surrogatepass"))
    digest.update((await asyncio.to_thread(upload.digest)).encode())
    key = values.get(_ONCE, "")
    if not (key.isascii() and key.isprintable() and 0 < len(key) <= 100):
        raise Refused("the form has lost its key; load the page again and fill it in again")
    return SubmittedForm(
        values=values,
        once=SubmissionKey(owner=context.principal.name, key=f"form:{key}", digest=digest.hexdigest()),
    )


async def read_form(request: Request, context: RequestContext, upload: spool.Upload) -> list[tuple[str, str]]:
    """Return the fields of a form with files, which are in ``upload`` then, in the order in which they
    came.

    A form of the page's script is read as a stream, with files of any number and size that the server
    allows; any other as a whole, by the framework. Raises Forbidden, before files are read, for a caller
    who may not upload.
    """
    if body_type(request) == multipart.MULTIPART and HEADER in request.headers:
        # The proof that the form is ours came before it, so that it could wait to be read.
        await job_uploads.require(context, request.app.state.folders)
        raise_bound(request)
        return await multipart.read_fields(request.headers["content-type"], request.stream(), upload)
    return await _read_whole(request, context, upload)


async def _read_whole(
    request: Request, context: RequestContext, upload: spool.Upload
) -> list[tuple[str, str]]:
    """Read a form that a browser without the page's script sends. The framework keeps its files as long as the request
    lasts, so they are copied into ``upload``."""
    fields: list[tuple[str, str]] = []
    for name, value in (await request.form()).multi_items():
        if isinstance(value, str):
            fields.append((name, value))
        elif isinstance(value, UploadFile) and value.filename:
            await job_uploads.require(context, request.app.state.folders)
            await asyncio.to_thread(_copy, value, value.filename, upload)
    return fields


def _copy(file_sent: UploadFile, name: str, upload: spool.Upload) -> None:
    with upload.writing(name) as file:
        shutil.copyfileobj(file_sent.file, file)


async def _submit(
    context: RequestContext,
    root: Any,
    upload: spool.Upload,
    type_: str,
    params: Mapping[str, Any],
    options: Options,
    once: SubmissionKey,
) -> tuple[int, bool]:
    """Submit the job, with files or without, and return its number and whether the same form was submitted before."""
    if upload.files:
        begun = await job_uploads.with_files(context, root, upload, type_, params, options, once=once)
        return begun.job_id, begun.repeated
    done: SubmitResult = await context.run(
        lambda control: control.submit(type_, [params], options, once=once)
    )
    return done.ids[0], done.repeated


def _unknown_queue(choices: SubmitChoices, queue: str | None) -> Mapping[str, str]:
    """Return what is wrong with the field of the queue, by field: one that does not exist would be
    created by the submission, without a limit and perhaps from a typing error."""
    if queue is None or queue in choices.queues:
        return {}
    hint = did_you_mean(queue, choices.queues)
    return {
        "queue": f"there is no queue {queue!r}{hint}; choose one of the list, or have an operator create it"
    }


# --- the page ---------------------------------------------------------------------------------


def _again(
    request: Request,
    context: RequestContext,
    choices: SubmitChoices,
    sent: SubmittedForm,
    errors: Mapping[str, str],
    *,
    status: int = 422,
) -> Response:
    """Show a form again, with what was entered and the error at each field; for the page's script only the form."""
    shown = _shown(choices, sent.values, errors)
    if not wants_part(request):
        return page(request, context.principal, "submit.html", status=status, **shown)
    answer = part(request, context.principal, "submit_form.html", **shown)
    answer.status_code = status
    return answer


def _shown(choices: SubmitChoices, values: Mapping[str, str], errors: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the template of the form. ``errors``: by field; that of the empty name is of
    no field.

    Secrets are never sent back. The key stays the same only where nothing was submitted with it: after a
    refusal by the store a new one is made, since the old one may have been used.
    """
    param_list = param_fields.fields(choices.spec.schema)
    secret = {PREFIX + field.name for field in param_list if field.kind is Kind.SECRET}
    names = {PREFIX + field.name for field in param_list} | set(options_form.OPTIONS)
    labels = {PREFIX + field.name: field.name for field in param_list} | {
        PREFIX + param_fields.MORE: "more parameters",
        **options_form.LABELS,
    }
    elsewhere = [text for name, text in errors.items() if name not in names]
    return {
        "spec": choices.spec,
        "fields": param_list,
        "queues": choices.queues,
        "errors": errors,
        "elsewhere": elsewhere,
        "labels": labels,
        "values": {name: text for name, text in values.items() if name not in secret},
        "once": values.get(_ONCE) if errors and "" not in errors else secrets.token_urlsafe(18),
    }


def _choices(control: Control, type_: str) -> SubmitChoices:
    """Return what the form of a type offers. Raises UnknownType, and Forbidden for a type that the caller
    may not submit."""
    if not type_:
        raise UnknownType("the form names no job type; choose one, and fill it in again")
    queues = [queue.queue for queue in control.queries.queues()]
    spec = control.queries.type(type_)
    require_type(control, spec, [])
    return SubmitChoices(spec=spec, queues=queues)


def submittable_types(control: Control) -> Sequence[TypeSpec]:
    """Return the types of which the caller may submit jobs, by name."""
    return [spec for _, spec in sorted(control.queries.types().items()) if may_submit(spec, control.rights)]


def _fits(spec: TypeSpec, text: str) -> bool:
    """Return whether a type's name or description contains a text, which is in lower case; the empty text
    fits all."""
    return text in spec.name.lower() or text in spec.description.lower()


@router.post("/jobs/{job}/upload")
async def upload(request: Request, context: Authenticated, job: JobId) -> Response:
    """Put the files into the folder, unless the job is at work, and redirect to its page, which says what
    became of them."""
    root, back = request.app.state.folders, f"/jobs/{job}"

    try:
        await job_uploads.require_put(context, root, job)
        async with spool.upload(root) as received:
            await read_form(request, context, received)
            if not received.files:
                return redirect_from(request, back, refused="no file was chosen; choose one, then upload it")
            await job_uploads.require_put(context, root, job)  # it may have begun meanwhile
            await asyncio.to_thread(folder_writes.put, root, job, received.files)
            count = len(received.files)
    except (Refused, UsageError, HTTPException) as error:
        return redirect_from(request, back, refused=str(getattr(error, "detail", error)))
    return redirect_from(
        request, back, done=f"{counted(count, 'file')} uploaded into the folder of job {job}"
    )
