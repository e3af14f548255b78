"""The pages of webhooks: the list, a webhook with its deliveries, and the actions on both.

A secret is on the page that follows the action which created it, and on no other.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
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
from spinney.model.settings.webhooks import (
    EVENTS,
    EVERY,
    Delivery,
    DeliveryOutcome,
    Webhook,
    WebhookHealth,
    private_host,
)
from spinney.model.values.lists import Page
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    FormFields,
    NewSecret,
    RefusedForm,
    add_action,
    form_variables,
    run_and_redirect,
    secret_page,
    sentence,
)
from spinney.web.pages.page_responses import number_of, page, redirect, segment, with_query
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

WEBHOOKS = "/webhooks"
PAGE = 50
"""How many deliveries a page has."""
_STATE = {DeliveryOutcome.DUE: "pending", DeliveryOutcome.DELIVERED: "ok", DeliveryOutcome.FAILED: "failed"}
"""The state whose colour and shape each outcome is shown with."""


@router.get(WEBHOOKS)
async def webhooks(request: Request, context: Authenticated) -> Response:
    """Show the webhooks that the caller may see."""
    return await _list(request, context)


@router.post(WEBHOOKS)
async def add(request: Request, context: Authenticated, form: Form) -> Response:
    """Create a webhook, and show its secret once."""

    def call(control: Control) -> WebhookWithSecret:
        _require_reachable(request, form)
        return control.do(AddWebhook(name=form.text("name"), reason=form.maybe("reason"), **_settings(form)))

    try:
        created = await context.run(call)
    except FORM_ERRORS as error:
        return await _list(request, context, RefusedForm(form=form, error=error))
    return _secret_page(request, context, created)


@router.get(f"{WEBHOOKS}/{{name}}")
async def webhook(
    request: Request, context: Authenticated, name: str, outcome: str = "", after: str = ""
) -> Response:
    """Show a webhook with a page of its deliveries."""
    return await _webhook_page(request, context, name, outcome=outcome, after=after)


@router.post(f"{WEBHOOKS}/{{name}}/change")
async def change(request: Request, context: Authenticated, name: str, form: Form) -> Response:
    """Change a webhook; pending deliveries are sent to the new URL."""

    def call(control: Control) -> Webhook:
        if form.text("url") != control.do(ShowWebhook(name=name)).url:
            _require_reachable(request, form)
        return control.do(ChangeWebhook(name=name, reason=form.maybe("reason"), **_settings(form)))

    try:
        await context.run(call)
    except FORM_ERRORS as error:
        return await _webhook_page(request, context, name, RefusedForm(form=form, error=error))
    return redirect(_path(name), done=f"Webhook {name} is changed")


@router.post(f"{WEBHOOKS}/{{name}}/rotate")
async def rotate(request: Request, context: Authenticated, name: str, form: Form) -> Response:
    """Replace the secret of a webhook, and show the new one once."""
    try:
        rotated = await context.run(
            lambda control: control.do(RotateWebhook(name=name, reason=form.maybe("reason")))
        )
    except FORM_ERRORS as error:
        return redirect(_path(name), refused=sentence(error))
    return _secret_page(request, context, rotated)


@router.post(f"{WEBHOOKS}/{{name}}/deliveries/{{delivery}}/retry")
async def retry(context: Authenticated, name: str, delivery: str, form: Form) -> Response:
    """Send a delivery again at once, whatever its outcome was."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.do(RetryDelivery(delivery=delivery, reason=form.maybe("reason"))),
        lambda sent: f"Delivery {sent.delivery} is sent again",
    )


# --- parts of the page ------------------------------------------------------------------------


async def _list(request: Request, context: RequestContext, refused: RefusedForm | None = None) -> Response:
    """Show the list, with the form for a new webhook; ``refused``: with what was entered there, and why
    it was refused."""

    def read(control: Control) -> tuple[Sequence[Webhook], Mapping[str, WebhookHealth], dict[str, list[str]]]:
        return control.do(ListWebhooks()).items, control.store.webhooks.health(), _names(control)

    visible, health, names = await context.run(read)
    return page(
        request,
        context.principal,
        "webhooks.html",
        webhooks=visible,
        health=health,
        names=names,
        chosen=refused.form.all("event") if refused else (EVERY,),
        events=EVENTS,
        **form_variables(refused),
    )


