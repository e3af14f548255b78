"""The inventory of an OCFL object: parsed and validated, and its successor written (OCFL 1.1 section 3.5)."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parseaddr
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import quote

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from spinney.apps.ingest.storage.model import Damaged, NoSuchObject, Version
from spinney.files.digests import ALGORITHMS
from spinney.files.paths import NotAdmitted, component, relative, shown
from spinney.settings_files import faults

TYPES = frozenset({"https://ocfl.io/1.0/spec/#inventory", "https://ocfl.io/1.1/spec/#inventory"})
TYPE = "https://ocfl.io/1.1/spec/#inventory"
ADDRESSING = ("sha512", "sha256")
"""The algorithms that may address content (OCFL 1.1 section 3.4)."""
FIXITY = frozenset({"md5", "sha1", "sha256", "sha512"})
"""The supported algorithms that a fixity block may have; OCFL has no crc32, adler32 or sha384."""
NAME = "inventory.json"

Contents = dict[str, list[Annotated[str, AfterValidator(relative)]]]
"""Digest to the paths that have it. Every path is checked to lead downward."""
_STATES = TypeAdapter(dict[str, dict[Literal["state"], Contents]])
"""The states of versions by their names, so that a refusal says in which it is."""
_DIGEST = re.compile(r"[0-9a-f]+")
_TRAILER = "Spinney-Key: "
_KEY_MAX = 200
_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")
_T = TypeVar("_T")


class Inventory(BaseModel):
    """An inventory whose manifest has been checked; the states of its versions are checked when they are read."""

    model_config = ConfigDict(frozen=True, strict=True)

    id: str
    algorithm: Literal["sha512", "sha256"] = Field(alias="digestAlgorithm")
    """The digest algorithm that addresses content."""
    head_name: str = Field(alias="head", pattern="^v0*[1-9][0-9]{0,8}$")
    """The name of the newest version."""
    content: Annotated[str, AfterValidator(component)] = Field(default="content", alias="contentDirectory")
    """The name of the content folder."""
    manifest: Contents
    """The contents of all versions."""
    fixity: dict[str, Contents] = {}
    blocks: dict[str, Any] = Field(alias="versions")
    """The version blocks of the document."""

    @cached_property
    def head(self) -> int:
        """The number of the newest version."""
        return int(self.head_name[1:])

    def name(self, number: int) -> str:
        """Return the name of a version's folder."""
        return f"v{number:0{self.width}d}" if self.width else f"v{number}"

    @cached_property
    def width(self) -> int:
        """The digits of a version's number where another program padded it with zeros; 0 where it is not padded."""
        return len(self.head_name) - 1 if self.head_name[1] == "0" else 0

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for value, paths in self.manifest.items():
            if len(value) != ALGORITHMS[self.algorithm] or not _DIGEST.fullmatch(value) or not paths:
                raise ValueError(
                    f"'{shown(value[:140])}' in the manifest is no lowercase digest of a content"
                )
        # Their number first: a damaged head may be any number.
        if len(self.blocks) != self.head or self.blocks.keys() != set(
            map(self.name, range(1, self.head + 1))
        ):
            raise ValueError(f"there are not exactly the versions 1 to {self.head}")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The names of the next version's folders, and the algorithm that addresses its content."""

    version: str
    """The folder of the version, as ``v3``."""
    content: str
    algorithm: str


def next_shape(before: Inventory | None, algorithm: str) -> Shape:
    """Return the names of the next version, which continue those that another program may have chosen."""
    if before is None:
        return Shape(version="v1", content="content", algorithm=algorithm)
    name = before.name(before.head + 1)
    # OCFL 1.1 section 3.3: v09 is followed by nothing, for all names have the same length.
    if before.width and len(name) > before.width + 1:
        raise NotAdmitted(
            f"{shown(before.id)} has as many versions as its zero-padded names allow; migrate it"
        )
    return Shape(version=name, content=before.content, algorithm=before.algorithm)


def sum_of(raw: bytes, algorithm: str) -> str:
    """Return the digest of a document."""
    return hashlib.new(algorithm, raw).hexdigest()


