"""Capacities of locks, as applications declare them and operators set them: rows of ``lock_capacities``.

The rows are read with the registry, whose counter every change increments: the next transaction of any node uses
them."""

from collections.abc import Iterable, Sequence

from spinney.model.errors import Refused
from spinney.model.settings.capacities import Capacities, CapacityInfo, LockCapacity, require_capacity
from spinney.model.values.hints import did_you_mean
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import RowMap, upsert

_CAPACITIES = RowMap(CapacityInfo, "lock_capacities", columns={"capacity": "coalesce(set_to, declared)"})


def read(tx: Tx) -> Capacities:
    """Return the capacities, as the current transaction sees them."""
    return Capacities.of(all_(tx))


def all_(tx: Tx) -> Sequence[CapacityInfo]:
    """Return the capacities of all locks that operators or applications have set, by name."""
    return _CAPACITIES.all(tx, "order by name")


def declare(tx: Tx, declared: Iterable[LockCapacity]) -> bool:
    """Store an application's declarations; return whether something is new. Operators' capacities stay in force."""
    before = {info.name: info.declared for info in all_(tx)}
    new = [capacity for capacity in declared if before.get(capacity.name) != capacity.capacity]
    tx.many(
        "insert into lock_capacities (name, declared) values (?, ?) "
        "on conflict (name) do update set declared = excluded.declared",
        [(capacity.name, capacity.capacity) for capacity in new],
    )
    return bool(new)


def put(tx: Tx, name: str, capacity: int | None, by: str, now_us: int) -> bool:
    """Set an operator's capacity, or remove it (None); return whether that changes anything, so that the
    caller touches the registry, wakes waiting jobs and writes the audit. ``name``: a lock, or a family
    (``download:*``).

    An application's declaration stays, and is in force again after a removal. Raises UsageError for an
    invalid capacity, and Refused when there is none to remove."""
    before = _CAPACITIES.one(tx, "where name = ?", (name,))
    if capacity is not None:
        require_capacity(capacity)
        if before is not None and before.by is not None and before.capacity == capacity:
            return False
        values = {"name": name, "set_to": capacity, "by": by, "at_us": now_us}
        upsert(tx, "lock_capacities", "name", values)
        return True
    if before is None or before.by is None:
        names = [info.name for info in all_(tx) if info.by is not None]
        raise Refused(
            f"no capacity has been set for {name!r}{did_you_mean(name, names)}; 'spinney locks --capacities' lists "
            f"what is set and declared"
        )
    if before.declared is None:
        tx.run("delete from lock_capacities where name = ?", (name,))
    else:
        tx.run("update lock_capacities set set_to = null, by = null, at_us = null where name = ?", (name,))
    return True
