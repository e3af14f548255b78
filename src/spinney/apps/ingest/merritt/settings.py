"""The settings of a consumer of Merritt's queue: ``merritt.toml``.

queue = "/srv/ingest/queue"      # where Merritt's services keep payloads: a folder a batch, named by its uuid
work = ["batches", "jobs", "reports", "access"]      # what this consumer does; what is missing is left to others
states = ["Pending"]             # jobs are taken in these states, and no others (default: in all that are not ended)
server = "https://ingest.example.org"      # the server of Spinney; storage and inventory manifests are served there
mirror = false                   # whether batches of spinney ingest are shown in the queue, for tools that look there
session = "30s"                  # when a consumer has been silent for so long, others may take its jobs
poll = "10s"                     # how often the queue is read when no watch has fired
"""

from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from spinney import settings_files
from spinney.bridges.merritt import STEPS, JobState
from spinney.errors import UsageError
from spinney.settings_files import Seconds

FILE = "merritt.toml"
_TAKEN = STEPS[:-1]
Work = Literal["batches", "jobs", "reports", "access"]


class Settings(BaseModel):
    """All settings; see the example above."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queue: Path | None = None
    work: frozenset[Work] = frozenset(get_args(Work))
    states: tuple[JobState, ...] = _TAKEN
    server: str | None = None
    mirror: bool = False
    session: Annotated[Seconds, Field(ge=1, le=21_600)] = 30.0
    poll: Annotated[Seconds, Field(ge=0.1, le=600)] = 10.0


def load(path: Path) -> Settings:
    """Return the settings of a file; without one, the defaults. Raises UsageError that names the file."""
    settings = settings_files.read(Settings, path, optional=True)
    if not set(settings.states) <= set(_TAKEN):
        raise UsageError(f"{path}: states: jobs can be taken in {', '.join(_TAKEN)}; correct it there")
    return settings
