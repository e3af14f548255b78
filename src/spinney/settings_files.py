"""Settings of an application or a bridge: a TOML file, checked by a model of pydantic.

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

        session: Seconds = 30.0

    settings = read(Settings, Path("merritt.toml"), optional=True)

All errors are sentences that name the file and the key, and never the value, which may be a secret."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from spinney.files.paths import shown
from spinney.model.errors import UsageError
from spinney.model.values import durations

_Model = TypeVar("_Model", bound=BaseModel)


def _seconds(length: Any) -> float:
    try:
        return durations.seconds(length)
    except UsageError as error:
        raise ValueError(str(error)) from None


Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A length of time: ``"90s"``, ``"12h"``, or a number of seconds."""


def read(model: type[_Model], path: Path, *, optional: bool = False) -> _Model:
    """Return the settings of a file; with ``optional`` the defaults where there is none. Validators get the file's
    folder as their context, for relative paths. Raises UsageError."""
    return checked(model, document(path, optional=optional), path, context=path.parent)


def document(path: Path, *, optional: bool = False) -> dict[str, Any]:
    """Return what a TOML file has; with ``optional`` nothing where there is none. Raises UsageError."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        if optional and isinstance(error, FileNotFoundError):
            return {}
        raise UsageError(
            f"{path} cannot be read ({error.strerror}); correct its permissions, or the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}; correct it there") from None


def checked(
    model: type[_Model], fields: Mapping[str, Any], where: Path | str, *, context: Path | None = None
) -> _Model:
    """Return the settings that these fields mean. Raises UsageError that begins with ``where`` and names the first key
    that is wrong."""
    try:
        return model.model_validate(fields, context=context)
    except ValidationError as error:
        raise UsageError(f"{where}: {faults(error)[0]}; correct it there") from None


def faults(error: ValidationError) -> Sequence[str]:
    """Return for each key that a model refuses its name and the reason, without the value."""
    return [
        f"{'.'.join(map(str, each['loc'])) or 'the file'}: {shown(each['msg']).removeprefix('Value error, ')}"
        for each in error.errors(include_url=False, include_input=False)
    ]