async def _webhook_page(
    request: Request,
    context: RequestContext,
    name: str,
    refused: RefusedForm | None = None,
    *,
    outcome: str = "",
    after: str = "",
) -> Response:
    """Show a webhook with its deliveries. ``after``: as the address has it, the number below which the
    page begins."""
    only = DeliveryOutcome(outcome) if outcome in list(DeliveryOutcome) else None
    seq = number_of(after)

    def read(control: Control) -> tuple[Webhook, Page[Delivery], dict[str, list[str]]]:
        deliveries = control.do(ListDeliveries(name=name, limit=PAGE, after=seq, outcome=only))
        return control.do(ShowWebhook(name=name)), deliveries, _names(control)

    webhook, deliveries, names = await context.run(read)
    path = _path(name)
    return page(
        request,
        context.principal,
        "webhook.html",
        webhook=webhook,
        deliveries=deliveries.items,
        names=names,
        path=path,
        chosen=(refused.form.all("event") if refused else ()) or webhook.events,
        events=EVENTS,
        outcome=only,
        outcomes=list(DeliveryOutcome),
        as_state=_STATE,
        next=with_query(path, outcome=only, after=deliveries.next) if deliveries.next else None,
        first=with_query(path, outcome=only) if seq else None,
        **form_variables(refused, _fields(webhook)),
    )


def _require_reachable(request: Request, form: FormFields) -> None:
    """Raise UsageError for a URL to which this server would send nothing."""
    host = private_host(form.text("url"))
    if host is not None and not request.app.state.settings.webhook_private:
        raise UsageError(
            f"{host} is not on the public Internet, and this server sends nothing there; give a public address, or set "
            f"webhook_private = true in [server] of spinney.toml and start the server again"
        )


def _fields(webhook: Webhook) -> Mapping[str, str]:
    """Return the fields of the form that changes a webhook, filled with its settings."""
    return {
        "url": webhook.url,
        "type": webhook.type or "",
        "collection": webhook.collection or "",
        "queue": webhook.queue or "",
        "below": "" if webhook.roots_only else "1",
    }


def _settings(form: FormFields) -> dict[str, Any]:
    """Return the settings that a form has, as fields of a command. An empty limit becomes None, which
    removes it."""
    return {
        "url": form.text("url"),
        "events": _events(form),
        "type": form.maybe("type"),
        "collection": form.maybe("collection"),
        "queue": form.maybe("queue"),
        "roots_only": not form.text("below"),
    }


def _events(form: FormFields) -> list[str]:
    """Return the events that were chosen; all of them as the one word for that. Raises UsageError for
    none."""
    events = form.all("event")
    if not events:
        raise UsageError("choose at least one event")
    return [EVERY] if EVERY in events else [*events]


def _names(control: Control) -> dict[str, list[str]]:
    """Return the names that the form suggests, by its field."""
    look = control.queries
    return {
        "type": sorted(look.types()),
        "queue": sorted(look.names("queue")),
        "collection": sorted(look.names("collection"))[:1_000],
    }


def _secret_page(request: Request, context: RequestContext, answer: WebhookWithSecret) -> Response:
    """Show a new secret. The answer is the page itself and no redirect, since the secret must not be kept
    for a second request."""
    name = answer.webhook.name
    secret = NewSecret(
        title=f"Secret of webhook {name}",
        secret=answer.secret,
        back=_path(name),
        label=f"Back to {name}",
        about="It signs all deliveries from now on. It is shown only once: copy it to the receiver now.",
    )
    return secret_page(request, context, secret)


def _path(name: str) -> str:
    return f"{WEBHOOKS}/{segment(name)}"


_add_action = partial(add_action, router, WEBHOOKS)
_add_action("pause", ChangeWebhook, "Webhook {name} is paused; deliveries are kept for 30 days", paused=True)
_add_action("resume", ChangeWebhook, "Webhook {name} is resumed; pending deliveries are sent", paused=False)
_add_action("test", PingWebhook, "A ping is being sent; its result is listed under the deliveries")
_add_action("remove", RemoveWebhook, "Webhook {name} is deleted", removes=True)
