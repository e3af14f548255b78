"""Queues, and the settings of operators, which override those that applications declare.

Settings are read with the registry, whose counter every change increments (``Registry.touch``): the next transaction of
any node uses them. How a claim applies them is in ``claims`` and ``registry.closed_to``.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from spinney.features.stats import sql as statistics
from spinney.model.access import AccessScope
from spinney.model.errors import Refused, UnknownType, UsageError
from spinney.model.jobs import Filter
from spinney.model.operators.queues import QueueChange, QueueInfo
from spinney.model.queue_selection import may_serve
from spinney.model.rights.actor import Actor
from spinney.model.settings.queues import SETTABLE, QueueSpec
from spinney.model.states import OPEN
from spinney.model.types import DEFAULT_QUEUE, TypeSpec
from spinney.model.values.hints import did_you_mean, first_of, listed, unknown
from spinney.model.values.unreadable import UNREADABLE
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.read import filter_queries
from spinney.store.sql.records import upsert
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import SqlPart


class SqlQueues(SqlPart):
    """The settings of queues. What operators set overrides what applications declare, at once and on all
    nodes.

    Every claim goes by what is in force when it is made; jobs that a node has already are run. Where a
    limit was lowered, the occupied slots become fewer as runs end, and no more are granted before that.
    Changes are audited in their own transaction.
    """

    def all(self, *, within: AccessScope | None = None) -> Sequence[QueueInfo]:
        """Return the queues that are declared, set or named, in the order of their names.

        ``within``: only the queues of these limits, with counts and types of the jobs within them;
        None: all.
        """
        queues = None if within is None else within.queues
        with self._session.look() as tx:
            registry = self._session.registry
            shown = sorted(name for name in registry.queue_names() if queues is None or name in queues)
            return _infos(tx, registry, shown, within)

    def get(self, name: str, *, within: AccessScope | None = None) -> QueueInfo:
        """Return one queue, with the counts and types of the jobs in ``within``. Raises UsageError
        for a queue that nobody has named."""
        with self._session.look() as tx:
            registry = self._session.registry
            _require_known(registry, name)
            return _infos(tx, registry, [name], within)[0]

    def in_force(self, name: str) -> QueueSpec:
        """Return the settings in force for a queue. One that does not exist has the defaults."""
        with self._session.look():
            return self._session.registry.queue(name)

    def change(self, name: str, change: QueueChange, actor: Actor, *, now_us: int) -> QueueInfo:
        """Change an operator's settings of a queue, and return the queue as it is then.

        Within one call, fields go back to what is declared first, then others are set, then nodes are
        removed from and added to the lists. A call that changes nothing is not in the audit.

        Raises UsageError (a queue that nobody has named, an invalid limit or node name), UnknownType,
        and Refused (to unpin it from, or unbar it for, a node where it is not; to bar a node while it is pinned).
        """
        with self._session.write() as tx:
            registry = self._session.registry
            _require_known(registry, name)
            before = registry.settings.get(name, {})
            settings = _changed_settings(registry, name, before, change)
            if settings != before:
                _write(tx, name, settings, actor, now_us)
                registry.touch(tx)
                note(tx, now_us, actor, "queue", {"queue": name, **_changes(before, settings)}, 1)
        return self.get(name)

    def create(self, spec: QueueSpec, actor: Actor, *, now_us: int) -> QueueInfo:
        """Declare a queue as an application would, and return it. A later declaration of an
        application replaces this one.

        Raises UnknownType, and Refused (it is declared or set already, its jobs are stored in another order, or it
        is both pinned and barred).
        """
        with self._session.write() as tx:
            registry = self._session.registry
            _require_new(registry, spec)
            _require_no_pins(spec, spec.barred)
            registry.register(tx, (), [spec])
            note(tx, now_us, actor, "queue create", spec.to_json() | {"queue": spec.name}, 1)
        return self.get(spec.name)

    def delete(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Remove the declaration and the settings of a queue.

        If a job type or a settled job names it, it is a queue with the default settings as soon as it
        is used again; an application that declares it restores it when it starts. Its lanes go with
        it, and what is kept by lane.

        Raises UsageError (a queue that nobody has named) and Refused (it has jobs, a schedule or an
        inbox submits to it, or a job type of a node that has not left names it).
        """
        with self._session.write() as tx:
            registry = self._session.registry
            _require_known(registry, name)
            _require_unused(tx, registry, name)
            for table in ("queues", "queue_settings"):
                tx.run(f"delete from {table} where name = ?", (name,))
            for table, column in (("throughput", "lane"), ("low_watermarks", "lane"), ("lanes", "id")):
                tx.delete_listed(table, column, registry.lanes_of(name))
            registry.touch(tx)
            note(tx, now_us, actor, "queue delete", {"queue": name}, 1)


