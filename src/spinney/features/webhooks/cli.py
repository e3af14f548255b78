"""The command ``webhook``: webhooks, which report settled jobs to a URL, and their deliveries.

All subcommands but ``deliver`` work on a store or through a server. ``deliver`` sends by itself, from this
host, and therefore needs the store. Secrets are printed only by ``add`` and ``rotate``: alone on stdout, for
scripts.
"""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import UsageError
from spinney.model.settings.webhooks import DeliveryOutcome
from spinney.model.values.hints import did_you_mean
from spinney.terminal import completion, display
from spinney.terminal.arguments import (
    SEQ_MAX,
    ByOption,
    JsonOption,
    StoreOption,
    YesOption,
    argument,
    command_group,
    option,
)
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_local_store, perform
from spinney.terminal.option_groups import ChangeOptions, with_option_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spinney.features.webhooks.commands import WebhookWithSecret
    from spinney.model.settings.webhooks import Delivery, DeliveryResult, Webhook
    from spinney.store.parts import Store

ANY = "any"
"""The value of an option that removes its limit."""
DELIVERIES = 20
"""How many deliveries are listed by default."""
NewNameArgument = Annotated[str, argument("NAME", "The webhook's name.")]
NameArgument = Annotated[str, argument("NAME", "The webhook's name.", completion.webhooks)]
EventOption = Annotated[
    list[str] | None,
    option(
        "--event",
        metavar="EVENT",
        help_="completed, failed, cancelled, orphaned, batch (a job with subjobs, in any state), or '*' for "
        "all; may be repeated.",
    ),
]
TypeOption = Annotated[
    str | None,
    option(
        "--type",
        metavar="TYPE",
        help_="Only jobs of this type; 'any' for all.",
        complete=completion.types,
    ),
]
CollectionOption = Annotated[
    str | None,
    option(help_="Only jobs of this collection; 'any' for all.", complete=completion.collections),
]
QueueOption = Annotated[
    str | None, option(help_="Only jobs in this queue; 'any' for all.", complete=completion.queues)
]


app = typer.Typer()
webhook = command_group(app, "webhook")


@webhook.command()
@with_option_groups
def add(
    name: NewNameArgument,
    url: Annotated[str, argument("URL", "The URL to report to, http or https.")],
    event: EventOption = None,
    type_: TypeOption = None,
    collection: CollectionOption = None,
    queue: QueueOption = None,
    each: Annotated[
        bool, typer.Option("--each", help="Also report each subjob, not only batches and single jobs.")
    ] = False,
    *,
    options: ChangeOptions,
) -> None:
    """Create a webhook, which reports settled jobs to a URL. Prints its signing secret, which is shown only once."""
    from spinney.features.webhooks.commands import AddWebhook
    from spinney.model.settings.webhooks import private_host

    limits = {key: limit for key, limit in _limits(type_, collection, queue).items() if limit is not None}
    created = options.perform(
        AddWebhook(
            name=name,
            url=url,
            events=event or ["*"],
            roots_only=not each,
            reason=options.reason,
            **limits,
        )
    )
    host = private_host(url)
    if host is not None:
        typer.echo(
            f"note: {host} is not on the public Internet; a server sends there only with webhook_private = true in "
            f"[server] of its spinney.toml",
            err=True,
        )
    _print_secret(created, json=options.json)


