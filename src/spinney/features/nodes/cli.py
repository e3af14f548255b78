"""The commands ``nodes``, ``drain``, ``resume`` and ``slots``: list nodes, stop and resume them, set their
slots.

An order is for a name, whether a node of that name is running or not; the sentence that is printed says
which.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from spinney.commands import Performs
from spinney.features.nodes.commands import DrainNode, ListNodes, ResumeNode, SetSlots
from spinney.model.errors import UsageError
from spinney.model.fleet import SLOTS_MAX, NodeStatus
from spinney.model.values.hints import first_of
from spinney.model.values.texts import counted, whole_number
from spinney.terminal import completion
from spinney.terminal.commands import Shown, list_command, steps
from spinney.terminal.options.arguments import argument
from spinney.terminal.output import display

DEFAULT = "default"
"""The word for the number of slots with which a node was started."""
_TYPES_SHOWN = 4
"""How many types of a node are named in a table; ``--json`` has all."""

NODE = argument("NODE", complete=completion.nodes)


app = typer.Typer()


def _number(text: str) -> int | None:
    """Return the number of slots; None for the word ``default``. Raises UsageError."""
    if text == DEFAULT:
        return None
    number = whole_number(text, digits=9)
    if number is None:
        raise UsageError(
            f"{text!r:.40} is not a number of slots; give 1 to {SLOTS_MAX:,}, or '{DEFAULT}' for that of its start"
        )
    return number


def _running(performer: Performs, name: str) -> Sequence[NodeStatus]:
    """Return the nodes of this name that have neither left nor died."""
    return [node for node in performer.do(ListNodes()).items if node.node == name and node.is_running]


def _state(node: NodeStatus) -> str:
    """Return the state of a node; for one that is silent or dead, also since when, and the lease after which it counts
    as dead."""
    if node.state in ("silent", "dead"):
        lease = "unknown" if node.lease_s is None else f"{node.lease_s:g} s"
        return f"{node.state} since {display.format_time(node.seen_us)} (lease {lease})"
    return node.state


def _load(node: NodeStatus) -> str:
    """Return the load of a node's host over a minute beside its CPUs, and its free memory; empty where a
    node reports none."""
    load = node.load
    if load is None:
        return ""
    return f"{load.one_minute:.2f} of {load.cpus}, {load.memory_free_bytes / 1e9:.1f} GB free"


def _queues(node: NodeStatus) -> str:
    """Return which queues a node serves: all, only some, or all but some."""
    if node.serves.all:
        return "all"
    if node.serves.active:
        return ", ".join(node.serves.active)
    return f"all but {', '.join(node.serves.ignored)}"


def _notes(node: NodeStatus) -> str:
    """Return what else is worth knowing: leadership, who drained it, other slots than at its start, and
    trouble."""
    notes = ["leader"] if node.is_leader else []
    if node.drained_by is not None:
        notes.append(
            f"drained by {node.drained_by}" + (f": {node.drained_reason}" if node.drained_reason else "")
        )
    if node.slots != node.slots_started:
        notes.append(f"started with {counted(node.slots_started, 'slot')}")
    if node.trouble is not None:
        notes.append(node.trouble)
    return "; ".join(notes)


list_command(
    app,
    ListNodes,
    "nodes",
    "List the nodes with their state, slots, load and queues, and which of them is the leader.",
    {
        "NODE": lambda node: node.node,
        "HOST": lambda node: node.host,
        "STATE": _state,
        "SLOTS": lambda node: f"{node.used}/{node.slots}",
        "LOAD": _load,
        "VERSION": lambda node: node.version,
        "TYPES": lambda node: first_of(node.types, _TYPES_SHOWN),
        "QUEUES": _queues,
        "": _notes,
    },
    empty="no node is running; start one with 'spinney node'",
)


@steps(app, DrainNode, "drain", node=NODE)
def drain(order: DrainNode, performer: Performs) -> Shown:
    """Stop a node from taking new jobs, until 'resume'. Running jobs finish; jobs not yet started go to other nodes."""
    orders = performer.do(order)
    node, running = order.node, _running(performer, order.node)
    used = sum(status.used for status in running)
    at_work = (
        f"{used} of its slots {'is' if used == 1 else 'are'} still at work" if used else "nothing runs on it"
    )
    return Shown(
        orders,
        f"node {node} takes no new jobs; {at_work}; 'spinney resume {node}' lets it go on"
        if running
        else f"node {node} is not running; when it starts it takes no jobs before 'spinney resume {node}'",
    )


@steps(app, ResumeNode, "resume", node=NODE)
def resume(order: ResumeNode, performer: Performs) -> Shown:
    """Let a drained node take new jobs again."""
    orders = performer.do(order)
    running = _running(performer, order.node)
    goes_on = "goes on" if running else "is not running; when it starts it takes jobs"
    return Shown(orders, f"node {order.node} {goes_on}")


@steps(app, SetSlots, "slots", node=NODE, slots=None)
def slots(
    order: SetSlots,
    performer: Performs,
    *,
    number: Annotated[
        str,
        argument("N", f"How many jobs run there at once, or '{DEFAULT}' for the number it was started with."),
    ],
) -> Shown:
    """Set how many slots a node has, now and whenever it starts again."""
    orders = performer.do(order.model_copy(update={"slots": _number(number)}))
    running = _running(performer, order.node)
    text = "the slots that it was started with" if orders.slots is None else counted(orders.slots, "slot")
    more = sum(status.used for status in running) - max((status.slots for status in running), default=0)
    beyond = f"; {more} more are still at work, and take no new jobs" if more > 0 else ""
    return Shown(orders, f"node {order.node} has {text}{beyond}")
