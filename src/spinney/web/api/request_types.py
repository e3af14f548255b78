"""What requests may say to routes that are made of no command.

They refuse what they do not know (``extra="forbid"``) and turn no text into a number or the other way.
"""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict

from spinney.model.jobs import JOB_ID_MAX

JobId = Annotated[int, Path(alias="job", ge=1, le=JOB_ID_MAX, description="The job's number.", examples=[17])]
Fence = Annotated[int, Path(ge=1, le=2**62, description="The attempt's number, as the history tells it.")]


class RequestModel(BaseModel):
    """A body of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
