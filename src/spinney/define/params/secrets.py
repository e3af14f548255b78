"""The annotation that declares a parameter as a secret, and its least length."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinney.define.params.redaction import MIN_SECRET_LENGTH
from spinney.model.errors import UsageError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

_CLASS = "Secret is a class; write Annotated[str, Secret()], with the parentheses"
_NO_TEXT = "Secret marks text; annotate str, pydantic.SecretStr or SecretBytes, or one of them or None"


@dataclass(frozen=True, slots=True)
class Secret:
    """Declare a text parameter as a secret: it is stored for the stage, and shown as ``••••••``.

        def login(user: str, password: Annotated[SecretStr, Secret()]) -> None: ...
        def unlock(door: str, pin: Annotated[str, Secret(min_length=4)]) -> None: ...

    ``min_length``: a submission with fewer characters is refused. In messages, output, data and results a secret is
    detected by its text, and only one of 6 characters or more, because a shorter one occurs in any text by chance. So 6
    is the default, and with a lower number the value may be visible there. The annotated type may be ``str``,
    ``pydantic.SecretStr`` or ``SecretBytes``, or one of them or None; any other raises UsageError."""

    min_length: int = MIN_SECRET_LENGTH

    def __post_init__(self) -> None:
        if type(self.min_length) is not int or self.min_length < 1:
            raise UsageError(
                f"min_length of a Secret must be a whole number of 1 or more, not {self.min_length!r}"
            )

    def __get_pydantic_core_schema__(
        self, source: Any, handler: "GetCoreSchemaHandler | None" = None
    ) -> "CoreSchema":
        if handler is None:  # ``self`` is the source then, as the class itself was called
            raise UsageError(_CLASS)
        from pydantic_core import core_schema  # a worker without secrets need not import it

        return core_schema.no_info_after_validator_function(self.require_long, handler(source))

    def __get_pydantic_json_schema__(
        self, core: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> dict[str, Any]:
        schema = handler(core)
        for alternative in schema.get("anyOf", [schema]):
            if alternative.get("type") == "string":
                alternative |= {
                    "minLength": max(self.min_length, alternative.get("minLength", 0)),
                    "format": "password",
                }
            elif alternative.get("type") != "null":
                raise UsageError(_NO_TEXT)
        return schema | {"writeOnly": True}

    def require_long(self, value: Any) -> Any:
        """Return a value that is long enough. Raises ValueError, which does not quote it."""
        plain = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        text = plain.decode("utf-8", "replace") if isinstance(plain, bytes) else plain
        if text is not None and len(text) < self.min_length:
            raise ValueError(f"a secret has {self.min_length} characters or more")
        return value


def is_mark(value: object) -> bool:
    """Return whether a value, such as a default, is the mark of a secret."""
    return value is Secret or isinstance(value, Secret)
