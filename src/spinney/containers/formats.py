"""The kind of a container: by its first bytes, which must agree with its name."""

from enum import Enum
from pathlib import Path

from spinney.files.paths import NotAdmitted


class Kind(Enum):
    """The kinds that are unpacked; the value is shown to people."""

    ZIP = "zip"
    TAR = "tar"
    TAR_GZ = "tar.gz"
    TAR_BZ2 = "tar.bz2"
    SEVEN_ZIP = "7z"
    RAR = "rar"


ENDINGS = {
    ".zip": Kind.ZIP,
    ".tar": Kind.TAR,
    ".tar.gz": Kind.TAR_GZ,
    ".tgz": Kind.TAR_GZ,
    ".tar.bz2": Kind.TAR_BZ2,
    ".7z": Kind.SEVEN_ZIP,
    ".rar": Kind.RAR,
}
"""The endings of containers' names, in lower case."""

_FIRST_BYTES = {
    b"PK\x03\x04": Kind.ZIP,
    b"PK\x05\x06": Kind.ZIP,
    b"\x1f\x8b": Kind.TAR_GZ,
    b"BZh": Kind.TAR_BZ2,
    b"7z\xbc\xaf": Kind.SEVEN_ZIP,
    b"Rar!": Kind.RAR,
}
"""How containers begin; an empty zip has only its end record. Everything else may be a tar."""


def kind_of_name(name: str) -> Kind | None:
    """Return the kind of container by the ending of a name, in whatever case; None when it is no
    container."""
    lower = name.lower()
    return next((kind for ending, kind in ENDINGS.items() if lower.endswith(ending)), None)


def require_kind(name: str) -> Kind:
    """Return the kind of container by the ending of a name. Raises NotAdmitted when it is no container."""
    kind = kind_of_name(name)
    if kind is None:
        raise NotAdmitted(f"its name ends in none of {', '.join(ENDINGS)}; name it after what it is")
    return kind


def kind_of(container: Path, name: str) -> Kind:
    """Return the kind of a container. Raises NotAdmitted when name and content do not agree.

    ``name`` is the depositor's name of it. Whether a file named ``.tar`` is one shows when it is read: a tar
    has no characteristic first bytes, only the other kinds are distinguished here.
    """
    by_name = require_kind(name)
    with container.open("rb") as file:
        first = file.read(4)
    by_content = next((kind for magic, kind in _FIRST_BYTES.items() if first.startswith(magic)), Kind.TAR)
    if not first:
        raise NotAdmitted("it is empty; send it again")
    if by_content is not by_name:
        fault = "is no such file" if by_content is Kind.TAR else f"begins like {by_content.value}"
        raise NotAdmitted(
            f"it is named {by_name.value} and {fault} (first bytes {repr(first)[1:]}); name it after "
            f"what it is, or send it again"
        )
    return by_name
