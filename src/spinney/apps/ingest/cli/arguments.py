"""Arguments that several commands share, and what a shell offers for them."""

from typing import Annotated

import typer

from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.staff import PAUSABLE
from spinney.errors import SpinneyError


def profile_names(incomplete: str) -> list[str]:
    """The profiles there are."""
    try:
        return [name for name in profiles.names_of(settings.load()) if name.startswith(incomplete)]
    except (SpinneyError, OSError):
        return []


def stages(incomplete: str) -> list[str]:
    """Those of an object."""
    return [stage for stage in STAGES if stage.startswith(incomplete)]


def batch_states(incomplete: str) -> list[str]:
    """As batches are shown."""
    return [str(state) for state in BatchState if state.startswith(incomplete)]


def pausable(incomplete: str) -> list[str]:
    """What can be paused."""
    return [what for what in PAUSABLE if what.startswith(incomplete)]


BatchArgument = Annotated[str, typer.Argument(metavar="BATCH", help="bid-…, or the number of its job.")]
ProfileOption = Annotated[
    str | None,
    typer.Option("--profile", help="Only of this profile.", show_default=False, autocompletion=profile_names),
]
StageOption = Annotated[
    str | None,
    typer.Option("--stage", help="Only at this stage.", show_default=False, autocompletion=stages),
]
