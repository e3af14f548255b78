"""The parts of the command line for commands of applications: options, the connection to a store or a server, tables,
completion, exit codes, waiting for jobs. Packages add commands by the entry point group ``spinney.commands``."""

from typing import TYPE_CHECKING

from spinney.public_names import on_demand

if TYPE_CHECKING:
    from spinney.client.calls import IDEMPOTENCY as IDEMPOTENCY
    from spinney.client.calls import Call as Call
    from spinney.client.calls import query_params as query_params
    from spinney.commands import Performs as Performs
    from spinney.features.files.job_files import files_of as files_of
    from spinney.features.submission.wait_cli import wait_for as wait_for
    from spinney.terminal import completion as completion
    from spinney.terminal import endpoint as endpoint
    from spinney.terminal.commands import Shown as Shown
    from spinney.terminal.commands import add_command as add_command
    from spinney.terminal.commands import command as command
    from spinney.terminal.commands import list_command as list_command
    from spinney.terminal.commands import steps as steps
    from spinney.terminal.confirmation import require_yes as require_yes
    from spinney.terminal.connection import open_client as open_client
    from spinney.terminal.connection import open_control as open_control
    from spinney.terminal.connection import resolve_settings as resolve_settings
    from spinney.terminal.connection import use_store as use_store
    from spinney.terminal.exit_codes import Exit as Exit
    from spinney.terminal.for_each import for_each as for_each
    from spinney.terminal.options.arguments import ByOption as ByOption
    from spinney.terminal.options.arguments import JsonOption as JsonOption
    from spinney.terminal.options.arguments import StoreOption as StoreOption
    from spinney.terminal.options.arguments import YesOption as YesOption
    from spinney.terminal.options.model_options import with_fields as with_fields
    from spinney.terminal.output import display as display
    from spinney.terminal.patience import PatientPerformer as PatientPerformer
    from spinney.terminal.remote import RetryingClient as RetryingClient
else:
    __all__, __getattr__, __dir__ = on_demand(
        __name__,
        {
            "spinney.client.calls": "Call IDEMPOTENCY query_params",
            "spinney.commands": "Performs",
            "spinney.features.files.job_files": "files_of",
            "spinney.features.submission.wait_cli": "wait_for",
            "spinney.terminal": "completion endpoint",
            "spinney.terminal.commands": "Shown add_command command list_command steps",
            "spinney.terminal.confirmation": "require_yes",
            "spinney.terminal.connection": "open_client open_control resolve_settings use_store",
            "spinney.terminal.exit_codes": "Exit",
            "spinney.terminal.for_each": "for_each",
            "spinney.terminal.options.arguments": "ByOption JsonOption StoreOption YesOption",
            "spinney.terminal.options.model_options": "with_fields",
            "spinney.terminal.output": "display",
            "spinney.terminal.patience": "PatientPerformer",
            "spinney.terminal.remote": "RetryingClient",
        },
    )
