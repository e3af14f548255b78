"""The commands ``nodes``, ``drain``, ``resume`` and ``slots``: list nodes, stop and resume them, set their slots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.errors import UsageError
from spinney.model.fleet import SLOTS_MAX
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.connection import open_commands

if TYPE_CHECKING:
    from spinney.commands import Performs
    from spinney.model.fleet import NodeStatus

DEFAULT = "default"
_NAMED = 4
"""So many types of a node are named in a table; ``--json`` has all."""

NodeArgument = Annotated[
    str,
    typer.Argument(
        metavar="NODE", help="The node's name.", show_default=False, autocompletion=completion.nodes
    ),
]
ReasonOption = Annotated[
    str | None, typer.Option(help="The reason, recorded in the audit log.", show_default=False)
]


def add_to(app: typer.Typer) -> None:
    for command in (nodes, drain, resume, slots):
        app.command()(command)


def nodes(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the nodes with their state, slots, load and queues, and which of them is the leader."""
    from spinney.features.nodes.commands import ListNodes

    with open_commands(store) as performer:
        found = performer.do(ListNodes()).items
    if json:
        display.print_json_lines(found)
    elif not found:
        typer.echo("no node is running; start one with 'spinney node'")
    else:
        display.print_table(
            ("NODE", "HOST", "STATE", "SLOTS", "LOAD", "VERSION", "TYPES", "QUEUES", ""),
            [
                (
                    n.node,
                    n.host,
                    _state(n),
                    f"{n.used}/{n.slots}",
                    _load(n),
                    n.version,
                    _some(n.types),
                    _queues(n),
                    _notes(n),
                )
                for n in found
            ],
        )


def drain(
    node: NodeArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Stop a node from taking new jobs, until 'resume'. Running jobs finish; jobs not yet started go to other nodes."""
    from spinney.features.nodes.commands import DrainNode

    with open_commands(store, by) as performer:
        performer.do(DrainNode(node=node, reason=reason))
        there = _named(performer, node)
    if json:
        display.print_json_lines(there)
        return
    if not there:
        typer.echo(
            f"node {node} is not running; when it starts it takes no jobs before 'spinney resume {node}'"
        )
        return
    used = sum(n.used for n in there)
    at_work = (
        f"{used} of its slots {'is' if used == 1 else 'are'} still at work" if used else "nothing runs on it"
    )
    typer.echo(f"node {node} takes no new jobs; {at_work}; 'spinney resume {node}' lets it go on")


def resume(
    node: NodeArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Let a drained node take new jobs again."""
    from spinney.features.nodes.commands import ResumeNode

    with open_commands(store, by) as performer:
        performer.do(ResumeNode(node=node, reason=reason))
        there = _named(performer, node)
    if json:
        display.print_json_lines(there)
    else:
        typer.echo(
            f"node {node} goes on" if there else f"node {node} is not running; when it starts it takes jobs"
        )


def slots(
    node: NodeArgument,
    number: Annotated[
        str,
        typer.Argument(
            metavar="N",
            help=f"How many jobs run there at once, or '{DEFAULT}' for the number it was started with.",
            show_default=False,
        ),
    ],
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Set how many slots a node has, now and whenever it starts again."""
    from spinney.features.nodes.commands import SetSlots

    with open_commands(store, by) as performer:
        done = performer.do(SetSlots(node=node, slots=_number(number), reason=reason))
        there = _named(performer, node)
    if json:
        display.print_json_lines(there)
        return
    told = "the slots that it was started with" if done.slots is None else f"{done.slots} slots"
    more = sum(n.used for n in there) - max((n.slots for n in there), default=0)
    beyond = f"; {more} more are still at work, and take no new jobs" if more > 0 else ""
    typer.echo(f"node {node} has {told}{beyond}")


def _number(text: str) -> int | None:
    if text == DEFAULT:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(
            f"{text!r:.40} is not a number of slots; give 1 to {SLOTS_MAX:,}, or '{DEFAULT}' for that of its start"
        )
    return int(text)


def _named(performer: "Performs", name: str) -> "Sequence[NodeStatus]":
    from spinney.features.nodes.commands import ListNodes

    return [n for n in performer.do(ListNodes()).items if n.node == name]


def _state(node: "NodeStatus") -> str:
    if node.state in ("silent", "dead"):
        lease = "unknown" if node.lease_s is None else f"{node.lease_s:g} s"
        return f"{node.state} since {display.format_time(node.seen_us)} (lease {lease})"
    return node.state


def _load(node: "NodeStatus") -> str:
    load = node.load
    if load is None:
        return ""
    return f"{load.one_minute:.2f} of {load.cpus}, {load.memory_free_bytes / 2**30:.1f} GiB free"


def _some(types: Sequence[str]) -> str:
    more = len(types) - _NAMED
    return ", ".join(types[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _queues(node: "NodeStatus") -> str:
    if node.serves.all:
        return "all"
    if node.serves.active:
        return ", ".join(node.serves.active)
    return f"all but {', '.join(node.serves.ignored)}"


def _notes(node: "NodeStatus") -> str:
    notes = ["leader"] if node.is_leader else []
    if node.drained_by is not None:
        notes.append(
            f"drained by {node.drained_by}" + (f": {node.drained_reason}" if node.drained_reason else "")
        )
    if node.slots != node.slots_started:
        notes.append(f"started with {node.slots_started} slots")
    if node.trouble is not None:
        notes.append(node.trouble)
    return "; ".join(notes)
