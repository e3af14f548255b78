"""The table of tags: how each pulses, so that its bursts can be told from others'.

Its columns are the fields of ``Tag``; others are ignored, so that the table may have columns for people."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spinney.errors import UsageError
from spinney.settings_files import faults

Milliseconds = Annotated[float, Field(gt=0, le=10_000)]


class Tag(BaseModel):
    """A tag. It sends bursts of four pulses, with three gaps between them, at an interval."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tag: str = Field(min_length=1, max_length=100)
    """Its name, unique in the table."""
    project: str = ""
    """Who deployed the tag."""
    frequency: float = Field(gt=0)
    """The nominal frequency in MHz."""
    gap1: Milliseconds
    """The times between its first and second pulse, second and third (``gap2``), third and fourth (``gap3``),
    in ms."""
    gap2: Milliseconds
    gap3: Milliseconds
    interval: float = Field(gt=0, le=3600)
    """Seconds from one burst to the next."""
    tolerance: Milliseconds = 1.5
    """By how many milliseconds each gap may differ."""
    spread: float = Field(default=0.5, gt=0)
    """By how many kHz the pulses of a burst may differ from its first."""

    @property
    def gaps_s(self) -> tuple[float, float, float]:
        """Return the three gaps between the four pulses of a burst, in seconds."""
        return self.gap1 / 1000, self.gap2 / 1000, self.gap3 / 1000

    @property
    def span_s(self) -> float:
        """Return the longest that a burst may last, in seconds."""
        return (self.gap1 + self.gap2 + self.gap3 + 3 * self.tolerance) / 1000


def read_tags(path: Path) -> tuple[Tag, ...]:
    """Return the tags of a table, in its order: CSV with a heading, or a JSON list of objects; empty fields
    count as missing. Raises UsageError for a file that cannot be read, for a wrong row, whose number and
    field it names, and for a name that is there twice."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows: list[Mapping[str, Any]] = (
            json.loads(text) if path.suffix.lower() == ".json" else list(csv.DictReader(text.splitlines()))
        )
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise UsageError(f"the table of tags {path} cannot be read: {error}") from error
    if not isinstance(rows, list):
        raise UsageError(f"the table of tags {path} is JSON, but no list; write a list of objects")
    tags = []
    for number, row in enumerate(rows, 1):
        try:
            tags.append(Tag.model_validate({k: v for k, v in row.items() if v not in ("", None)}))
        except (ValidationError, AttributeError) as error:
            fault = faults(error)[0] if isinstance(error, ValidationError) else "row: no object"
            raise UsageError(f"row {number} of {path}: {fault}; correct it") from error
    names = [tag.tag for tag in tags]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the table of tags {path} has {twice!r} twice; remove one")
    return tuple(tags)
