"""What a verb is, and how its answer becomes JSON."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import BaseModel, ConfigDict, Field

from spinney.apps.ingest.staff import Service

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""No database keeps a NUL."""


class Verb(BaseModel):
    """Something that a person asks of the service: its fields are what it is asked with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ClassVar[str]
    """As on the command line, and at the end of its address."""
    changes: ClassVar[bool] = False
    """Whether it changes anything: then it is a POST, else a GET."""
    is_long: ClassVar[bool] = False
    """Whether it may take longer than a moment."""

    def run(self, service: Service) -> Mapping[str, Any]:
        """Do it in the name of the person, and return the answer; that of a list has ``items``."""
        raise NotImplementedError


def written(answer: Mapping[str, Any]) -> bytes:
    """An answer as JSON: the same, to the byte, at hand and through a server."""
    return orjson.dumps(answer, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "__fspath__"):
        return str(value)
    return list(value)
