"""The settings of a consumer of Merritt's queue: ``merritt.toml``.

queue = "/srv/ingest/queue"      # where Merritt's services keep payloads: a folder a batch, named by its uuid
work = ["batches", "jobs", "reports", "access"]      # what this consumer does; what is missing is left to others
states = ["Pending", "Estimating", "Provisioning"]      # the states whose work is done here (default: all)
server = "https://ingest.example.org"      # the server of Spinney; storage and inventory manifests are served there
mirror = false                   # whether batches of spinney ingest are shown in the queue, for tools that look there
session = "30s"                  # when a consumer has been silent for so long, others may take its jobs
poll = "10s"                     # how often the queue is read when no watch has fired
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from spinney import settings_files
from spinney.bridges.merritt import STEPS, JobState
from spinney.errors import UsageError
from spinney.settings_files import Seconds

FILE = "merritt.toml"
_TAKEN = STEPS[:-1]
"""The states in which a job can be taken: all steps except the last, Completed."""
Work = Literal["batches", "jobs", "reports", "access"]


class Settings(BaseModel):
    """All settings; see the example above. Unknown keys are refused, so that a misspelt one is not
    ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queue: Path | None = None
    work: frozenset[Work] = frozenset(get_args(Work))
    states: tuple[JobState, ...] = _TAKEN
    server: str | None = None
    mirror: bool = False
    session: Annotated[Seconds, Field(ge=1, le=21_600)] = 30.0
    poll: Annotated[Seconds, Field(ge=0.1, le=600)] = 10.0

    def left_to_others(self, state: JobState) -> JobState | None:
        """Return the first state from ``state`` on whose work Merritt's services do; None: all of it is done here."""
        return next((each for each in _TAKEN[_TAKEN.index(state) :] if each not in self.states), None)

    def require_queue(self) -> None:
        """Raise UsageError where the folder of batches is not set, and is needed."""
        if self.queue is None and self.work & {"batches", "jobs", "reports"}:
            raise UsageError(f"{FILE} has no 'queue', the folder where payloads of batches are; add it there")

    def require_payloads_in(self, roots: Sequence[Path]) -> None:
        """Raise UsageError where objects may not fetch the payloads of batches from their folder; ``roots``: the
        folders that ``file:`` URLs may be in."""
        folder = self.queue
        if folder and not any(folder.is_relative_to(root) for root in roots):
            raise UsageError(
                f"{FILE}: queue: {folder} is below none of the file_roots of the ingest settings, so that no payload "
                f"of a batch could be fetched; add it there"
            )

    @property
    def comes_back_in(self) -> JobState | None:
        """Return the state in which a job continues here after Merritt's services have done one step of it; None: it
        does not come back. Only Recording can be such a step."""
        is_shared = JobState.STORING in self.states and JobState.RECORDING not in self.states
        return JobState.NOTIFY if is_shared and JobState.NOTIFY in self.states else None


def load(path: Path) -> Settings:
    """Return the settings of a file; the defaults where there is none of the usual name.

    Raises UsageError that names the file where one of another name is missing, for unknown keys and invalid
    values, for states that cannot be taken, for a folder of batches that cannot be written, and where only
    one of Processing and Storing is named.
    """
    settings = settings_files.read(Settings, path, optional=path == Path(FILE))
    if not set(settings.states) <= set(_TAKEN):
        raise UsageError(f"{path}: states: jobs can be taken in {', '.join(_TAKEN)}; correct it there")
    if settings.queue is not None and not os.access(settings.queue, os.R_OK | os.W_OK | os.X_OK):
        raise UsageError(
            f"{path}: queue: {settings.queue} is no folder that can be written; correct it there"
        )
    if len({JobState.PROCESSING, JobState.STORING} & set(settings.states)) == 1:
        raise UsageError(f"{path}: states: Processing and Storing are one step here; name both or neither")
    return settings
