"""Settings of an application or a bridge: a TOML file, checked by a model of pydantic.

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

        session: Seconds = 30.0

    settings = read(Settings, Path("merritt.toml"), optional=True)

All errors are sentences that name the file and the key, and never the value, which may be a secret."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from spinney.config import document as document
from spinney.define.params.duration_field import DurationField
from spinney.files.paths import shown
from spinney.model.errors import UsageError
from spinney.model.values.texts import plain_message

_Model = TypeVar("_Model", bound=BaseModel)
_Value = TypeVar("_Value")
_Stamp = tuple[int, ...]
_FRESH_NS = 1_000_000_000
"""A file that was changed less than this before it was read is read again: it may have been changed once more within
one tick of the file system's clock."""


Seconds = Annotated[float, DurationField()]
"""A length of time: ``"90s"``, ``"12h"``, or a number of seconds."""


class FileCache(Generic[_Value]):
    """Keeps what was read from files until they change, so that a correction is in force at once, without a restart.
    Each module has one for its own settings:

        _CACHE = FileCache[Settings]()

        def load() -> Settings:
            return _CACHE.get(path, lambda: read(Settings, path))
    """

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[_Stamp | None, object, _Value]] = {}

    def get(self, path: Path, read: Callable[[], _Value], beside: object = None) -> _Value:
        """Return what ``read`` returns; it is called again when the file has changed, or what else the value depends on
        (``beside``). What is read where there is no file is kept, too. Raises what ``read`` raises; then nothing is
        kept."""
        stamp = _stamp(path)
        if path in self._kept:
            kept_stamp, kept_beside, value = self._kept[path]
            if (kept_stamp, kept_beside) == (stamp, beside):
                return value
        value = read()
        if stamp is None or time.time_ns() - stamp[-1] > _FRESH_NS:
            self._kept[path] = stamp, beside, value
        return value


def _stamp(path: Path) -> _Stamp | None:
    """Return what changes when a file is replaced or changed: device, inode, size, and the change time of the inode in
    nanoseconds, which cannot be set back. None: it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def read(model: type[_Model], path: Path, *, optional: bool = False) -> _Model:
    """Return the settings of a file; with ``optional`` the defaults where there is none. Validators get the file's
    folder as their context, for relative paths. Raises UsageError."""
    return checked(model, document(path, optional=optional), path, context=path.parent)


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
        f"{'.'.join(map(str, each['loc'])) or 'the file'}: {plain_message(shown(each['msg']))}"
        for each in error.errors(include_url=False, include_input=False)
    ]