@webhook.command("list")
def list_webhooks(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the webhooks, by name."""
    from spinney.features.webhooks.commands import ListWebhooks
    from spinney.model.settings.webhooks import shown

    webhooks = perform(ListWebhooks(), store).items
    display.print_list(
        webhooks,
        {
            "NAME": lambda webhook: webhook.name,
            "URL": lambda webhook: shown(webhook.url),
            "EVENTS": lambda webhook: " ".join(webhook.events),
            "OF": _jobs_text,
            "STATE": _state,
            "BY": lambda webhook: webhook.by,
        },
        json=json,
    )


@webhook.command()
def show(name: NameArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show a webhook, without its secret."""
    from spinney.features.webhooks.commands import ShowWebhook

    webhook = perform(ShowWebhook(name=name), store)
    _print_webhook(webhook, json=json)


@webhook.command("set")
@with_option_groups
def change(
    name: NameArgument,
    url: Annotated[str | None, option(metavar="URL", help_="The URL to report to.")] = None,
    event: EventOption = None,
    type_: TypeOption = None,
    collection: CollectionOption = None,
    queue: QueueOption = None,
    each: Annotated[
        bool | None,
        option("--each/--roots", help_="Also report each subjob, or only batches and single jobs."),
    ] = None,
    *,
    options: ChangeOptions,
) -> None:
    """Change a webhook. Pending deliveries are sent to the new URL."""
    from spinney.features.webhooks.commands import ChangeWebhook

    changes = _limits(type_, collection, queue)
    if url is not None:
        changes["url"] = url
    if event:
        changes["events"] = event
    if each is not None:
        changes["roots_only"] = not each
    if not changes:
        raise UsageError("the command names no change; add one, for example --url https://example.org/hook")
    webhook = options.perform(ChangeWebhook(name=name, reason=options.reason, **changes))
    _print_webhook(webhook, json=options.json)


@webhook.command()
@with_option_groups
def rotate(name: NameArgument, *, options: ChangeOptions) -> None:
    """Replace a webhook's signing secret and print the new one, which is shown only once."""
    from spinney.features.webhooks.commands import RotateWebhook

    rotated = options.perform(RotateWebhook(name=name, reason=options.reason))
    _print_secret(rotated, json=options.json)


@webhook.command("test")
def ping(
    name: NameArgument, json: JsonOption = False, by: ByOption = None, store: StoreOption = None
) -> None:
    """Send a test event; 'webhook deliveries' shows its result."""
    from spinney.features.webhooks.commands import PingWebhook

    delivery = perform(PingWebhook(name=name), store, by)
    sentence = (
        f"delivery {delivery.delivery} is queued; a running server sends it, or 'spinney webhook deliver'"
    )
    display.print_result(delivery, sentence, json=json)


@webhook.command()
@with_option_groups
def pause(name: NameArgument, *, options: ChangeOptions) -> None:
    """Pause a webhook until it is resumed; its deliveries are kept for 30 days."""
    sentence = f"webhook {name} is paused; 'spinney webhook resume {name}' lets it go on"
    display.print_result(_set_paused(name, True, options), sentence, json=options.json)


@webhook.command()
@with_option_groups
def resume(name: NameArgument, *, options: ChangeOptions) -> None:
    """Resume a paused webhook and send its pending deliveries."""
    webhook = _set_paused(name, False, options)
    display.print_result(webhook, f"webhook {name} goes on", json=options.json)


@webhook.command()
@with_option_groups
def remove(
    name: NameArgument,
    yes: YesOption = False,
    *,
    options: ChangeOptions,
) -> None:
    """Delete a webhook with all its deliveries."""
    from spinney.features.webhooks.commands import RemoveWebhook, ShowWebhook

    with options.open_commands() as performer:
        performer.do(ShowWebhook(name=name))
        require_yes(f"Delete the webhook {name} with its pending deliveries?", yes=yes)
        performer.do(RemoveWebhook(name=name, reason=options.reason))
    display.print_result({"removed": name}, f"webhook {name} is deleted", json=options.json)


@webhook.command()
def deliveries(
    name: NameArgument,
    outcome: Annotated[
        str | None,
        option(metavar="OUTCOME", help_="Only deliveries that are due, delivered or failed."),
    ] = None,
    after: Annotated[
        int,
        typer.Option(
            min=0,
            max=SEQ_MAX,
            metavar="SEQ",
            help="Only deliveries older than this number; 0 starts with the newest.",
        ),
    ] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many deliveries.")] = DELIVERIES,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List a webhook's deliveries, the newest first, with attempts, last response and next attempt."""
    from spinney.features.webhooks.commands import ListDeliveries

    page = perform(ListDeliveries(name=name, limit=limit, after=after, outcome=_outcome(outcome)), store)
    display.print_list(
        page.items,
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
        json=json,
    )


@webhook.command()
@with_option_groups
def retry(
    delivery: Annotated[str, argument("DELIVERY", "The delivery's id.")],
    *,
    options: ChangeOptions,
) -> None:
    """Send a delivery again, whatever its result; it keeps its id."""
    from spinney.features.webhooks.commands import RetryDelivery

    due = options.perform(RetryDelivery(delivery=delivery, reason=options.reason))
    sentence = f"delivery {delivery} is due; a running server sends it, or 'spinney webhook deliver'"
    display.print_result(due, sentence, json=options.json)


@webhook.command()
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
        typer.echo(f"{counts[DeliveryOutcome.DELIVERED]:,} delivered, {failures:,} not")
    if failures:
        raise typer.Exit(1)


# --- sending ----------------------------------------------------------------------------------


def _send_due(store: "Store", private: bool) -> "Iterator[tuple[Delivery, DeliveryResult]]":
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


def _line(delivery: "Delivery", result: "DeliveryResult") -> dict[str, Any]:
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


# --- steps and texts --------------------------------------------------------------------------


def _limits(type_: str | None, collection: str | None, queue: str | None) -> dict[str, Any]:
    """Return the limits that options name, as fields of a command; None removes a limit."""
    options = {"type": type_, "collection": collection, "queue": queue}
    return {name: None if value == ANY else value for name, value in options.items() if value is not None}


def _set_paused(name: str, paused: bool, options: ChangeOptions) -> "Webhook":
    from spinney.features.webhooks.commands import ChangeWebhook

    return options.perform(ChangeWebhook(name=name, paused=paused, reason=options.reason))


def _outcome(word: str | None) -> DeliveryOutcome | None:
    """Return the outcome that ``--outcome`` names; None: all. Raises UsageError for another word."""
    if word is not None and word not in set(DeliveryOutcome):
        hint = did_you_mean(word, map(str, DeliveryOutcome))
        raise UsageError(f"no delivery is {word!r:.80}{hint}; use {', '.join(DeliveryOutcome)}")
    return None if word is None else DeliveryOutcome(word)


def _print_secret(answer: "WebhookWithSecret", *, json: bool) -> None:
    """Print a new secret alone on stdout, and what it is for on stderr; with ``json`` the webhook and the
    secret."""
    if json:
        display.print_json({"webhook": answer.webhook, "secret": answer.secret})
        return
    typer.echo(f"webhook {answer.webhook.name} is signed with this secret; it is not shown again:", err=True)
    typer.echo(answer.secret)


def _print_webhook(webhook: "Webhook", *, json: bool) -> None:
    """Print the settings of a webhook, and the limits within which it reports, if it has any."""
    if json:
        display.print_json(webhook)
        return
    within = [*(webhook.within.collections or ()), *(webhook.within.queues or ())]
    display.print_facts(
        (
            ("webhook", webhook.name),
            ("url", webhook.url),
            ("events", " ".join(webhook.events)),
            ("of", _jobs_text(webhook)),
            ("state", _state(webhook)),
            ("by", f"{webhook.by}, {display.format_time(webhook.at_us)}"),
            ("within", None if webhook.within.everywhere else " ".join(within) or "nothing"),
        )
    )


def _jobs_text(webhook: "Webhook") -> str:
    """Return which jobs a webhook reports, as text."""
    limits = (("type", webhook.type), ("collection", webhook.collection), ("queue", webhook.queue))
    return ", ".join(
        [
            "batches and single jobs" if webhook.roots_only else "every job",
            *(f"{kind} {name}" for kind, name in limits if name is not None),
        ]
    )


def _state(webhook: "Webhook") -> str:
    return "active" if webhook.paused is None else f"paused: {webhook.paused}"
