"""The commands ``queues`` and ``queue``: list queues, and change the settings of one while nodes work."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import NoSuch, UsageError
from spinney.model.values import limits
from spinney.model.values.hints import did_you_mean
from spinney.model.values.limits import Limit
from spinney.terminal import completion, display, endpoint
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.connection import open_commands, open_local_store

if TYPE_CHECKING:
    from spinney.commands import Performs
    from spinney.commands.command import Returns
    from spinney.model.rights.operators import QueueInfo
    from spinney.model.types import QueueSpec

NONE, ANY, DECLARED = "none", "any", "declared"
Nodes = list[str] | None


def add_to(app: typer.Typer) -> None:
    for command in (queues, queue):
        app.command()(command)


def queues(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the queues with their limits, default types, nodes and jobs."""
    from spinney.features.queues.commands import ListQueues

    with open_commands(store) as performer:
        found = performer.do(ListQueues()).items
    if json:
        display.print_json_lines(found)
        return
    rows = [
        (
            i.queue,
            limits.as_text(i.in_force.limit, i.limit),
            i.in_force.type or "",
            _whom(i.in_force),
            f"{i.pending:,}",
            f"{i.running:,}",
            i.by or "",
            note(i) or "",
        )
        for i in found
    ]
    display.print_table(("QUEUE", "LIMIT", "TYPE", "NODES", "PENDING", "RUNNING", "SET BY", ""), rows)


def _nodes(name: str, help_: str) -> Any:
    return typer.Option(
        f"--{name}", metavar="NODE", help=help_, show_default=False, autocompletion=completion.nodes
    )


