"""The commands ``queues`` and ``queue``: list queues, and change the settings of one while nodes work.

Without options ``queue`` shows the queue; each option changes one setting and leaves the others as they are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer

from spinney.commands import Performs, Returns
from spinney.features.queues.commands import ChangeQueue, CreateQueue, DeleteQueue, ListQueues, ShowQueue
from spinney.model.errors import NoSuch, UsageError
from spinney.model.operators.queues import QueueInfo
from spinney.model.settings.queues import QueueSpec
from spinney.model.values import limits
from spinney.model.values.hints import did_you_mean
from spinney.model.values.limits import Limit
from spinney.model.values.texts import whole_number
from spinney.terminal import completion, endpoint
from spinney.terminal.commands import Facts, Shown, list_command, steps
from spinney.terminal.connection import open_local_store
from spinney.terminal.options.arguments import StoreOption, argument, option
from spinney.terminal.output import display

NONE, ANY, DECLARED = "none", "any", "declared"
"""Words that options take instead of a value: no limit or type, no pins and bars, what the application
declares."""

app = typer.Typer()


def note(info: QueueInfo) -> str | None:
    """Return the sentence that says what keeps all nodes from the queue, or from some of its jobs; None when nothing
    does.

    Only the first of several reasons, the one that has to be dealt with before any other matters.
    """
    if info.in_force.limit == 0:
        return "shut: its limit is 0"
    if not info.active:
        return "no node is running"
    if not info.nodes:
        return _nobody(info.in_force)
    if info.unknown:
        return f"no active node knows type {' or '.join(info.unknown)}"
    if info.unserved:
        return f"no node that may serve it knows type {' or '.join(info.unserved)}"
    return None


def _nobody(spec: QueueSpec) -> str:
    """Return why none of the active nodes serves a queue."""
    if spec.pinned:
        return f"no node that it is pinned to is active ({', '.join(spec.pinned)})"
    return "no active node may serve it" if spec.barred else "no active node serves it"


def _nodes_text(spec: QueueSpec) -> str:
    """Return which nodes may serve a queue."""
    if spec.pinned:
        return f"only {', '.join(spec.pinned)}"
    return f"not {', '.join(spec.barred)}" if spec.barred else "any"


list_command(
    app,
    ListQueues,
    "queues",
    "List the queues with their limits, default types, nodes and jobs.",
    {
        "QUEUE": lambda info: info.queue,
        "LIMIT": lambda info: limits.as_text(info.in_force.limit, info.limit),
        "TYPE": lambda info: info.in_force.type,
        "NODES": lambda info: _nodes_text(info.in_force),
        "PENDING": lambda info: f"{info.pending:,}",
        "RUNNING": lambda info: f"{info.running:,}",
        "SET BY": lambda info: info.by,
        "": note,
    },
)


def _node_option(help_: str) -> Any:
    return option(metavar="NODE", help_=f"{help_}; may be repeated.", complete=completion.nodes)


@steps(
    app,
    ChangeQueue,
    "queue",
    others=False,
    name=argument("QUEUE", complete=completion.queues),
    limit=option(
        metavar="N|N%",
        complete=completion.limits,
        parser=str,
        help_="Slots that its jobs may use on all nodes together, or a percentage such as 50%; 0 starts nothing, "
        "'none' is no limit, 'declared' is what the application declares.",
    ),
    type=option(
        metavar="TYPE",
        complete=completion.types,
        help_="The job type for submissions that name only the queue; 'none', or 'declared'.",
    ),
    pin=_node_option("Let only pinned nodes serve the queue, and pin this one"),
    unpin=_node_option("Remove a pin"),
    bar=_node_option("Stop this node from serving a queue that is not pinned"),
    unbar=_node_option("Remove a bar"),
)
def queue(
    words: ChangeQueue,
    performer: Performs,
    *,
    nodes: Annotated[
        str | None,
        option(
            metavar="any|declared",
            complete=completion.of_any_node,
            help_="Remove all pins and bars, or reset them to the declared ones; --pin and --bar apply after it.",
        ),
    ] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="Create a queue that no application declares, with the settings given here."
        ),
    ] = False,
    order: Annotated[
        str | None,
        option(
            metavar="default|fifo|lifo",
            help_="With --create: oldest tree first (default), oldest job first (fifo), or newest first (lifo).",
        ),
    ] = None,
    sharing: Annotated[
        str | None, option(metavar="shares|quota|none", help_="With --create: how slots are shared.")
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the settings of a queue that has no open jobs.")
    ] = False,
    store: StoreOption = None,
) -> Shown:
    """Show a queue, or change its settings. They apply to every node at once; running jobs finish their
    stage."""
    name, reason, change = words.name, words.reason, _change_fields(words, nodes)
    if not create and (order is not None or sharing is not None):
        raise UsageError(
            "the order and the sharing of a queue are fixed when it is created; give them with --create"
        )
    if delete:
        if create or change:
            raise UsageError("--delete removes all settings of the queue; leave the other options out")
        return _delete(performer, name, reason)
    if not (create or change) and reason is not None:
        raise UsageError("--reason is recorded with a change; add the change, for example --limit N")
    command: Returns[QueueInfo]
    if create:
        command = CreateQueue(
            name=name, order=order or "default", sharing=sharing, reason=reason, **_create_fields(change)
        )
    else:
        command = ChangeQueue(name=name, reason=reason, **change) if change else ShowQueue(name=name)
    with _no_such_is_usage():
        info = performer.do(command)
    _warn_of_unknown(store, [*words.pin, *words.bar])
    return Shown(info, _facts(info))


def _delete(performer: Performs, name: str, reason: str | None) -> Shown:
    """Delete the settings of a queue; return what is shown. Raises UsageError where there is no such queue."""
    with _no_such_is_usage():
        performer.do(DeleteQueue(name=name, reason=reason))
    return Shown(
        {"deleted": name},
        f"queue {name} is deleted; an application that declares it creates it again when a node starts",
    )


@contextmanager
def _no_such_is_usage() -> Iterator[None]:
    """Raise UsageError for a queue that does not exist, as for a wrong option."""
    try:
        yield
    except NoSuch as error:
        raise UsageError(str(error)) from None


def _change_fields(words: ChangeQueue, nodes: str | None) -> dict[str, Any]:
    """Return the changes that options name, as fields of ``ChangeQueue``; empty when no option names one.

    ``nodes``: the word of ``--nodes``. Raises UsageError.
    """
    declared: list[str] = []
    fields: dict[str, Any] = {}
    if words.limit == DECLARED:
        declared.append("limit")
    elif words.limit is not None:
        fields["limit"] = _slots(str(words.limit))
    if words.type == DECLARED:
        declared.append("type")
    elif words.type is not None:
        fields["type"] = None if words.type == NONE else words.type
    if nodes == DECLARED:
        declared += ["pinned", "barred"]
    elif nodes == ANY:
        fields |= {"pinned": [], "barred": []}
    elif nodes is not None:
        raise UsageError(
            f"--nodes is 'any' or 'declared', not {nodes!r:.80}; name nodes with --pin and --bar"
        )
    lists = {name: getattr(words, name) for name in ("pin", "unpin", "bar", "unbar")}
    return fields | {name: value for name, value in {"declared": declared, **lists}.items() if value}


def _create_fields(change: dict[str, Any]) -> dict[str, Any]:
    """Return the changes as fields of ``CreateQueue``. Raises UsageError for those that need an existing
    queue."""
    if not change.keys().isdisjoint(("declared", "unpin", "unbar")):
        raise UsageError(
            "a queue created here has no declared settings, and no pins and bars to remove; leave those options out"
        )
    fields = {"limit": "limit", "type": "type", "pin": "pinned", "bar": "barred"}
    return {fields[name]: value for name, value in change.items() if name in fields}


def _slots(text: str) -> Limit | None:
    """Return the limit that ``--limit`` gives: a number, a percentage as text, or None for ``none``.
    Raises UsageError."""
    if text == NONE:
        return None
    if text.endswith("%"):
        limits.check("--limit", text)
        return text
    number = whole_number(text, digits=10)
    if number is None:
        raise UsageError(
            f"--limit {text!r:.80} is not a number of slots; write --limit 4, 50%, 'none' or 'declared'"
        )
    return number


def _warn_of_unknown(store: str | None, nodes: Sequence[str]) -> None:
    """Print a warning about nodes that have never joined.

    One that will join later may be named, but a mistyped name looks the same. Through a server nothing is
    printed, since that does not list the nodes of the past.
    """
    if not nodes or endpoint.server(store):
        return
    with open_local_store(store) as local_store:
        joined = local_store.bulk.names("node")
    for node in nodes:
        if node not in joined:
            typer.echo(
                f"spinney: no node {node!r} has ever joined this store{did_you_mean(node, joined)}", err=True
            )


def _facts(info: QueueInfo) -> Facts:
    """Return the facts of a queue as name and value, in the order in which they are shown."""
    spec = info.in_force
    return [
        ("queue", info.queue),
        ("limit", f"{limits.as_text(spec.limit, info.limit)}{_declared(info, ('limit',), _limit_text)}"),
        ("type", f"{_type_text(spec)}{_declared(info, ('type',), _type_text)}"),
        ("nodes", f"{_nodes_text(spec)}{_declared(info, ('pinned', 'barred'), _nodes_text)}"),
        ("order", f"{spec.order}, sharing {spec.shared}{f', {spec.turn} a turn' if spec.turn > 1 else ''}"),
        ("served by", ", ".join(map(partial(_node_text, info), info.nodes)) or "no active node"),
        ("pending", f"{info.pending:,}"),
        ("running", f"{info.running:,}"),
        ("set by", None if info.by is None else f"{info.by}, {display.format_time(info.at_us)}"),
        ("note", note(info)),
    ]


def _node_text(info: QueueInfo, node: str) -> str:
    """Return the name of a node that may serve the queue, and whether it can."""
    return f"{node} (knows none of its types)" if node in info.nodes_without_types else node


def _declared(info: QueueInfo, fields: Sequence[str], text: Callable[[QueueSpec], str]) -> str:
    """Return what is declared where an operator has set one of these fields, as the end of their line, else nothing.
    ``text``: the words for them."""
    if info.settings.keys().isdisjoint(fields):
        return ""
    return f" (set; {'nothing is declared' if info.declared is None else f'declared: {text(info.declared)}'})"


def _limit_text(spec: QueueSpec) -> str:
    return "no limit" if spec.limit is None else str(spec.limit)


def _type_text(spec: QueueSpec) -> str:
    return spec.type or "none"
