"""The settings of a consumer of Merritt's queue: ``merritt.toml``.

queue = "/srv/ingest/queue"      # where Merritt's services keep payloads: a folder a batch, named by its uuid
work = ["batches", "jobs", "reports", "access"]      # what this consumer does; what is missing is left to others
states = ["Pending"]             # jobs are taken in these states, and no others (default: in all that are not ended)
server = "https://ingest.example.org"      # the server of Spinney; storage and inventory manifests are served there
session = "30s"                  # when a consumer has been silent for so long, others may take its jobs
poll = "10s"                     # how often the queue is read when no watch has fired
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from spinney.bridges.merritt import STEPS, JobState
from spinney.errors import UsageError

FILE = "merritt.toml"
_TIME = {"s": 1, "m": 60, "h": 3600}
_TAKEN = STEPS[:-1]
Work = Literal["batches", "jobs", "reports", "access"]


def _seconds(value: Any) -> Any:
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+)([smh])", value)):
        return int(match[1]) * _TIME[match[2]]
    return value


class Settings(BaseModel):
    """All settings; see the example above."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queue: Path | None = None
    work: frozenset[Work] = frozenset(get_args(Work))
    states: tuple[JobState, ...] = _TAKEN
    server: str | None = None
    session: Annotated[float, BeforeValidator(_seconds), Field(ge=1, le=21_600)] = 30.0
    poll: Annotated[float, BeforeValidator(_seconds), Field(ge=0.1, le=600)] = 10.0


def load(path: Path) -> Settings:
    """Return the settings of a file; without one, the defaults. Raises UsageError that names the file."""
    try:
        settings = Settings.model_validate(
            tomllib.loads(path.read_text("utf-8")) if path.exists() else {}, strict=False
        )
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the settings {path}: {error}; correct it") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: {key}: {first['msg']}; correct it") from None
    if not set(settings.states) <= set(_TAKEN):
        raise UsageError(f"{path}: states: jobs can be taken in {', '.join(_TAKEN)}; correct it")
    return settings
