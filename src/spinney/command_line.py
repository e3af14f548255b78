"""The parts of the command line for commands of applications: options, the connection to a store or a server, tables,
completion, exit codes, waiting for jobs. Packages add commands by the entry point group ``spinney.commands``."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.cli.remote import RetryingClient
    from spinney.client.calls import IDEMPOTENCY, Call, query_params
    from spinney.commands import Performs
    from spinney.features.files.job_files import files_of
    from spinney.features.submission.wait_cli import wait_for
    from spinney.terminal import completion, display, endpoint
    from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
    from spinney.terminal.connection import open_client, open_control, resolve_settings
    from spinney.terminal.exit_codes import Exit
    from spinney.terminal.for_each import for_each

__all__ = [
    "IDEMPOTENCY",
    "ByOption",
    "Call",
    "Exit",
    "JsonOption",
    "Performs",
    "RetryingClient",
    "StoreOption",
    "completion",
    "display",
    "endpoint",
    "files_of",
    "for_each",
    "open_client",
    "open_control",
    "query_params",
    "resolve_settings",
    "wait_for",
]

_HOMES = {
    "spinney.cli.remote": ("RetryingClient",),
    "spinney.client.calls": (
        "Call",
        "IDEMPOTENCY",
        "query_params",
    ),
    "spinney.commands": ("Performs",),
    "spinney.features.files.job_files": ("files_of",),
    "spinney.features.submission.wait_cli": ("wait_for",),
    "spinney.terminal": (
        "completion",
        "display",
        "endpoint",
    ),
    "spinney.terminal.arguments": (
        "ByOption",
        "JsonOption",
        "StoreOption",
    ),
    "spinney.terminal.connection": (
        "open_client",
        "open_control",
        "resolve_settings",
    ),
    "spinney.terminal.exit_codes": ("Exit",),
    "spinney.terminal.for_each": ("for_each",),
}
__getattr__, __dir__ = on_demand(__name__, _HOMES)
