"""The base class of verbs, and the JSON form of their answers."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import BaseModel, ConfigDict, Field

from spinney.apps.ingest.staff import Service

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""Text without NUL, which databases cannot store."""


class Verb(BaseModel):
    """An operation that a person requests from the service; its fields are its parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ClassVar[str]
    """Its name on the command line, and at the end of its URL."""
    changes: ClassVar[bool] = False
    """Whether it changes anything: a POST if so, else a GET."""
    is_long: ClassVar[bool] = False
    """Whether it may take longer than a moment."""

    def run(self, service: Service) -> Mapping[str, Any]:
        """Run it in the name of the person, and return the answer; that of a list has ``items``."""
        raise NotImplementedError


def written(answer: Mapping[str, Any]) -> bytes:
    """Serialize an answer as JSON: byte for byte the same locally and through a server."""
    return orjson.dumps(answer, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "__fspath__"):
        return str(value)
    return list(value)
