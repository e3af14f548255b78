"""Arguments that several commands share, and their completion in shells."""

from typing import Annotated

import typer

from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.staff import PAUSABLE
from spinney.errors import SpinneyError


def profile_names(incomplete: str) -> list[str]:
    """Complete the names of profiles."""
    try:
        return [name for name in profiles.names_of(settings.load()) if name.startswith(incomplete)]
    except (SpinneyError, OSError):
        return []


def stages(incomplete: str) -> list[str]:
    """Complete the stages of an object."""
    return [stage for stage in STAGES if stage.startswith(incomplete)]


def batch_states(incomplete: str) -> list[str]:
    """Complete the states of batches."""
    return [str(state) for state in BatchState if state.startswith(incomplete)]


def pausable(incomplete: str) -> list[str]:
    """Complete the names of what can be paused."""
    return [name for name in PAUSABLE if name.startswith(incomplete)]


BatchArgument = Annotated[
    str, typer.Argument(metavar="BATCH", help="The batch: bid-…, or the number of its job.")
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile", help="Only those with this profile.", show_default=False, autocompletion=profile_names
    ),
]
StageOption = Annotated[
    str | None,
    typer.Option("--stage", help="Only at this stage.", show_default=False, autocompletion=stages),
]
