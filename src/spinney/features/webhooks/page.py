"""Webhooks: who is told when jobs settle, and what came of each telling."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.webhooks.commands import (
    AddWebhook,
    ChangeWebhook,
    ListDeliveries,
    ListWebhooks,
    PingWebhook,
    RemoveWebhook,
    RetryDelivery,
    RotateWebhook,
    ShowWebhook,
    WebhookWithSecret,
)
from spinney.model.errors import UsageError
from spinney.model.settings.webhooks import EVENTS, EVERY, Delivery, DeliveryOutcome, Webhook
from spinney.model.values.lists import Page
from spinney.web.pages.forms import FORM_ERRORS, Form, FormFields, run_and_redirect, sentence
from spinney.web.pages.rendering import page, redirect, segment, with_query
from spinney.web.pages.rights_forms import NewSecret
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

WEBHOOKS = "/webhooks"
PAGE = 50
_STATE = {DeliveryOutcome.DUE: "pending", DeliveryOutcome.DELIVERED: "ok", DeliveryOutcome.FAILED: "failed"}
"""As which each outcome is shown."""


@router.get(WEBHOOKS, summary="Webhooks")
async def webhooks(request: Request, context: Authenticated) -> Response:
    """Those in sight."""
    return await _list(request, context)


@router.post(WEBHOOKS, summary="Create a webhook")
async def add(request: Request, context: Authenticated, form: Form) -> Response:
    """Its secret is shown once."""

    def call(control: Control) -> WebhookWithSecret:
        asked = AddWebhook(name=form.text("name"), reason=form.maybe("reason"), **_settings(form))
        return control.do(asked)

    try:
        made = await context.run(call)
    except FORM_ERRORS as error:
        return await _list(
            request, context, said=form.said, events=form.all("event"), wrong=sentence(error), status=422
        )
    return _told(request, context, made)


@router.get(f"{WEBHOOKS}/{{name}}", summary="One webhook")
async def webhook(
    request: Request, context: Authenticated, name: str, outcome: str = "", after: str = ""
) -> Response:
    """What it is told, and what came of it."""
    return await _one(request, context, name, outcome=outcome, after=after)


@router.post(f"{WEBHOOKS}/{{name}}/change", summary="Change, pause or resume a webhook")
async def change(request: Request, context: Authenticated, name: str, form: Form) -> Response:
    """What waited is sent to the new URL."""

    def call(control: Control) -> Webhook:
        return control.do(ChangeWebhook(name=name, reason=form.maybe("reason"), **_settings(form)))

    try:
        await context.run(call)
    except FORM_ERRORS as error:
        events = form.all("event")
        return await _one(
            request, context, name, said=form.said, events=events, wrong=sentence(error), status=422
        )
    return redirect(_path(name), done=f"Webhook {name} is changed")


@router.post(f"{WEBHOOKS}/{{name}}/pause", summary="Pause a webhook")
async def pause(context: Authenticated, name: str, form: Form) -> Response:
    """Deliveries are kept for 30 days."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.do(ChangeWebhook(name=name, paused=True, reason=form.maybe("reason"))),
        f"Webhook {name} is paused; deliveries are kept for 30 days",
    )


@router.post(f"{WEBHOOKS}/{{name}}/resume", summary="Resume a webhook")
async def resume(context: Authenticated, name: str, form: Form) -> Response:
    """What waited is sent."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.do(ChangeWebhook(name=name, paused=False, reason=form.maybe("reason"))),
        f"Webhook {name} is resumed; pending deliveries are sent",
    )


@router.post(f"{WEBHOOKS}/{{name}}/test", summary="Send a webhook a ping")
async def test(context: Authenticated, name: str) -> Response:
    """On the way that everything else goes."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.do(PingWebhook(name=name)),
        "A ping is being sent; its result is listed under the deliveries",
    )


@router.post(f"{WEBHOOKS}/{{name}}/rotate", summary="Give a webhook a new secret")
async def rotate(request: Request, context: Authenticated, name: str, form: Form) -> Response:
    """Shown once."""
    try:
        made = await context.run(
            lambda control: control.do(RotateWebhook(name=name, reason=form.maybe("reason")))
        )
    except FORM_ERRORS as error:
        return redirect(WEBHOOKS, refused=sentence(error))
    return _told(request, context, made)


