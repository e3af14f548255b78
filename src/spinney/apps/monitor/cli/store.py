"""The store of a command, which also decides where the monitor's tables are."""

import os

from spinney.command_line import endpoint, resolve_settings
from spinney.config import ENVIRONMENT


def use_store(store: str | None) -> None:
    """Make a store the one of this process and of those that it starts. Raises UsageError for a server: commands of the
    monitor read its tables themselves."""
    endpoint.require_local(store)
    os.environ[ENVIRONMENT] = resolve_settings(store).store
