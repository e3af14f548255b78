"""The command ``webhook``: webhooks, which report settled jobs to a URL, and their deliveries."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import UsageError
from spinney.terminal import completion, display
from spinney.terminal.arguments import SEQ_MAX, ByOption, JsonOption, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import now_us, open_commands, open_local_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spinney.features.webhooks.commands import WebhookWithSecret
    from spinney.model.settings.webhooks import Delivery, DeliveryOutcome, DeliveryResult, Webhook
    from spinney.store.contract import Store

ANY = "any"
DELIVERIES = 20
NewNameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The webhook's name.", show_default=False)
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The webhook's name.", show_default=False, autocompletion=completion.webhooks
    ),
]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="The reason, recorded in the audit log.", show_default=False)
]
EventOption = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        metavar="EVENT",
        show_default=False,
        help="completed, failed, cancelled, orphaned, batch (a job with subjobs, in any state), or '*' for "
        "all; may be repeated.",
    ),
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only jobs of this type.",
        show_default=False,
        autocompletion=completion.types,
    ),
]
CollectionOption = Annotated[
    str | None,
    typer.Option(
        help="Only jobs of this collection.", show_default=False, autocompletion=completion.collections
    ),
]
QueueOption = Annotated[
    str | None,
    typer.Option(help="Only jobs in this queue.", show_default=False, autocompletion=completion.queues),
]

group = typer.Typer(
    help="Manage webhooks, which report settled jobs and batches to other services.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add_to(app: typer.Typer) -> None:
    group.command()(add)
    group.command("list")(list_webhooks)
    group.command("test")(ping)
    for command in (show, set_, rotate, pause, resume, remove, deliveries, retry, deliver):
        group.command(command.__name__.rstrip("_"))(command)
    app.add_typer(group, name="webhook")


def add(
    name: NewNameArgument,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The URL to report to, http or https.", show_default=False)
    ],
    event: EventOption = None,
    type_: TypeOption = None,
    collection: CollectionOption = None,
    queue: QueueOption = None,
    each: Annotated[
        bool, typer.Option("--each", help="Also report each subjob, not only batches and single jobs.")
    ] = False,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Create a webhook, which reports settled jobs to a URL. Prints its signing secret, which is shown only once."""
    from spinney.features.webhooks.commands import AddWebhook

    with open_commands(store, by) as performer:
        asked = AddWebhook(
            name=name,
            url=url,
            events=event or ["*"],
            type=type_,
            collection=collection,
            queue=queue,
            roots_only=not each,
            reason=reason,
        )
        made = performer.do(asked)
    _with_secret(name, made, json)


def list_webhooks(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the webhooks, by name."""
    from spinney.features.webhooks.commands import ListWebhooks
    from spinney.model.settings.webhooks import shown

    with open_commands(store) as performer:
        found = performer.do(ListWebhooks()).items
    if json:
        display.print_json_lines(found)
        return
    rows = [(w.name, shown(w.url), " ".join(w.events), _of(w), _state(w), w.by) for w in found]
    display.print_table(("NAME", "URL", "EVENTS", "OF", "STATE", "BY"), rows)


def show(name: NameArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show a webhook, without its secret."""
    from spinney.features.webhooks.commands import ShowWebhook

    with open_commands(store) as performer:
        found = performer.do(ShowWebhook(name=name))
    if json:
        display.print_json(found)
    else:
        _show(found)


def set_(
    name: NameArgument,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL to report to.", show_default=False)
    ] = None,
    event: EventOption = None,
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only jobs of this type; 'any' for all.",
            show_default=False,
            autocompletion=completion.types,
        ),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(
            help="Only jobs of this collection; 'any' for all.",
            show_default=False,
            autocompletion=completion.collections,
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            help="Only jobs in this queue; 'any' for all.",
            show_default=False,
            autocompletion=completion.queues,
        ),
    ] = None,
    each: Annotated[
        bool | None,
        typer.Option(
            "--each/--roots",
            help="Also report each subjob, or only batches and single jobs.",
            show_default=False,
        ),
    ] = None,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Change a webhook. Pending deliveries are sent to the new URL."""
    change: dict[str, Any] = {
        key: None if value == ANY else value
        for key, value in (("type", type_), ("collection", collection), ("queue", queue))
        if value is not None
    }
    if url is not None:
        change["url"] = url
    if event:
        change["events"] = event
    if each is not None:
        change["roots_only"] = not each
    if not change:
        raise UsageError("the command names no change; add one, for example --url https://example.org/hook")
    from spinney.features.webhooks.commands import ChangeWebhook

    with open_commands(store, by) as performer:
        found = performer.do(ChangeWebhook(name=name, reason=reason, **change))
    if json:
        display.print_json(found)
    else:
        _show(found)


def rotate(
    name: NameArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Replace a webhook's signing secret and print the new one, which is shown only once."""
    from spinney.features.webhooks.commands import RotateWebhook

    with open_commands(store, by) as performer:
        made = performer.do(RotateWebhook(name=name, reason=reason))
    _with_secret(name, made, json)


