"""The parts of the command line for commands of applications: options, the connection to a store or a server, tables,
completion, exit codes, waiting for jobs. Packages add commands by the entry point group ``spinney.commands``."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.client.calls import IDEMPOTENCY, Call, query_params
    from spinney.features.files.job_files import files_of
    from spinney.features.submission.wait_cli import LOOK_S, wait_for
    from spinney.terminal import completion, display, endpoint
    from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
    from spinney.terminal.connection import client_of, open_control, resolve_settings
    from spinney.terminal.exit_codes import Exit
    from spinney.terminal.for_each import for_each

__all__ = [
    "IDEMPOTENCY",
    "LOOK_S",
    "ByOption",
    "Call",
    "Exit",
    "JsonOption",
    "StoreOption",
    "client_of",
    "completion",
    "display",
    "endpoint",
    "files_of",
    "for_each",
    "open_control",
    "query_params",
    "resolve_settings",
    "wait_for",
]

_HOMES = {
    "spinney.client.calls": (
        "Call",
        "IDEMPOTENCY",
        "query_params",
    ),
    "spinney.features.files.job_files": ("files_of",),
    "spinney.features.submission.wait_cli": (
        "LOOK_S",
        "wait_for",
    ),
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
        "client_of",
        "open_control",
        "resolve_settings",
    ),
    "spinney.terminal.exit_codes": ("Exit",),
    "spinney.terminal.for_each": ("for_each",),
}
__getattr__, __dir__ = on_demand(__name__, _HOMES)
