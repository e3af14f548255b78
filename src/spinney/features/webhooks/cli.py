"""The command ``webhook``: webhooks, which report settled jobs to a URL, and their deliveries.

All subcommands but ``deliver`` work on a store or through a server. ``deliver`` sends by itself, from this
host, and therefore needs the store. Secrets are printed only by ``add`` and ``rotate``: alone on stdout, for
scripts.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from spinney.commands import Performs
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
    Delivery,
    DeliveryOutcome,
    DeliveryResult,
    Webhook,
    private_host,
    shown,
)
from spinney.store.parts import Store
from spinney.terminal import completion
from spinney.terminal.commands import Facts, Shown, command, list_command, steps
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_local_store
from spinney.terminal.options.arguments import (
    JsonOption,
    StoreOption,
    YesOption,
    argument,
    command_group,
    option,
)
from spinney.terminal.output import display

LIMITS = ("type", "collection", "queue")
"""The fields that limit which jobs a webhook reports."""
ANY = "any"
"""The value of an option that removes its limit."""
NAME = argument("NAME", complete=completion.webhooks)
REPORTED = {
    "events": option(
        "--event",
        metavar="EVENT",
        help_="completed, failed, cancelled, orphaned, batch (a job with subjobs, in any state), or '*' for "
        "all; may be repeated.",
    ),
    "type": option(help_="Only jobs of this type; 'any' for all.", complete=completion.types),
    "collection": option(
        help_="Only jobs of this collection; 'any' for all.", complete=completion.collections
    ),
    "queue": option(help_="Only jobs in this queue; 'any' for all.", complete=completion.queues),
    "roots_only": option("--roots/--each", help_="Report only batches and single jobs, or also each subjob."),
}
"""The options that say what a webhook reports."""

app = typer.Typer()
group = command_group(app, "webhook")


@steps(group, AddWebhook, "add", name=argument("NAME"), url=argument("URL"), **REPORTED)
def add(new: AddWebhook, performer: Performs, *, json: JsonOption = False) -> None:
    """Create a webhook, which reports settled jobs to a URL. Prints its signing secret, which is shown only once."""
    unlimited = {limit: None for limit in LIMITS if getattr(new, limit) == ANY}
    created = performer.do(new.model_copy(update=unlimited))
    host = private_host(new.url)
    if host is not None:
        typer.echo(
            f"note: {host} is not on the public Internet; a server sends there only with webhook_private = true in "
            f"[server] of its spinney.toml",
            err=True,
        )
    print_secret(created, json=json)


def _jobs_text(webhook: Webhook) -> str:
    """Return which jobs a webhook reports, as text."""
    limits = [(limit, getattr(webhook, limit)) for limit in LIMITS]
    return ", ".join(
        [
            "batches and single jobs" if webhook.roots_only else "every job",
            *(f"{kind} {name}" for kind, name in limits if name is not None),
        ]
    )


def _state(webhook: Webhook) -> str:
    return "active" if webhook.paused is None else f"paused: {webhook.paused}"


list_command(
    group,
    ListWebhooks,
    "list",
    "List the webhooks, by name.",
    {
        "NAME": lambda webhook: webhook.name,
        "URL": lambda webhook: shown(webhook.url),
        "EVENTS": lambda webhook: " ".join(webhook.events),
        "OF": _jobs_text,
        "STATE": _state,
        "BY": lambda webhook: webhook.by,
    },
    empty="there are no webhooks; 'spinney webhook add NAME URL' makes one",
)


@command(group, ShowWebhook, "show", name=NAME)
def facts(webhook: Webhook) -> Facts:
    """Show a webhook, without its secret."""
    within = [*(webhook.within.collections or ()), *(webhook.within.queues or ())]
    return [
        ("webhook", webhook.name),
        ("url", webhook.url),
        ("events", " ".join(webhook.events)),
        ("of", _jobs_text(webhook)),
        ("state", _state(webhook)),
        ("by", f"{webhook.by}, {display.format_time(webhook.at_us)}"),
        ("within", None if webhook.within.everywhere else " ".join(within) or "nothing"),
    ]


@steps(group, ChangeWebhook, "set", others=False, name=NAME, url=option(metavar="URL"), **REPORTED)
def change(words: ChangeWebhook, performer: Performs) -> Shown:
    """Change a webhook. Pending deliveries are sent to the new URL."""
    fields: dict[str, Any] = {
        name: None if name in LIMITS and value == ANY else value for name, value in words if value is not None
    }
    if fields.keys() <= {"name", "reason"}:
        raise UsageError("the command names no change; add one, for example --url https://example.org/hook")
    changed = performer.do(ChangeWebhook(**fields))
    return Shown(changed, facts(changed))


@command(group, RotateWebhook, "rotate", name=NAME)
def print_secret(rotated: WebhookWithSecret, *, json: JsonOption = False) -> None:
    """Replace a webhook's signing secret and print the new one, which is shown only once."""
    if json:
        display.print_json({"webhook": rotated.webhook, "secret": rotated.secret})
        return
    typer.echo(f"webhook {rotated.webhook.name} is signed with this secret; it is not shown again:", err=True)
    typer.echo(rotated.secret)