def queue(
    name: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE", help="The queue's name.", show_default=False, autocompletion=completion.queues
        ),
    ],
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="N|N%",
            show_default=False,
            autocompletion=completion.limits,
            help="Slots that its jobs may use on all nodes together, or a percentage such as 50%; 0 starts nothing, "
            "'none' is no limit, 'declared' is what the application declares.",
        ),
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            show_default=False,
            autocompletion=completion.types,
            help="The job type for submissions that name only the queue; 'none', or 'declared'.",
        ),
    ] = None,
    pin: Annotated[
        Nodes, _nodes("pin", "Let only pinned nodes serve the queue, and pin this one; may be repeated.")
    ] = None,
    unpin: Annotated[Nodes, _nodes("unpin", "Remove a pin; may be repeated.")] = None,
    bar: Annotated[
        Nodes, _nodes("bar", "Stop this node from serving the queue, unless it is pinned; may be repeated.")
    ] = None,
    unbar: Annotated[Nodes, _nodes("unbar", "Remove a bar; may be repeated.")] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            "--nodes",
            metavar="any|declared",
            show_default=False,
            autocompletion=completion.of_any_node,
            help="Remove all pins and bars, or reset them to the declared ones; --pin and --bar apply after it.",
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
        typer.Option(
            metavar="default|fifo|lifo",
            show_default=False,
            help="With --create: oldest tree first (default), oldest job first (fifo), or newest first (lifo).",
        ),
    ] = None,
    sharing: Annotated[
        str | None,
        typer.Option(
            metavar="shares|quota|none", show_default=False, help="With --create: how slots are shared."
        ),
    ] = None,
    delete: Annotated[
        bool,
        typer.Option("--delete", help="Delete the settings of a queue that has no open jobs."),
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="The reason, recorded in the audit log.", show_default=False)
    ] = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Show a queue, or change its settings. They apply to every node at once; running jobs finish their stage."""
    from spinney.features.queues.commands import ChangeQueue, CreateQueue, DeleteQueue, ShowQueue

    change = _change(limit, type_, nodes, pin=pin, unpin=unpin, bar=bar, unbar=unbar)
    if not create and (order is not None or sharing is not None):
        raise UsageError(
            "the order and the sharing of a queue are fixed when it is created; give them with --create"
        )
    if delete:
        if create or change:
            raise UsageError("--delete removes all settings of the queue; leave the other options out")
        with _performer(store, by) as performer:
            performer.do(DeleteQueue(name=name, reason=reason))
        typer.echo(
            f"queue {name} is deleted; an application that declares it creates it again when a node starts"
        )
        return
    if not (create or change) and reason is not None:
        raise UsageError("--reason is recorded with a change; add the change, for example --limit N")
    asked: Returns[QueueInfo]
    if create:
        asked = CreateQueue(
            name=name, order=order or "default", sharing=sharing, reason=reason, **_made(change)
        )
    else:
        asked = ChangeQueue(name=name, reason=reason, **change) if change else ShowQueue(name=name)
    with _performer(store, by if create or change else None) as performer:
        found = performer.do(asked)
    _warn(store, [*(pin or ()), *(bar or ())])
    if json:
        display.print_json(found)
    else:
        _show(found)


def note(info: "QueueInfo") -> str | None:
    """What keeps all nodes from it, or some of its jobs, if anything does."""
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


def _nobody(spec: "QueueSpec") -> str:
    if spec.pinned:
        return f"no node that it is pinned to is active ({', '.join(spec.pinned)})"
    return "no active node may serve it" if spec.barred else "no active node serves it"


@contextmanager
def _performer(store: str | None, by: str | None = None) -> "Iterator[Performs]":
    """What does commands. Here a queue that is not there is a word that cannot be meant, as that of an option."""
    with open_commands(store, by) as performer:
        try:
            yield performer
        except NoSuch as error:
            raise UsageError(str(error)) from None


def _change(limit: str | None, type_: str | None, nodes: str | None, **lists: Nodes) -> dict[str, Any]:
    """What is said, by the fields of ``ChangeQueue``."""
    declared: list[str] = []
    said: dict[str, Any] = {}
    if limit == DECLARED:
        declared.append("limit")
    elif limit is not None:
        said["limit"] = _slots(limit)
    if type_ == DECLARED:
        declared.append("type")
    elif type_ is not None:
        said["type"] = None if type_ == NONE else type_
    if nodes == DECLARED:
        declared += ["pinned", "barred"]
    elif nodes == ANY:
        said |= {"pinned": [], "barred": []}
    elif nodes is not None:
        raise UsageError(
            f"--nodes is 'any' or 'declared', not {nodes!r:.80}; name nodes with --pin and --bar"
        )
    return said | {name: value for name, value in {"declared": declared, **lists}.items() if value}


def _made(change: dict[str, Any]) -> dict[str, Any]:
    """The same by the fields of ``CreateQueue``."""
    if not change.keys().isdisjoint(("declared", "unpin", "unbar")):
        raise UsageError(
            "a queue created here has no declared settings, and no pins and bars to remove; leave those options out"
        )
    fields = {"limit": "limit", "type": "type", "pin": "pinned", "bar": "barred"}
    return {fields[name]: value for name, value in change.items() if name in fields}


def _slots(text: str) -> Limit | None:
    if text == NONE:
        return None
    if text.endswith("%"):
        limits.check("--limit", text)
        return text
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise UsageError(
            f"--limit {text!r:.80} is not a number of slots; write --limit 4, 50%, 'none' or 'declared'"
        )
    return int(text)


def _warn(store: str | None, nodes: Sequence[str]) -> None:
    """Nodes that are to come may be named; a name that was mistyped looks the same. A server does not list those that
    have ever joined."""
    if not nodes or endpoint.server(store):
        return
    with open_local_store(store) as there:
        known = there.bulk.names("node")
    for node in (node for node in nodes if node not in known):
        typer.echo(
            f"spinney: no node {node!r} has ever joined this store{did_you_mean(node, known)}", err=True
        )


def _show(info: "QueueInfo") -> None:
    spec, out = info.in_force, display.console()
    for what, told, fields in (
        ("queue", info.queue, ()),
        ("limit", limits.as_text(spec.limit, info.limit), ("limit",)),
        ("type", spec.type or "none", ("type",)),
        ("nodes", _whom(spec), ("pinned", "barred")),
        ("order", f"{spec.order}, sharing {spec.shared}", ()),
        ("served by", ", ".join(info.nodes) or "no active node", ()),
        ("pending", f"{info.pending:,}", ()),
        ("running", f"{info.running:,}", ()),
    ):
        out.print(f"{what:<12} {display.safe(told)}{_over(info, fields)}")
    if info.by is not None:
        out.print(f"{'set by':<12} {display.safe(info.by)}, {display.format_time(info.at_us)}")
    if (said := note(info)) is not None:
        out.print(f"{'note':<12} {display.safe(said)}")


def _over(info: "QueueInfo", fields: tuple[str, ...]) -> str:
    """What is declared, where an operator has set something over it."""
    if not any(field in info.settings for field in fields):
        return ""
    said: Mapping[str, str] = {"limit": "no limit", "type": "none"}
    if info.declared is None:
        return " (set; nothing is declared)"
    if fields == ("pinned", "barred"):
        return f" (set; declared: {_whom(info.declared)})"
    (field,) = fields
    value = getattr(info.declared, field)
    return f" (set; declared: {display.safe(str(said[field] if value is None else value))})"


def _whom(spec: "QueueSpec") -> str:
    """Which nodes may serve it, as it says itself."""
    if spec.pinned:
        return f"only {', '.join(spec.pinned)}"
    return f"not {', '.join(spec.barred)}" if spec.barred else "any"
