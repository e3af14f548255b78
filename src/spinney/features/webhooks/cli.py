"""``webhook``: who is told when jobs settle, and what came of each telling."""

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
    str | None, typer.Option("--reason", help="Why; kept in the audit.", show_default=False)
]
EventOption = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        metavar="EVENT",
        show_default=False,
        help="completed, failed, cancelled, orphaned, batch (one with subjobs, however it ended), or '*': "
        "all; repeatable.",
    ),
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only of jobs of this type.",
        show_default=False,
        autocompletion=completion.types,
    ),
]
CollectionOption = Annotated[
    str | None,
    typer.Option(
        help="Only of jobs of this collection.", show_default=False, autocompletion=completion.collections
    ),
]
QueueOption = Annotated[
    str | None,
    typer.Option(help="Only of jobs in this queue.", show_default=False, autocompletion=completion.queues),
]

group = typer.Typer(
    help="Tell other services when jobs and batches settle.",
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
    url: Annotated[str, typer.Argument(metavar="URL", help="Where to: http or https.", show_default=False)],
    event: EventOption = None,
    type_: TypeOption = None,
    collection: CollectionOption = None,
    queue: QueueOption = None,
    each: Annotated[
        bool, typer.Option("--each", help="Of each subjob, too, not of batches and single jobs alone.")
    ] = False,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Tell a URL when jobs settle, from now on. Prints the secret with which it is signed: it is shown this once."""
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
    """List webhooks, by name."""
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
    """Show a webhook. Its secret is not shown: 'rotate' gives it another."""
    from spinney.features.webhooks.commands import ShowWebhook

    with open_commands(store) as performer:
        found = performer.do(ShowWebhook(name=name))
    if json:
        display.print_json(found)
    else:
        _show(found)


def set_(
    name: NameArgument,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Where to.", show_default=False)] = None,
    event: EventOption = None,
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only of jobs of this type; 'any': of all.",
            show_default=False,
            autocompletion=completion.types,
        ),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(
            help="Only of jobs of this collection; 'any': of all.",
            show_default=False,
            autocompletion=completion.collections,
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            help="Only of jobs in this queue; 'any': in all.",
            show_default=False,
            autocompletion=completion.queues,
        ),
    ] = None,
    each: Annotated[
        bool | None,
        typer.Option(
            "--each/--roots",
            help="Of each subjob, too; or of batches and single jobs alone.",
            show_default=False,
        ),
    ] = None,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Change a webhook. Waiting deliveries are sent to the new URL."""
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
        raise UsageError(
            "nothing would change; say what is to change, as with --url https://example.org/hook"
        )
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
    """Sign with a new secret from now on, and print it: it is shown this once."""
    from spinney.features.webhooks.commands import RotateWebhook

    with open_commands(store, by) as performer:
        made = performer.do(RotateWebhook(name=name, reason=reason))
    _with_secret(name, made, json)


def ping(
    name: NameArgument, json: JsonOption = False, by: ByOption = None, store: StoreOption = None
) -> None:
    """Send a ping on the way that everything else goes; 'deliveries' shows what came of it."""
    from spinney.features.webhooks.commands import PingWebhook

    with open_commands(store, by) as performer:
        made = performer.do(PingWebhook(name=name))
    if json:
        display.print_json(made)
    else:
        typer.echo(
            f"delivery {made.delivery} is sent by the next server that looks, or by 'spinney webhook deliver'"
        )


def pause(
    name: NameArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Send a webhook nothing until it is resumed; deliveries are kept for 30 days."""
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
    """Let a webhook go on; what has waited is sent."""
    from spinney.features.webhooks.commands import ChangeWebhook

    with open_commands(store, by) as performer:
        found = performer.do(ChangeWebhook(name=name, paused=False, reason=reason))
    _changed(found, f"webhook {name} goes on", json)


def remove(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Remove a webhook, with all its deliveries."""
    from spinney.features.webhooks.commands import RemoveWebhook, ShowWebhook

    with open_commands(store, by) as performer:
        performer.do(ShowWebhook(name=name))
        require_yes(f"Remove the webhook {name}, with what it has still to be told?", yes=yes)
        performer.do(RemoveWebhook(name=name, reason=reason))
    if json:
        display.print_json({"removed": name})
    else:
        typer.echo(f"webhook {name} is removed")


def deliveries(
    name: NameArgument,
    outcome: Annotated[
        str | None,
        typer.Option(metavar="OUTCOME", help="Only due, delivered or failed ones.", show_default=False),
    ] = None,
    after: Annotated[
        int,
        typer.Option(
            min=0, max=SEQ_MAX, metavar="SEQ", help="Only older ones than this number; 0: from the newest."
        ),
    ] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = DELIVERIES,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """What a webhook was told, and is to be, newest first: tries, last answer, next time."""
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
    """Send a delivery again, whatever came of it before; it keeps its id."""
    from spinney.features.webhooks.commands import RetryDelivery

    with open_commands(store, by) as performer:
        found = performer.do(RetryDelivery(delivery=delivery, reason=reason))
    if json:
        display.print_json(found)
    else:
        typer.echo(
            f"delivery {delivery} is due; the next server that looks sends it, or 'spinney webhook deliver'"
        )


def deliver(
    private: Annotated[
        bool, typer.Option("--private", help="URLs may lead to private addresses, too.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Send once what is due, where no server runs: for cron, or to try one. Ends with 1 when one was not taken."""
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
