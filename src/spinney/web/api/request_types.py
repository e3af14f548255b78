"""Types of parameters and bodies, for routes that are not made from commands.

Bodies refuse unknown fields (``extra="forbid"``), and convert no text to a number or the other way.
"""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict

from spinney.model.jobs import JOB_ID_MAX

JobId = Annotated[int, Path(alias="job", ge=1, le=JOB_ID_MAX, description="The job's number.", examples=[17])]
Fence = Annotated[int, Path(ge=1, le=2**62, description="The attempt's number, as the history shows it.")]


class RequestModel(BaseModel):
    """A JSON body of a request: it is checked strictly, and a field that is not declared is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
