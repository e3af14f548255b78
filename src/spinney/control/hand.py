"""Who works on which store: what every part of ``control`` has in hand."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from spinney.model.operators import Author
from spinney.stores.contract import Store


@dataclass(frozen=True, kw_only=True)
class Hand:
    """One person's hand on a store."""

    store: Store
    clock: Callable[[], int]
    """Microseconds since 1970 UTC."""
    nudge: Callable[[], None]
    """Wakes the nodes that can be woken; called after every change they should see."""
    by: str
    """Who asks; kept with what was changed, and in the audit."""

    def author(self, reason: str | None = None) -> Author:
        """Who does what follows; one for each call of a verb, whatever its number of steps."""
        return Author(by=self.by, call=uuid.uuid4().hex, reason=reason)
