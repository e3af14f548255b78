"""Webhooks: who is told when jobs settle, and what came of each telling."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.control.webhooks import WithSecret
from spinney.model.errors import UsageError
from spinney.model.webhooks import EVENTS, EVERY, Delivery, Outcome, Webhook
from spinney.server.asking import Asked, Hands
from spinney.server.ui.given import TOLD, Form, Given, deed, sentence
from spinney.server.ui.people import Told
from spinney.server.ui.rendering import page, redirect, segment, with_query

router = APIRouter(include_in_schema=False)

WEBHOOKS = "/webhooks"
PAGE = 50
_STATE = {Outcome.DUE: "pending", Outcome.DELIVERED: "ok", Outcome.FAILED: "failed"}
"""As which each outcome is shown."""


@router.get(WEBHOOKS, summary="Webhooks")
async def webhooks(request: Request, hands: Asked) -> Response:
    """Those in sight."""
    return await _list(request, hands)


@router.post(WEBHOOKS, summary="Make a webhook")
async def add(request: Request, hands: Asked, form: Form) -> Response:
    """Its secret is shown once."""

    def call(control: Control) -> WithSecret:
        return control.webhooks.add(
            form.text("name"),
            form.text("url"),
            events=_events(form),
            type_=form.maybe("type"),
            collection=form.maybe("collection"),
            queue=form.maybe("queue"),
            roots_only=not form.text("below"),
            reason=form.maybe("reason"),
        )

    try:
        made = await hands.run(call)
    except TOLD as error:
        return await _list(
            request, hands, said=form.said, events=form.all("event"), wrong=sentence(error), status=422
        )
    return _told(request, hands, made)


@router.get(f"{WEBHOOKS}/{{name}}", summary="One webhook")
async def webhook(request: Request, hands: Asked, name: str, outcome: str = "", after: str = "") -> Response:
    """What it is told, and what came of it."""
    return await _one(request, hands, name, outcome=outcome, after=after)


@router.post(f"{WEBHOOKS}/{{name}}/change", summary="Set a webhook otherwise")
async def change(request: Request, hands: Asked, name: str, form: Form) -> Response:
    """What waited is sent to the new URL."""

    def call(control: Control) -> Webhook:
        meant: dict[str, Any] = {
            "url": form.text("url"),
            "events": _events(form),
            "type": form.maybe("type"),
            "collection": form.maybe("collection"),
            "queue": form.maybe("queue"),
            "roots_only": not form.text("below"),
        }
        return control.webhooks.change(name, meant, reason=form.maybe("reason"))

    try:
        await hands.run(call)
    except TOLD as error:
        events = form.all("event")
        return await _one(
            request, hands, name, said=form.said, events=events, wrong=sentence(error), status=422
        )
    return redirect(_path(name), done=f"Webhook {name} is set otherwise")


@router.post(f"{WEBHOOKS}/{{name}}/pause", summary="Pause a webhook")
async def pause(hands: Asked, name: str, form: Form) -> Response:
    """What it is to be told is kept for 30 days."""
    return await deed(
        hands,
        _path(name),
        lambda control: control.webhooks.pause(name, reason=form.maybe("reason")),
        f"Webhook {name} is paused; what it is to be told is kept for 30 days",
    )


@router.post(f"{WEBHOOKS}/{{name}}/resume", summary="Resume a webhook")
async def resume(hands: Asked, name: str, form: Form) -> Response:
    """What waited is sent."""
    return await deed(
        hands,
        _path(name),
        lambda control: control.webhooks.resume(name, reason=form.maybe("reason")),
        f"Webhook {name} goes on, with what has waited",
    )


@router.post(f"{WEBHOOKS}/{{name}}/test", summary="Send a webhook a ping")
async def test(hands: Asked, name: str) -> Response:
    """On the way that everything else goes."""
    return await deed(
        hands,
        _path(name),
        lambda control: control.webhooks.test(name),
        "A ping is on its way; what comes of it stands among the deliveries",
    )


@router.post(f"{WEBHOOKS}/{{name}}/rotate", summary="Give a webhook a new secret")
async def rotate(request: Request, hands: Asked, name: str, form: Form) -> Response:
    """Shown once."""
    try:
        made = await hands.run(lambda control: control.webhooks.rotate(name, reason=form.maybe("reason")))
    except TOLD as error:
        return redirect(WEBHOOKS, refused=sentence(error))
    return _told(request, hands, made)


@router.post(f"{WEBHOOKS}/{{name}}/remove", summary="Remove a webhook")
async def remove(hands: Asked, name: str, form: Form) -> Response:
    """Its deliveries go with it."""
    return await deed(
        hands,
        WEBHOOKS,
        lambda control: control.webhooks.remove(name, reason=form.maybe("reason")),
        f"Webhook {name} is removed",
        long=True,
    )


@router.post(f"{WEBHOOKS}/{{name}}/deliveries/{{delivery}}/retry", summary="Send a delivery again")
async def retry(hands: Asked, name: str, delivery: str, form: Form) -> Response:
    """At once, whatever came of it before."""
    return await deed(
        hands,
        _path(name),
        lambda control: control.webhooks.retry(delivery, reason=form.maybe("reason")),
        lambda found: f"Delivery {found.delivery} is sent again",
    )


# --- steps ------------------------------------------------------------------------------------


async def _list(
    request: Request,
    hands: Hands,
    *,
    said: Mapping[str, str] | None = None,
    events: Sequence[str] = (EVERY,),
    wrong: str = "",
    status: int = 200,
) -> Response:
    def read(control: Control) -> tuple[list[Webhook], dict[str, list[str]]]:
        return control.webhooks.all(), _known(control)

    found, known = await hands.run(read)
    return page(
        request,
        hands.asker,
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
    hands: Hands,
    name: str,
    *,
    outcome: str = "",
    after: str = "",
    said: Mapping[str, str] | None = None,
    events: Sequence[str] = (),
    wrong: str = "",
    status: int = 200,
) -> Response:
    wanted = Outcome(outcome) if outcome in list(Outcome) else None
    from_ = int(after) if after.isascii() and after.isdigit() and len(after) <= 18 else 0

    def read(control: Control) -> tuple[Webhook, Sequence[Delivery], dict[str, list[str]]]:
        deliveries = control.webhooks.deliveries(name, limit=PAGE, after=from_, outcome=wanted)
        return control.webhooks.find(name), deliveries, _known(control)

    found, deliveries, known = await hands.run(read)
    path = _path(name)
    next_ = with_query(path, outcome=wanted, after=deliveries[-1].seq) if len(deliveries) >= PAGE else None
    return page(
        request,
        hands.asker,
        "webhook.html",
        status=status,
        webhook=found,
        deliveries=deliveries,
        known=known,
        path=path,
        said=said or _fields(found),
        chosen=events or found.events,
        events=EVENTS,
        wrong=wrong,
        outcome=wanted,
        outcomes=list(Outcome),
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


def _events(form: Given) -> tuple[str, ...]:
    found = form.all("event")
    if not found:
        raise UsageError("choose at least one event to be told of")
    return (EVERY,) if EVERY in found else found


def _known(control: Control) -> dict[str, list[str]]:
    look = control.look
    return {
        "type": sorted(look.types()),
        "queue": sorted(look.names("queue")),
        "collection": sorted(look.names("collection"))[:1_000],
    }


def _told(request: Request, hands: Hands, made: WithSecret) -> Response:
    name = made.webhook.name
    told = Told(
        title=f"The secret of webhook {name}",
        secret=made.secret,
        back=_path(name),
        label=f"To {name}",
        about="It signs all that is sent from now on. It is shown on this page alone: give it to the receiver now.",
    )
    return page(request, hands.asker, "secret.html", secret=told)


def _path(name: str) -> str:
    return f"{WEBHOOKS}/{segment(name)}"