def sidecar(raw: bytes, algorithm: str) -> bytes:
    """Return the content of an inventory's sidecar file (OCFL 1.1 section 3.6)."""
    return f"{sum_of(raw, algorithm)} {NAME}\n".encode()


def parse(raw: bytes, object_id: str) -> Inventory:
    """Parse an inventory, and check its manifest; the states of versions are checked when they are read.

    It may come from another program, or from a damaged disk. Raises Damaged when it is invalid, or belongs to another
    object.
    """
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _damaged(object_id, f"is no JSON ({error})") from None
    if not isinstance(document, dict) or document.get("type") not in TYPES:
        raise _damaged(object_id, "is not of OCFL 1.0 or 1.1")
    if document.get("id") != object_id:
        raise _damaged(object_id, f"is that of '{shown(str(document.get('id')))[:200]}'")
    return _checked(Inventory.model_validate, document, object_id)


def state(inventory: Inventory, number: int | None = None) -> dict[str, str]:
    """Return the state of a version (None: the newest): logical path to digest.

    Raises NoSuchObject when there is no such version, Damaged when a digest has no content, or a path occurs
    twice.
    """
    number = inventory.head if number is None else number
    digests: dict[str, str] = {}
    for value, paths in _contents(inventory, number).items():
        if value not in inventory.manifest:
            raise _damaged(inventory.id, f"names a digest in version {number} that its manifest has not")
        for path in paths:
            if path in digests:
                raise _damaged(inventory.id, f"has '{shown(path)}' twice in version {number}")
            digests[path] = value
    return digests


def versions(inventory: Inventory) -> list[Version]:
    """Return the versions in the inventory, oldest first. Raises Damaged."""
    return [version(inventory, n) for n in range(1, inventory.head + 1)]


def version(inventory: Inventory, number: int) -> Version:
    """Return the version with this number. Raises NoSuchObject, Damaged."""
    block = _block(inventory, number)
    try:
        created = datetime.fromisoformat(str(block.get("created")))
    except ValueError:
        raise _damaged(inventory.id, f"has no time for version {number}") from None
    user = block.get("user")
    return Version(
        number=number,
        created=created,
        message=_message_of(block.get("message")),
        user=str(user.get("name", "")) if isinstance(user, dict) else "",
        key=_key_of(block.get("message")),
        files=sum(map(len, _contents(inventory, number).values())),
    )


def version_of_key(inventory: Inventory, key: str) -> int | None:
    """Return the number of the version that the put with this key made; None: it has made none. The newest
    are searched first."""
    for number in range(inventory.head, 0, -1):
        block = inventory.blocks[inventory.name(number)]
        if isinstance(block, dict) and _key_of(block.get("message")) == key:
            return number
    return None


def sums_by_content(inventory: Inventory) -> dict[str, dict[str, str]]:
    """Return all recorded digests by content path, for supported algorithms, the addressing one first."""
    sums: dict[str, dict[str, str]] = {
        p: {inventory.algorithm: v} for v, places in inventory.manifest.items() for p in places
    }
    for algorithm, block in inventory.fixity.items():
        if algorithm not in ALGORITHMS:  # to be ignored: OCFL 1.1 section 3.4, E028
            continue
        for value, places in block.items():
            for path in places:
                if path in sums:
                    sums[path].setdefault(algorithm, value.lower())
    return sums


