"""The store of a command, which also decides where the monitor's tables are.

Unless the settings name other tables, they stand beside the store. So a command that takes ``--store`` has to make it
the store of the whole process before the settings are loaded."""

import os

from spinney.command_line import endpoint, resolve_settings
from spinney.config import ENVIRONMENT


def use_store(store: str | None) -> None:
    """Make a store the one of this process and of those that it starts, by the environment variable that
    settings and nodes read. ``store``: as the option gives it; None: the configured one. Raises UsageError
    for the address of a server, because commands of the monitor read its tables themselves."""
    endpoint.require_local(store)
    os.environ[ENVIRONMENT] = resolve_settings(store).store