# --- making and removing ----------------------------------------------------------------------


def _require_new(registry: Registry, spec: QueueSpec) -> None:
    """Raise Refused for a queue that is declared already, and UnknownType for a default type that does
    not exist."""
    if spec.name in registry.queues:
        raise Refused(
            f"there is a queue {spec.name!r} already; change it with 'spinney queue {spec.name} --limit N'"
        )
    if spec.type is not None:
        _require_type(registry, spec.type)


def _require_unused(tx: Tx, registry: Registry, name: str) -> None:
    """Raise Refused when the queue is still needed, or would be created again at once.

    The reasons are looked for from the cheapest and most likely on; the message names the first, and what
    to do about it.
    """
    if name == DEFAULT_QUEUE:
        raise Refused(f"the queue {name!r} always exists; 'spinney queue {name}' shows its settings")
    if filter_queries.count(tx.all, Filter(queue=name, states=OPEN), most=1) or _is_moved_to(tx, name):
        raise Refused(
            f"queue {name!r} still has jobs; move or cancel them first ('spinney list --queue {name}' shows them)"
        )
    for table, noun, verb in (("schedules", "schedule", "drop"), ("inboxes", "inbox", "remove")):
        for submitter, spec in tx.all(f"select name, spec from {table} order by name"):
            if _queue_of(spec) == name:
                raise Refused(
                    f"{noun} {submitter!r} submits jobs to queue {name!r}; {verb} it, or give it another queue, first"
                )
    for node in nodes.all_nodes(tx):
        for type_ in node.types:
            if type_ in registry.types and _names(registry.types[type_], name):
                raise Refused(
                    f"node {node.name!r} runs an application whose type {type_!r} names queue {name!r}; remove it from "
                    f"the code, and start the node again, first"
                )


def _is_moved_to(tx: Tx, name: str) -> bool:
    """Return whether a claimed or running job has been moved to this queue, and goes there with its next
    attempt.

    Its row still has the old queue, so the filter by queue does not find it. Leases are few, so they are
    read first.
    """
    sql = "select 1 from leases l cross join jobs where jobs.id = l.job_id and jobs.queue_moved = ? limit 1"
    return tx.exists(sql, (name,))


def _names(spec: TypeSpec, queue: str) -> bool:
    """Return whether a job type sends its jobs, or one of its stages, to a queue."""
    return queue in (spec.queue, *(stage.queue for stage in spec.stages))


def _queue_of(spec: str) -> str | None:
    """Return the queue that the row of a schedule or an inbox names for its jobs; None also for a row that cannot be
    read."""
    try:
        queue: str | None = orjson.loads(spec)["options"].get("queue")
    except UNREADABLE:
        return None
    return queue


# --- changing ---------------------------------------------------------------------------------


def _changed_settings(
    registry: Registry, name: str, before: Mapping[str, Any], change: QueueChange
) -> Mapping[str, Any]:
    """Return the settings after a change, in the order that ``SqlQueues.change`` promises.

    Raises UsageError, BadName, UnknownType and Refused for an invalid one; nothing has been written then.
    """
    if unknown := {*change.declared, *change.set} - SETTABLE:
        raise UsageError(
            f"{listed(unknown)} of a queue cannot be set at run time; set one of: {listed(SETTABLE)}"
        )
    settings = {field: value for field, value in before.items() if field not in change.declared}
    settings |= {
        field: tuple(value) if isinstance(value, list) else value for field, value in change.set.items()
    }
    spec = registry.in_force(name, settings)  # checks the settings
    if change.set.get("type") is not None:
        _require_type(registry, change.set["type"])
    for field, verb, removed, added in (
        ("pinned", "pinned to", change.unpin, change.pin),
        ("barred", "barred from", change.unbar, change.bar),
    ):
        if removed or added:
            # From the list in force: pins that are only declared become the operator's, together with the
            # change.
            settings[field] = _changed_nodes(name, verb, getattr(spec, field), removed, added)
    changed = registry.in_force(name, settings)  # checks the lists of nodes that were just made
    _require_no_pins(changed, {*changed.barred} - {*registry.in_force(name, before).barred})
    return settings