def successor(
    before: Inventory | None,
    shape: Shape,
    *,
    object_id: str,
    state: Mapping[str, str],
    added: Mapping[str, Mapping[str, str]],
    created: datetime,
    message: str,
    user: Mapping[str, str],
) -> bytes:
    """Return the inventory of the next version, as bytes that are the same for the same arguments.

    ``before``: the inventory now; None: it is the first version. ``shape``: that of ``next_shape``. ``state``: logical
    path to digest. ``added`` maps the digests of new contents to all their sums; those by other algorithms are recorded
    in the fixity block. The blocks of earlier versions are taken over unchanged, whatever another program
    wrote in them.
    """
    manifest = {} if before is None else dict(before.manifest)
    fixity: dict[str, dict[str, list[str]]] = (
        {} if before is None else {a: {v: list(p) for v, p in b.items()} for a, b in before.fixity.items()}
    )
    for value, sums in added.items():
        path = f"{shape.version}/{shape.content}/{value}"
        manifest[value] = [path]
        for other, other_value in sums.items():
            if other in FIXITY and other != shape.algorithm:
                fixity.setdefault(other, {}).setdefault(other_value, []).append(path)
    logical: dict[str, list[str]] = {}
    for path, value in state.items():
        logical.setdefault(value, []).append(path)
    version_block = {
        "created": created.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "message": message,
        "user": user,
        "state": logical,
    }
    document: dict[str, Any] = {
        "id": object_id,
        "type": TYPE,
        "digestAlgorithm": shape.algorithm,
        "head": shape.version,
        "manifest": manifest,
        "versions": {**({} if before is None else before.blocks), shape.version: version_block},
    }
    if shape.content != "content":
        document["contentDirectory"] = shape.content
    if fixity:
        document["fixity"] = fixity
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


# --- key, message and user of a version -----------------------------------------------------


def checked_key(key: str) -> str:
    """Return a key if it is valid; otherwise raise NotAdmitted."""
    if not 0 < len(key) <= _KEY_MAX or not key.isprintable() or key != key.strip():
        raise NotAdmitted(
            f"'{shown(key[:_KEY_MAX])}' cannot be a put's key; give up to {_KEY_MAX} printable characters on one line"
        )
    return key


def with_key(message: str, key: str) -> str:
    """Return the message of a version with the key as its last line, so that no line of the message is read as one."""
    plain = message.encode("utf-8", "backslashreplace").decode().strip()
    return f"{plain}\n\n{_TRAILER}{key}" if plain else f"{_TRAILER}{key}"


def _key_of(message: object) -> str | None:
    """Return the key in a version's message, or None when there is none."""
    if not isinstance(message, str):
        return None
    last = message.rpartition("\n")[2]
    return last.removeprefix(_TRAILER) if last.startswith(_TRAILER) else None


def _message_of(message: object) -> str:
    """Return a version's message without the key."""
    if not isinstance(message, str):
        return ""
    return message.rpartition("\n")[0].rstrip() if _key_of(message) is not None else message


def user_block(user: str) -> dict[str, str]:
    """Return the user of a version: a name, and a ``mailto:`` URI when an address is given (RFC 6068)."""
    plain = user.encode("utf-8", "backslashreplace").decode().strip() or "unknown"
    name, address = parseaddr(plain)
    if not _ADDRESS.fullmatch(address):
        return {"name": plain}
    return {"name": name or address, "address": f"mailto:{quote(address, safe='@+')}"}


def _block(inventory: Inventory, number: int) -> dict[str, Any]:
    """Return the block of a version. Raises NoSuchObject, Damaged."""
    if not 1 <= number <= inventory.head:
        raise NoSuchObject(
            f"{inventory.id} has versions 1 to {inventory.head} and no version {number}; name one, or restore it"
        )
    block = inventory.blocks[inventory.name(number)]
    if not isinstance(block, dict):
        raise _damaged(inventory.id, f"has no JSON object for version {number}")
    return block


def _contents(inventory: Inventory, number: int) -> Contents:
    """Return the state block of a version: digest to logical paths. Raises NoSuchObject, Damaged."""
    name, block = inventory.name(number), _block(inventory, number)
    states = {name: {"state": block.get("state")}}
    return _checked(_STATES.validate_python, states, inventory.id)[name]["state"]


def _checked(check: Callable[[Any], _T], value: Any, object_id: str) -> _T:
    """Return what a check of pydantic makes of a part of an inventory. Raises Damaged."""
    try:
        return check(value)
    except ValidationError as error:
        raise _damaged(object_id, f"is not valid ({faults(error)[0]})") from None
    except NotAdmitted as error:
        raise _damaged(object_id, f"has a path that leads elsewhere ({error})") from None


def _damaged(object_id: str, fault: str) -> Damaged:
    return Damaged(f"the inventory of {shown(object_id)} {fault}; restore it from a copy")
