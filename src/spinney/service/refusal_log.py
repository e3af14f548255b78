"""Record refusals in the audit, without letting a flood of them fill it: nothing is ever removed from the audit.

The first of its kind is entered at once. Later refusals of the same kind are counted here, and entered as one entry
with their number after a minute; while they continue, after two minutes, four, … an hour. A kind is new again when
nothing of it was refused for an hour, so that nobody makes first ones by waiting a little. In an hour, only the first
twenty kinds of one name are told apart, and two hundred kinds over all names; the rest counts as one kind. Strangers
differ by nothing that they choose themselves: only the first entry of a kind has the token and the address, and the
entries of counted refusals have some addresses. So a stranger causes some thirty entries a day, however many requests
are sent.

A server that is killed loses the counts since its last entries, never a first entry.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from spinney.model.rights.actor import Actor

if TYPE_CHECKING:
    from spinney.store.sql.audit import SqlAudit

TOGETHER_US = 60_000_000
"""How long the second and later refusals of a kind are counted before they are entered."""
TOGETHER_MOST_US = 3_600_000_000
"""The longest time for which refusals of a kind are counted together, in microseconds."""
AT_ONCE = 20
"""Kinds of one name that are told apart within an hour."""
KINDS_MOST = 200
"""The most kinds that are told apart."""
ADDRESSES = 5
"""How many addresses an entry of counted refusals has."""
MANY, NOBODY = "(many)", "(nobody)"
"""The names of several callers together, and of a caller who is not known."""
_CHOSEN = ("address", "token")
"""Fields that a stranger chooses."""
_OTHERS = "{}"
"""Kinds that are not told apart."""
_Key = tuple[str, str, str]


@dataclass
class _Kind:
    """The refusals of one kind since its last entry. Times are microseconds since 1970."""

    since_us: int
    wait_us: int = TOGETHER_US
    more: int = 0
    addresses: list[str] = field(default_factory=list)

    def count(self, address: str | None) -> None:
        self.more += 1
        if address is not None and address not in self.addresses and len(self.addresses) < ADDRESSES:
            self.addresses.append(address)


@dataclass
class _Hour:
    """How many kinds of a name were told apart within the present hour."""

    since_us: int
    kinds: int = 0


class RefusalLog:
    """The refusal log of a server. It counts in memory and may be used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[_Key, _Kind] = {}
        self._hours: dict[str, _Hour] = {}

    def enter(
        self, audit: "SqlAudit", by: str, verb: str, details: Mapping[str, Any], *, now_us: int
    ) -> None:
        """Record that ``by`` was refused something: at once if it is the first of its kind, otherwise as a count.
        ``verb`` is one of few words; ``details`` may contain anything but secrets."""
        same = {key: value for key, value in details.items() if by != NOBODY or key not in _CHOSEN}
        with self._lock:
            key = self._key((by, verb, orjson.dumps(same, option=orjson.OPT_SORT_KEYS).decode()), now_us)
            kind = self._kinds.get(key)
            if kind is not None:
                kind.count(details.get("address"))
            else:
                self._kinds[key] = _Kind(since_us=now_us)
        if kind is None:
            _enter(audit, key, 1, now_us, {} if key[2] == _OTHERS else details)
        self.flush(audit, now_us=now_us)

    def flush(self, audit: "SqlAudit", *, now_us: int, all_: bool = False) -> None:
        """Write the entries of kinds that were counted long enough; with ``all_`` of every kind, at the end of the
        server."""
        counted: list[tuple[_Key, int, list[str]]] = []
        with self._lock:
            for key, kind in list(self._kinds.items()):
                if not all_ and not _over(kind.since_us, kind.wait_us, now_us):
                    continue
                if kind.more == 0:
                    if _over(kind.since_us, TOGETHER_MOST_US, now_us):  # the next counts as a first one
                        del self._kinds[key]
                    continue
                counted.append((key, kind.more, kind.addresses))
                wait_us = min(2 * kind.wait_us, TOGETHER_MOST_US)
                self._kinds[key] = _Kind(since_us=now_us, wait_us=wait_us)
            for by, hour in list(self._hours.items()):
                if _over(hour.since_us, TOGETHER_MOST_US, now_us):
                    del self._hours[by]
        for key, count, addresses in counted:
            _enter(
                audit, key, count, now_us, {"addresses": addresses} if addresses and key[0] == NOBODY else {}
            )

    def _key(self, key: _Key, now_us: int) -> _Key:
        """Return the kind under which a refusal counts: its own while there is room."""
        by, verb, _ = key
        if key in self._kinds:
            return key
        hour = self._hours.get(by)
        if hour is None or _over(hour.since_us, TOGETHER_MOST_US, now_us):
            if len(self._hours) >= KINDS_MOST:
                return MANY, verb, _OTHERS
            hour = self._hours[by] = _Hour(since_us=now_us)
        if hour.kinds >= AT_ONCE:
            return by, verb, _OTHERS
        if len(self._kinds) >= KINDS_MOST:
            return MANY, verb, _OTHERS
        hour.kinds += 1
        return key


def _over(since_us: int, wait_us: int, now_us: int) -> bool:
    """Return whether the time has passed, or the clock was set back behind its beginning."""
    return not 0 <= now_us - since_us < wait_us


def _enter(audit: "SqlAudit", key: _Key, count: int, now_us: int, more: Mapping[str, Any]) -> None:
    by, verb, details = key
    actor = Actor(by=by)
    audit.enter(verb, {**orjson.loads(details), **more}, actor, count=count, now_us=now_us)