def _require_no_pins(spec: QueueSpec, barred: Collection[str]) -> None:
    """Raise Refused where further nodes are barred from a queue that is pinned: the bars would have no effect."""
    if barred and spec.pinned:
        pins = first_of(spec.pinned)
        raise Refused(
            f"queue {spec.name!r} is pinned to {pins}: no other node serves it, and a bar has no effect on these; "
            f"remove pins instead ('spinney queue {spec.name} --unpin NODE'), or all of them with '--nodes any' first"
        )


def _changed_nodes(
    queue: str, verb: str, nodes: tuple[str, ...], removed: tuple[str, ...], added: tuple[str, ...]
) -> tuple[str, ...]:
    """Return a list of nodes without those that are removed and with those that are added. Raises Refused for one to
    remove that is not in it. ``verb``: the word for the message: ``pinned to``, …."""
    for node in removed:
        if node not in nodes:
            raise Refused(
                f"queue {queue!r} is not {verb} node {node!r}{did_you_mean(node, nodes)}; "
                f"it is {verb}: {', '.join(nodes) or 'none'}"
            )
    remaining = [node for node in nodes if node not in removed]
    return tuple(dict.fromkeys([*remaining, *added]))


def _write(tx: Tx, name: str, settings: Mapping[str, Any], actor: Actor, now_us: int) -> None:
    """Write the settings of a queue, or remove its row when none is left, so that it counts as declared
    again."""
    if not settings:
        tx.run("delete from queue_settings where name = ?", (name,))
        return
    text = orjson.dumps(settings).decode()
    upsert(tx, "queue_settings", "name", {"name": name, "settings": text, "by": actor.by, "at_us": now_us})


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the new value of each setting that changed, for the audit.

    An empty value becomes ``none``, since an entry leaves out None; a setting that was removed becomes
    ``as declared``.
    """
    changes = {
        field: "none" if value in (None, ()) else value
        for field, value in after.items()
        if field not in before or before[field] != value
    }
    return changes | dict.fromkeys(before.keys() - after.keys(), "as declared")


def _require_known(registry: Registry, name: str) -> None:
    names = registry.queue_names()
    if name not in names:
        raise UsageError(unknown("queue", name, names))


def _require_type(registry: Registry, name: str) -> None:
    if name not in registry.types:
        raise UnknownType(unknown("job type", name, registry.types))


# --- reads ------------------------------------------------------------------------------------


def _infos(tx: Tx, registry: Registry, names: Sequence[str], within: AccessScope | None) -> list[QueueInfo]:
    """Return these queues as the transaction sees them; the numbers and types are those of jobs in
    ``within``.

    ``unknown`` are types of pending and running jobs that no active node has, ``unserved`` those that
    only nodes have which may not serve the queue: together they say why jobs do not start. External
    workers are nodes here, if they claim.
    """
    active = [node for node in nodes.all_nodes(tx) if node.claims]
    set_by = {name: (by, at_us) for name, by, at_us in tx.all("select name, by, at_us from queue_settings")}
    pending, _ = statistics.pending(tx, registry, within)
    slots = [(registry.lanes[s.lane], s.node, s.slot) for s in statistics.slots(tx, within)]
    waiting: Counter[str] = Counter()
    types_of: dict[str, set[str]] = {}
    for kind, n in pending.items():
        waiting[kind.queue] += n
        types_of.setdefault(kind.queue, set()).add(kind.type)
    occupied: dict[str, set[tuple[int, int]]] = {}
    for lane, node_id, slot in slots:
        types_of.setdefault(lane.queue, set()).add(lane.type)
        occupied.setdefault(lane.queue, set()).add((node_id, slot))
    known_types = {type_ for node in active for type_ in node.types}
    infos, serving_slots = [], nodes.ServingSlots(tx)
    for name in names:
        spec = registry.queue(name)
        serving = [node for node in active if may_serve(spec, node.name, node.serves)]
        served_types = {type_ for node in serving for type_ in node.types}
        types = types_of.get(name, set()) | ({spec.type} if spec.type is not None else set())
        knowing = {node.name for node in serving if not types or types & set(node.types)}
        by, at_us = set_by.get(name, (None, None))
        infos.append(
            QueueInfo(
                queue=name,
                in_force=spec,
                declared=registry.declared.get(name),
                settings=registry.settings.get(name, {}),
                by=by,
                at_us=at_us,
                pending=waiting[name],
                active=len(active),
                running=len(occupied.get(name, ())),
                nodes=tuple(sorted({node.name for node in serving})),
                nodes_without_types=tuple(sorted({node.name for node in serving} - knowing)),
                types=tuple(sorted(types)),
                unknown=tuple(sorted(types - known_types)),
                unserved=tuple(sorted((types & known_types) - served_types)),
                limit=serving_slots.limit(spec),
            )
        )
    return infos
