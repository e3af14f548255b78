"""A duration as a field of a pydantic model, such as a body of the API or a table of ``spinney.toml``."""

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from spinney.model.errors import UsageError
from spinney.model.values import durations


class DurationField:
    """Seconds, given as a number or as text. It follows the bounds of its field:
    ``Annotated[float, Field(gt=0), DurationField()]``.

    ``word``: the value is a word of a query, where digits alone are a number.
    """

    def __init__(self, *, word: bool = False) -> None:
        self._seconds = durations.of_word if word else durations.seconds

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        text = {"type": "string", "pattern": durations.PATTERN, "examples": ["90s", "1h30m"]}
        return {"anyOf": [handler(core), text]}

    def _read(self, length: Any) -> float:
        try:
            return self._seconds(length)
        except UsageError as error:
            raise ValueError(str(error)) from None