@router.post(f"{WEBHOOKS}/{{name}}/remove", summary="Remove a webhook")
async def remove(context: Authenticated, name: str, form: Form) -> Response:
    """Its deliveries go with it."""
    return await run_and_redirect(
        context,
        WEBHOOKS,
        lambda control: control.do(RemoveWebhook(name=name, reason=form.maybe("reason"))),
        f"Webhook {name} is deleted",
        long=True,
    )


@router.post(f"{WEBHOOKS}/{{name}}/deliveries/{{delivery}}/retry", summary="Send a delivery again")
async def retry(context: Authenticated, name: str, delivery: str, form: Form) -> Response:
    """At once, whatever came of it before."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.do(RetryDelivery(delivery=delivery, reason=form.maybe("reason"))),
        lambda found: f"Delivery {found.delivery} is sent again",
    )


# --- steps ------------------------------------------------------------------------------------


async def _list(
    request: Request,
    context: RequestContext,
    *,
    said: Mapping[str, str] | None = None,
    events: Sequence[str] = (EVERY,),
    wrong: str = "",
    status: int = 200,
) -> Response:
    def read(control: Control) -> tuple[Sequence[Webhook], dict[str, list[str]]]:
        return control.do(ListWebhooks()).items, _known(control)

    found, known = await context.run(read)
    return page(
        request,
        context.principal,
        "webhooks.html",
        status=status,
        webhooks=found,
        known=known,
        said=said or {},
        chosen=events,
        events=EVENTS,
        wrong=wrong,
    )


async def _one(
    request: Request,
    context: RequestContext,
    name: str,
    *,
    outcome: str = "",
    after: str = "",
    said: Mapping[str, str] | None = None,
    events: Sequence[str] = (),
    wrong: str = "",
    status: int = 200,
) -> Response:
    wanted = DeliveryOutcome(outcome) if outcome in list(DeliveryOutcome) else None
    from_ = int(after) if after.isascii() and after.isdigit() and len(after) <= 18 else 0

    def read(control: Control) -> tuple[Webhook, Page[Delivery], dict[str, list[str]]]:
        deliveries = control.do(ListDeliveries(name=name, limit=PAGE, after=from_, outcome=wanted))
        return control.do(ShowWebhook(name=name)), deliveries, _known(control)

    found, deliveries, known = await context.run(read)
    path = _path(name)
    next_ = with_query(path, outcome=wanted, after=deliveries.next) if deliveries.next else None
    return page(
        request,
        context.principal,
        "webhook.html",
        status=status,
        webhook=found,
        deliveries=deliveries.items,
        known=known,
        path=path,
        said=said or _fields(found),
        chosen=events or found.events,
        events=EVENTS,
        wrong=wrong,
        outcome=wanted,
        outcomes=list(DeliveryOutcome),
        as_state=_STATE,
        next=next_,
        first=with_query(path, outcome=wanted) if from_ else None,
    )


def _fields(found: Webhook) -> Mapping[str, str]:
    return {
        "url": found.url,
        "type": found.type or "",
        "collection": found.collection or "",
        "queue": found.queue or "",
        "below": "" if found.roots_only else "1",
    }


def _settings(form: FormFields) -> dict[str, Any]:
    return {
        "url": form.text("url"),
        "events": _events(form),
        "type": form.maybe("type"),
        "collection": form.maybe("collection"),
        "queue": form.maybe("queue"),
        "roots_only": not form.text("below"),
    }


def _events(form: FormFields) -> list[str]:
    found = form.all("event")
    if not found:
        raise UsageError("choose at least one event")
    return [EVERY] if EVERY in found else [*found]


def _known(control: Control) -> dict[str, list[str]]:
    look = control.queries
    return {
        "type": sorted(look.types()),
        "queue": sorted(look.names("queue")),
        "collection": sorted(look.names("collection"))[:1_000],
    }


def _told(request: Request, context: RequestContext, made: WebhookWithSecret) -> Response:
    name = made.webhook.name
    told = NewSecret(
        title=f"Secret of webhook {name}",
        secret=made.secret,
        back=_path(name),
        label=f"Back to {name}",
        about="It signs all deliveries from now on. It is shown only once: copy it to the receiver now.",
    )
    return page(request, context.principal, "secret.html", secret=told)


def _path(name: str) -> str:
    return f"{WEBHOOKS}/{segment(name)}"