@command(group, PingWebhook, "test", name=NAME)
def pinged_text(delivery: Delivery) -> str:
    """Send a test event; 'webhook deliveries' shows its result."""
    return f"delivery {delivery.delivery} is queued; a running server sends it, or 'spinney webhook deliver'"


@command(group, ChangeWebhook, "pause", others=False, name=NAME, paused=True)
def paused_text(webhook: Webhook) -> str:
    """Pause a webhook until it is resumed; its deliveries are kept for 30 days."""
    return f"webhook {webhook.name} is paused; 'spinney webhook resume {webhook.name}' lets it go on"


@command(group, ChangeWebhook, "resume", others=False, name=NAME, paused=False)
def resumed_text(webhook: Webhook) -> str:
    """Resume a paused webhook and send its pending deliveries."""
    return f"webhook {webhook.name} goes on"


@steps(group, RemoveWebhook, "remove", name=NAME)
def remove(removal: RemoveWebhook, performer: Performs, *, yes: YesOption = False) -> Shown:
    """Delete a webhook with all its deliveries."""
    name = removal.name
    performer.do(ShowWebhook(name=name))
    require_yes(f"Delete the webhook {name} with its pending deliveries?", yes=yes)
    performer.do(removal)
    return Shown({"deleted": name}, f"webhook {name} is deleted")


list_command(
    group,
    ListDeliveries,
    "deliveries",
    "List a webhook's deliveries, the newest first, with attempts, last response and next attempt.",
    {
        "DELIVERY": lambda delivery: delivery.delivery,
        "EVENT": lambda delivery: delivery.event,
        "JOB": lambda delivery: delivery.job_id,
        "AT": lambda delivery: display.format_time(delivery.at_us),
        "OUTCOME": lambda delivery: delivery.outcome,
        "TRIES": lambda delivery: delivery.tries,
        "STATUS": lambda delivery: delivery.status,
        "NEXT": lambda delivery: display.format_time(delivery.next_us),
        "ANSWER": lambda delivery: display.shorten(delivery.answer or ""),
    },
    empty="there are no deliveries; 'spinney webhook test NAME' makes one",
    name=NAME,
    after=option(metavar="SEQ", help_="Only deliveries older than this number; 0 starts with the newest."),
    limit=option(default=20),
)


@command(group, RetryDelivery, "retry", delivery=argument("DELIVERY"))
def retried_text(delivery: Delivery) -> str:
    """Send a delivery again, whatever its result; it keeps its id."""
    return f"delivery {delivery.delivery} is due; a running server sends it, or 'spinney webhook deliver'"


@group.command()
def deliver(
    private: Annotated[bool, typer.Option("--private", help="Also allow URLs of private addresses.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Send all due deliveries once, where no server runs, for example by cron. Exit code 1 if one was not
    delivered."""
    with open_local_store(store) as local_store:
        sent = [_line(delivery, result) for delivery, result in _send_due(local_store, private)]
    counts = Counter(line["outcome"] for line in sent)
    failures = len(sent) - counts[DeliveryOutcome.DELIVERED]
    if json:
        display.print_json_lines(sent)
    else:
        for line in sent:
            answer = f"{line['status'] or 'no answer'} {line['answer'] or ''}".strip()
            typer.echo(display.safe(f"{line['webhook']} {line['delivery']} {line['outcome']}: {answer}"))
        typer.echo(f"{counts[DeliveryOutcome.DELIVERED]:,} delivered, {failures:,} not delivered")
    if failures:
        raise typer.Exit(1)


# --- sending ----------------------------------------------------------------------------------


def _send_due(store: Store, private: bool) -> Iterator[tuple[Delivery, DeliveryResult]]:
    """Send each due delivery, and yield it with its result.

    The deliveries of a webhook whose receiver did not accept one wait for the next call: the receiver may
    be away. So do those of a webhook of which none could be leased, which would otherwise be tried for ever.
    One is leased at a time, so that it may run beside servers and be interrupted without holding back more
    than one.
    """
    from spinney.features.webhooks import delivery as webhook_delivery
    from spinney.reports.safe_transport import SafeTransport

    def transport() -> SafeTransport:
        return SafeTransport(
            private=private, advice="give a public address, or add --private, and retry this delivery"
        )

    left_for_later: set[str] = set()
    while names := [
        name
        for name, at_us in store.webhooks.first_due_us().items()
        if at_us <= now_us() and name not in left_for_later
    ]:
        for name in names:
            leased = store.webhooks.lease(
                {name: 1}, now_us=now_us(), until_us=now_us() + webhook_delivery.DELIVERY_LEASE_US
            )
            if not leased:
                left_for_later.add(name)
            for due in leased:
                result = webhook_delivery.deliver(store, due, clock=now_us, transport=transport)
                if result.sent and result.outcome is not DeliveryOutcome.DELIVERED:
                    left_for_later.add(name)
                yield due.delivery, result


def _line(delivery: Delivery, result: DeliveryResult) -> dict[str, Any]:
    """Return a delivery and its result as an object for ``--json``."""
    return {
        "delivery": delivery.delivery,
        "webhook": delivery.webhook,
        "event": delivery.event,
        "job_id": delivery.job_id,
        "outcome": result.outcome,
        "status": result.status,
        "answer": result.answer,
        "next_us": result.next_us,
    }