def ping(
    name: NameArgument, json: JsonOption = False, by: ByOption = None, store: StoreOption = None
) -> None:
    """Send a test event; 'webhook deliveries' shows its result."""
    from spinney.features.webhooks.commands import PingWebhook

    with open_commands(store, by) as performer:
        made = performer.do(PingWebhook(name=name))
    if json:
        display.print_json(made)
    else:
        typer.echo(
            f"delivery {made.delivery} is queued; a running server sends it, or 'spinney webhook deliver'"
        )


def pause(
    name: NameArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Pause a webhook until it is resumed; its deliveries are kept for 30 days."""
    from spinney.features.webhooks.commands import ChangeWebhook

    with open_commands(store, by) as performer:
        found = performer.do(ChangeWebhook(name=name, paused=True, reason=reason))
    _changed(found, f"webhook {name} is paused; 'spinney webhook resume {name}' lets it go on", json)


def resume(
    name: NameArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Resume a paused webhook and send its pending deliveries."""
    from spinney.features.webhooks.commands import ChangeWebhook

    with open_commands(store, by) as performer:
        found = performer.do(ChangeWebhook(name=name, paused=False, reason=reason))
    _changed(found, f"webhook {name} goes on", json)


def remove(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete a webhook with all its deliveries."""
    from spinney.features.webhooks.commands import RemoveWebhook, ShowWebhook

    with open_commands(store, by) as performer:
        performer.do(ShowWebhook(name=name))
        require_yes(f"Delete the webhook {name} with its pending deliveries?", yes=yes)
        performer.do(RemoveWebhook(name=name, reason=reason))
    if json:
        display.print_json({"removed": name})
    else:
        typer.echo(f"webhook {name} is deleted")


def deliveries(
    name: NameArgument,
    outcome: Annotated[
        str | None,
        typer.Option(
            metavar="OUTCOME", help="Only deliveries that are due, delivered or failed.", show_default=False
        ),
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

    with open_commands(store) as performer:
        asked = ListDeliveries(name=name, limit=limit, after=after, outcome=_outcome(outcome))
        found = performer.do(asked).items
    if json:
        display.print_json_lines(found)
        return
    rows = [
        (
            d.delivery,
            d.event,
            d.job_id,
            display.format_time(d.at_us),
            d.outcome,
            d.tries,
            d.status,
            display.format_time(d.next_us) if d.next_us else "",
            display.short_json(d.answer) if d.answer else "",
        )
        for d in found
    ]
    display.print_table(
        ("DELIVERY", "EVENT", "JOB", "AT", "OUTCOME", "TRIES", "STATUS", "NEXT", "ANSWER"), rows
    )


def retry(
    delivery: Annotated[
        str, typer.Argument(metavar="DELIVERY", help="The delivery's id.", show_default=False)
    ],
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Send a delivery again, whatever its result; it keeps its id."""
    from spinney.features.webhooks.commands import RetryDelivery

    with open_commands(store, by) as performer:
        found = performer.do(RetryDelivery(delivery=delivery, reason=reason))
    if json:
        display.print_json(found)
    else:
        typer.echo(f"delivery {delivery} is due; a running server sends it, or 'spinney webhook deliver'")


def deliver(
    private: Annotated[bool, typer.Option("--private", help="Also allow URLs of private addresses.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Send all due deliveries once, where no server runs, for example by cron. Exit code 1 if one was not delivered."""
    from spinney.model.settings.webhooks import DeliveryOutcome

    with open_local_store(store) as s:
        sent = [_line(delivery, told) for delivery, told in _sent(s, private)]
    counts = Counter(line["outcome"] for line in sent)
    if json:
        display.print_json_lines(sent)
    else:
        for line in sent:
            said = f"{line['status'] or 'no answer'} {line['answer'] or ''}".strip()
            typer.echo(display.safe(f"{line['webhook']} {line['delivery']} {line['outcome']}: {said}"))
        typer.echo(
            f"{counts[DeliveryOutcome.DELIVERED]:,} delivered, {len(sent) - counts[DeliveryOutcome.DELIVERED]:,} not"
        )
    if len(sent) != counts[DeliveryOutcome.DELIVERED]:
        raise typer.Exit(1)


# --- sending ----------------------------------------------------------------------------------


def _sent(store: "Store", private: bool) -> "Iterator[tuple[Delivery, DeliveryResult]]":
    """Each delivery that is due, sent, with what came of it. Of a webhook whose receiver did not take one the others
    wait for the next call: it may be away."""
    from spinney.features.webhooks import delivery as webhook_delivery
    from spinney.model.settings.webhooks import DeliveryOutcome
    from spinney.reports.safe_transport import SafeTransport

    def transport() -> SafeTransport:
        return SafeTransport(
            private=private, advice="give a public address, or add --private, and retry this delivery"
        )

    left: set[str] = set()
    while names := [
        name for name, at_us in store.webhooks.due().items() if at_us <= now_us() and name not in left
    ]:
        for name in names:
            taken = store.webhooks.take(
                {name: 1}, now_us=now_us(), until_us=now_us() + webhook_delivery.DELIVERY_LEASE_US
            )
            for each in taken:
                told = webhook_delivery.deliver(store, each, clock=now_us, transport=transport)
                if told.sent and told.outcome is not DeliveryOutcome.DELIVERED:
                    left.add(name)
                yield each.delivery, told


def _line(delivery: "Delivery", told: "DeliveryResult") -> dict[str, Any]:
    return {
        "delivery": delivery.delivery,
        "webhook": delivery.webhook,
        "event": delivery.event,
        "job_id": delivery.job_id,
        "outcome": told.outcome,
        "status": told.status,
        "answer": told.answer,
        "next_us": told.next_us,
    }


# --- words ------------------------------------------------------------------------------------


def _outcome(word: str | None) -> "DeliveryOutcome | None":
    from spinney.model.settings.webhooks import DeliveryOutcome
    from spinney.model.values.hints import did_you_mean

    if word is None:
        return None
    if word not in set(DeliveryOutcome):
        hint = did_you_mean(word, map(str, DeliveryOutcome))
        raise UsageError(f"no delivery is {word!r:.80}{hint}; use {', '.join(DeliveryOutcome)}")
    return DeliveryOutcome(word)


def _with_secret(name: str, made: "WebhookWithSecret", json: bool) -> None:
    if json:
        display.print_json({"webhook": made.webhook, "secret": made.secret})
        return
    typer.echo(f"webhook {name} is signed with this secret; it is not shown again:", err=True)
    typer.echo(made.secret)


def _changed(found: "Webhook", sentence: str, json: bool) -> None:
    if json:
        display.print_json(found)
    else:
        typer.echo(sentence)


def _show(webhook: "Webhook") -> None:
    within = [*(webhook.within.collections or ()), *(webhook.within.queues or ())]
    facts = (
        ("webhook", webhook.name),
        ("url", webhook.url),
        ("events", " ".join(webhook.events)),
        ("of", _of(webhook)),
        ("state", _state(webhook)),
        ("by", f"{webhook.by}, {display.format_time(webhook.at_us)}"),
        ("within", None if webhook.within.everywhere else " ".join(within) or "nothing"),
    )
    out = display.console()
    for label, value in facts:
        if value is not None:
            out.print(f"{label:<12} {display.safe(value)}")


def _of(webhook: "Webhook") -> str:
    named = (("type", webhook.type), ("collection", webhook.collection), ("queue", webhook.queue))
    said = [f"{kind} {name}" for kind, name in named if name is not None]
    return ", ".join(["batches and single jobs" if webhook.roots_only else "every job", *said])


def _state(webhook: "Webhook") -> str:
    return "active" if webhook.paused is None else f"paused: {webhook.paused}"
