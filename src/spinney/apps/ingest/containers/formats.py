"""What kind of container a file is: by its first bytes, which must agree with its name."""

from enum import Enum
from pathlib import Path

from spinney.apps.ingest.files.paths import NotAdmitted, shown


class Kind(Enum):
    """The kinds that are unpacked; the value is said to people."""

    ZIP = "zip"
    TAR = "tar"
    TAR_GZ = "tar.gz"
    TAR_BZ2 = "tar.bz2"


ENDINGS = {
    ".zip": Kind.ZIP,
    ".tar": Kind.TAR,
    ".tar.gz": Kind.TAR_GZ,
    ".tgz": Kind.TAR_GZ,
    ".tar.bz2": Kind.TAR_BZ2,
}
"""How the name of a container ends, in lower case."""

_FIRST_BYTES = {
    b"PK\x03\x04": Kind.ZIP,
    b"PK\x05\x06": Kind.ZIP,
    b"\x1f\x8b": Kind.TAR_GZ,
    b"BZh": Kind.TAR_BZ2,
}


def named(name: str) -> Kind | None:
    """The kind that a file's name promises; None when it promises no container."""
    lower = name.lower()
    return next((kind for ending, kind in ENDINGS.items() if lower.endswith(ending)), None)


def promised(name: str) -> Kind:
    """The kind that a container's name promises; raises NotAdmitted when it promises none."""
    kind = named(name)
    if kind is None:
        raise NotAdmitted(f"its name ends in none of {', '.join(ENDINGS)}; name it after what it is")
    return kind


def kind_of(container: Path, name: str) -> Kind:
    """The kind of a container; raises NotAdmitted when name and content do not agree.

    ``name`` is the depositor's name of it. That a file named ``.tar`` is one shows when it is read: a
    tar has no first bytes of its own, only those of the other kinds are told apart here.
    """
    told = promised(name)
    with container.open("rb") as file:
        first = file.read(4)
    found = next((kind for magic, kind in _FIRST_BYTES.items() if first.startswith(magic)), Kind.TAR)
    if found is not told:
        what = "is no such file" if found is Kind.TAR else f"begins like {found.value}"
        raise NotAdmitted(
            f"it is named {told.value} and {what} (first bytes '{shown(repr(first))}'); name it after "
            f"what it is, or send it again"
        )
    return told
