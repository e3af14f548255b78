"""Refusals in the audit, so that a flood of them does not fill it: nothing is ever removed there.

The first of its kind is entered at once. What is refused in the same way within a minute is counted here, and entered
as one with its number; of too many kinds at once the rest counts as one kind. A server that is killed loses the counts
of its last minute, never a first entry.
"""

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from spinney.model.operators import Author
from spinney.stores.operators import Audit

TOGETHER_US = 60_000_000
KINDS_MOST = 200
"""Kinds of one minute that are told apart."""
MANY, NOBODY = "(many)", "(nobody)"
"""Who was refused: various; somebody who is not known."""


@dataclass
class _Kind:
    since_us: int
    more: int = 0


class Refusals:
    """One for a server; any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, str, str], _Kind] = {}

    def enter(self, audit: Audit, by: str, verb: str, what: Mapping[str, Any], *, now_us: int) -> None:
        """Somebody was refused something. ``verb`` is one of few; ``what`` may be anything, but no secret."""
        key = (by, verb, orjson.dumps(what, option=orjson.OPT_SORT_KEYS).decode())
        with self._lock:
            if key not in self._kinds and len(self._kinds) >= KINDS_MOST:
                key = (MANY, verb, "{}")
            kind = self._kinds.get(key)
            if kind is not None:
                kind.more += 1
            else:
                self._kinds[key] = _Kind(since_us=now_us)
        if kind is None:
            _enter(audit, key, 1, now_us)
        self.flush(audit, now_us=now_us)

    def flush(self, audit: Audit, *, now_us: int, all_: bool = False) -> None:
        """Enter what has been counted for a minute (``all_``: or less, at the end)."""
        with self._lock:
            over = {k: v for k, v in self._kinds.items() if all_ or not 0 <= now_us - v.since_us < TOGETHER_US}
            for key in over:
                del self._kinds[key]
        for key, kind in over.items():
            if kind.more:
                _enter(audit, key, kind.more, now_us)


def _enter(audit: Audit, key: tuple[str, str, str], count: int, now_us: int) -> None:
    by, verb, what = key
    author = Author(by=by, call=uuid.uuid4().hex)
    audit.enter(verb, orjson.loads(what), author, count=count, now_us=now_us)
