"""Commands: what people ask of a store, each as a value.

A command is a class with its docstring, its fields with their constraints, the role that it takes, and its handler.
From this one definition come the route of the API with its part of the OpenAPI document
(``spinney.web.api.command_routes``), the call of the client (``Client.do``), and both command lines, on a store and
through a server (``spinney.terminal.connection.open_commands``). A feature's commands stand in its module
``commands``; docs/design.md has an example.
"""

from spinney.commands.command import (
    Command,
    CompletePerformer,
    LocalPerformer,
    Performs,
    Returns,
    Route,
    each,
)

__all__ = ["Command", "CompletePerformer", "LocalPerformer", "Performs", "Returns", "Route", "each"]
"""``Performs``: whatever does commands, near or far."""
