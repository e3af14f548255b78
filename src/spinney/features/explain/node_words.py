"""The words for causes that lie with the nodes and external workers that could run a job: they are silent, drained, may
not serve its queue, or are not there. ``cause_words`` has the rules for such functions, and all other causes."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spinney.features.explain.explanation import NAMED
from spinney.model.values import durations

Facts = Mapping[str, Any]
Words = tuple[str, str | None]
"""A sentence without the final stop, and a command for a shell; None: no command would change anything."""
START_NODE = "spinney node"
"""The command for causes that end when a suitable node is started."""


def _silent(job_id: int, facts: Facts) -> Words:
    """No sign of life comes from the node or external worker that has the job (no ``type`` among the facts),
    or from the last one that could run it."""
    silence = no_sign_of_life(facts)
    if "external_worker" in facts:
        worker = f"external worker {facts['external_worker']}"
        if "type" in facts:
            claims = f"which claims {_external(facts)}"
            return f"{worker}, {claims}, {silence}; start the program that runs it", None
        return f"{worker} has it, but {silence}; it is about to be taken back", None
    if "type" in facts:
        sentence = f"node {facts['node']}, which knows job type {facts['type']!r}, {silence}"
        return f"{sentence}; if it is dead, start it again", _start(facts)
    back, command = taken_back(facts)
    return f"node {facts['node']} has it in slot {facts['slot']}, but {silence}; {back}", command


def _home(job_id: int, facts: Facts) -> Words:
    """The folder of the job is on another host. ``able`` is a node elsewhere that could run the job, had it
    no folder."""
    if facts["nodes"]:
        nobody = (
            f"and no node there ({few(facts['nodes'])}) may run it, as {facts['able']} might; start one there that "
            "may"
        )
    else:
        nobody = "where no node runs; start one there"
    return (
        f"its folder is on host {facts['host']} ({facts['path']}), {nobody}, or let go of the folder: then it goes on "
        "elsewhere with an empty one"
    ), f"spinney rehome {job_id}"


def _pinned(job_id: int, facts: Facts) -> Words:
    """The queue is pinned to nodes that are not there, or (``knowing``) do not know the type."""
    queue, pinned = facts["queue"], facts["pinned"]
    if "knowing" in facts:
        able = f"spinney queue {queue} --pin {facts['able'][0]}" if facts["able"] else None
        return (
            f"queue {queue!r} is pinned to {_nodes(pinned)}, and no active node of these knows job type "
            f"{facts['type']!r}, as {_nodes(facts['knowing'])} would"
        ), able
    draining = facts["draining"]
    drains = f" ({_listed(draining)} {'drains' if len(draining) == 1 else 'drain'})" if draining else ""
    inactive = "which is not active" if len(pinned) == 1 else "none of which is active"
    unpin = f"spinney queue {queue}" + "".join(f" --unpin {node}" for node in pinned)
    return (
        f"queue {queue!r} is pinned to {_nodes(pinned)}, {inactive}{drains}",
        unpin if facts["others"] else f"spinney node --name {pinned[0]}",
    )


def _barred(job_id: int, facts: Facts) -> Words:
    """Nodes may not serve the queue: the queue bars them, or they were started without it."""
    queue, barred, without = facts["queue"], facts["barred"], facts["without"]
    reasons = [f"queue {queue!r} is barred from {_nodes(barred)}"] if barred else []
    if without:
        reasons.append(
            f"{_nodes(without)} {'was' if len(without) == 1 else 'were'} started without queue {queue!r}"
        )
    among = "it is pinned to no other active node that" if facts["pinned"] else "no other active node"
    command = f"spinney queue {queue} --unbar {barred[0]}" if barred else f"spinney node --active {queue}"
    return f"{' and '.join(reasons)}; {among} knows job type {facts['type']!r}", command


def _not_served(job_id: int, facts: Facts) -> Words:
    """All nodes that know the type were started without the queue; for external workers (``workers``) the
    same."""
    if "workers" not in facts:
        return _barred(job_id, facts)
    queue = facts["queue"]
    return (
        f"no external worker that claims {_external(facts)} ({few(facts['workers'])}) may serve queue {queue!r}",
        f"spinney queue {queue}",
    )


def _drained(job_id: int, facts: Facts) -> Words:
    """An operator has drained all nodes that could run it. Who did so, and why, is for callers without limits
    only."""
    nodes = facts["nodes"]
    if "by" not in facts:
        return f"the nodes that may run it are drained: {', '.join(nodes)}", None
    by = f"by {facts['by']}" + (f" ({facts['reason']})" if facts["reason"] else "")
    command = f"spinney resume {shlex.quote(nodes[0])}"
    if len(nodes) == 1:
        return f"node {nodes[0]}, which knows job type {facts['type']!r}, is drained {by}", command
    more = " and more" if len(nodes) > NAMED else ""
    return (
        f"all nodes that know job type {facts['type']!r} are drained: {few(nodes)}{more}; {nodes[0]} {by}",
        command,
    )


def _draining(job_id: int, facts: Facts) -> Words:
    """A node that knows the type is stopping, and no active one knows it."""
    node, type_ = facts["nodes"][0], facts["type"]
    return f"node {node}, which knows job type {type_!r}, is draining and takes nothing new", START_NODE


def _degraded(job_id: int, facts: Facts) -> Words:
    """All nodes that may run it are in trouble. Only callers without limits get the trouble of the first one."""
    nodes, first = facts["nodes"], ""
    if "trouble" in facts:
        first = f": {facts['trouble']}" if len(nodes) == 1 else f" ({nodes[0]}: {facts['trouble']})"
    may = f"{_nodes(nodes[:NAMED])}, which may run it, {'is' if len(nodes) == 1 else 'are'} degraded{first}"
    return may, "spinney nodes"


def _unknown_type(job_id: int, facts: Facts) -> Words:
    """Nodes run, but none of them knows the type."""
    return f"no running node ({few(facts['nodes'])}) knows job type {facts['type']!r}", START_NODE


def _unknown_stage(job_id: int, facts: Facts) -> Words:
    """Nodes know the type, but the code of none of them has the stage: they were started with another version."""
    stage = f"stage {facts['stage']!r} of job type {facts['type']!r}"
    return f"no running node ({few(facts['nodes'])}) has code with {stage}", START_NODE


def _no_external_worker(job_id: int, facts: Facts) -> Words:
    return f"there is no external worker that claims {_external(facts)}; start the program that runs it", None


def no_sign_of_life(facts: Facts) -> str:
    return f"has given no sign of life for {durations.rounded(facts['silent_s'])}"


def taken_back(facts: Facts) -> Words:
    """Return what becomes of the jobs of a silent node, and the command that would change it."""
    match facts["back"]:
        case "later":
            lease = durations.shown(facts["lease_s"])
            return f"another node takes its jobs back once that has lasted {lease}", None
        case "soon":
            return "another node is about to take its jobs back", None
        case "late":
            return "no other node has taken its jobs back", "spinney doctor"
    return "if it is dead, start it again", _start(facts)


def _start(facts: Facts) -> str:
    """Return the command that starts the node of the facts again, which may have another name than its host."""
    return f"{START_NODE} --name {shlex.quote(facts['node'])}"


def _external(facts: Facts) -> str:
    return f"external stage {facts['stage']!r} of job type {facts['type']!r}"


def few(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED])


def _nodes(names: Sequence[str]) -> str:
    return f"{'node' if len(names) == 1 else 'nodes'} {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


NODE_WORDS: Mapping[str, Callable[[int, Facts], Words]] = {
    "silent": _silent,
    "home": _home,
    "pinned": _pinned,
    "barred": _barred,
    "not served": _not_served,
    "drained": _drained,
    "draining": _draining,
    "degraded": _degraded,
    "unknown type": _unknown_type,
    "unknown stage": _unknown_stage,
    "no external worker": _no_external_worker,
    "no node": lambda job_id, facts: ("no node is running", START_NODE),
}
"""The function for each of these causes."""
