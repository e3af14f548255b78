"""The paths of objects below a storage root, and the documents that declare the layout.

OCFL 1.1 section 4, and extension 0003 (hashed truncated n-tuple trees with an object id's folder), which is
preferred to 0004 because the folder's name still contains the id when every inventory is lost.
"""

import hashlib
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from spinney.apps.ingest.storage.place import Document, Read
from spinney.files.digests import ALGORITHMS
from spinney.files.paths import NotAdmitted, shown
from spinney.settings_files import faults

ROOT_DECLARATION = "0=ocfl_1.1"
ROOT_DECLARED = b"ocfl_1.1\n"
OBJECT_DECLARATION = "0=ocfl_object_1.1"
OBJECT_DECLARED = b"ocfl_object_1.1\n"
OBJECT_DECLARATION_1_0 = "0=ocfl_object_1.0"
EXTENSION = "0003-hash-and-id-n-tuple-storage-layout"
LAYOUT = "ocfl_layout.json"
CONFIG = f"extensions/{EXTENSION}/config.json"
STAGING = "extensions/spinney-staging"

_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_FOLDER_MAX = 100
"""The longest encoded id that is a folder's name as it is (extension 0003)."""
_ID_MAX_BYTES = 4096


class Layout(BaseModel):
    """The parameters of extension 0003, with its own defaults."""

    model_config = ConfigDict(frozen=True, strict=True)

    algorithm: Literal["md5", "sha1", "sha256", "sha512"] = Field(default="sha256", alias="digestAlgorithm")
    tuple_size: int = Field(default=3, alias="tupleSize", ge=0, le=32)
    tuples: int = Field(default=3, alias="numberOfTuples", ge=0, le=32)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.tuple_size * self.tuples > ALGORITHMS[self.algorithm]:
            raise ValueError("the tuples have more digits than a digest")
        if (self.tuple_size == 0) != (self.tuples == 0):
            raise ValueError("tupleSize and numberOfTuples are 0 only together")
        return self

    def path(self, object_id: str) -> str:
        """Return the path of an object, relative to the storage root. Raises NotAdmitted for an invalid id."""
        encoded_id = checked_id(object_id).encode()
        digest = hashlib.new(self.algorithm, encoded_id, usedforsecurity=False).hexdigest()
        tuples = [digest[i * self.tuple_size : (i + 1) * self.tuple_size] for i in range(self.tuples)]
        return "/".join([*tuples, _folder(encoded_id, digest)])


def checked_id(object_id: str) -> str:
    """Return an object's id if it is valid; otherwise raise NotAdmitted."""
    if not object_id or not object_id.isprintable() or object_id != object_id.strip():
        raise NotAdmitted(
            f"'{shown(object_id[:200])}' is no id of an object; give an ARK such as ark:/99999/fk4abc"
        )
    if len(object_id.encode()) > _ID_MAX_BYTES:
        raise NotAdmitted(
            f"the id '{shown(object_id[:40])}…' is longer than {_ID_MAX_BYTES} bytes; shorten it"
        )
    return object_id


def staging(object_id: str) -> str:
    """Return the name of the folder in which a put of the object is prepared."""
    return hashlib.sha256(checked_id(object_id).encode()).hexdigest()


def documents() -> dict[str, bytes]:
    """Return the files of a new root, in the order in which they are to be written: the declaration last."""
    config = {"extensionName": EXTENSION, **Layout().model_dump(by_alias=True)}
    layout = {
        "extension": EXTENSION,
        "description": "Three folders by the SHA-256 of the object's id, then one named by the id, percent-encoded.",
    }
    return {CONFIG: _json(config), LAYOUT: _json(layout), ROOT_DECLARATION: ROOT_DECLARED}


def read_layout(read: Read, where: str) -> Layout:
    """Return the layout that an existing root declares.

    ``read`` returns a file of the root; None: it is missing. Parameters that are not named have the defaults of the
    extension. Raises NotAdmitted for an unknown layout, and for parameters that are not valid: objects would be looked
    for in other folders than they are in.
    """
    extension = _parse_object(read(LAYOUT), where, LAYOUT).get("extension")
    if extension != EXTENSION:
        raise NotAdmitted(
            f"the storage root {shown(where)} has the layout '{shown(str(extension))}', and only {EXTENSION} is known; "
            f"name another root"
        )
    config = read(CONFIG)
    parameters = _parse_object(config, where, CONFIG) if config is not None else {}
    try:
        return Layout.model_validate(parameters)
    except ValidationError as error:
        raise NotAdmitted(
            f"{CONFIG} of the storage root {shown(where)} is not valid ({faults(error)[0]}); correct it"
        ) from None


def _folder(object_id: bytes, digest: str) -> str:
    """Return the name of an object's folder: its percent-encoded id, cut and with its digest where it is too
    long."""
    encoded = "".join(chr(b) if b in _SAFE else f"%{b:02x}" for b in object_id)
    return encoded if len(encoded) <= _FOLDER_MAX else f"{encoded[:_FOLDER_MAX]}-{digest}"


def _parse_object(document: Document | None, where: str, name: str) -> dict[str, Any]:
    try:
        value = orjson.loads(document.raw if document else b"")
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise NotAdmitted(
            f"{name} of the storage root {shown(where)} is missing or no JSON object; restore it"
        )
    return value


def _json(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
