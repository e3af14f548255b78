"""Who makes a change, as it is entered with the change and in the audit."""

import os
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who does something, why, and in which call, for the audit."""

    by: str
    call: str = field(default_factory=lambda: os.urandom(16).hex())
    """An id that all steps of one call share."""
    reason: str | None = None
    account: str | None = None
    """The account whose rights apply; None: the caller has opened the store directly. Webhooks and schedules act later
    with the rights of the account that created them."""
