"""The attachments of a mail: files that are read in place, and sent only when their digest is still the same.

An attachment names its file with the digest that it had when the message was submitted. So a file that has changed
since, or one that a symbolic link put in its place leads to, is not sent.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


class CannotAttach(Exception):
    """A file cannot go with a mail; the message names it and says what to do."""


def _media_type(text: str) -> str:
    """Return the text if it is the media type of a single file, which ``multipart/…`` and ``message/…`` are
    not. Raises ValueError otherwise."""
    if not _MEDIA_TYPE.fullmatch(text) or text.startswith(("multipart/", "message/")):
        raise ValueError(f"{text[:80]!r} is no media type of a file; write for example application/json")
    return text


def _sha256(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError(f"{text[:80]!r} is no SHA-256; give 64 hexadecimal digits in small letters")
    return text


def _file_name(text: str) -> str:
    """Return the text if it can name an attachment: one printable line without separators of paths. Raises
    ValueError otherwise."""
    if text and (not text.isprintable() or len(text) > 150 or "/" in text or "\\" in text):
        raise ValueError(
            f"{text[:80]!r} cannot name an attachment; give up to 150 printable characters, no / or \\"
        )
    return text


def _path(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("an attachment needs the path of its file; give one without NUL")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """An attachment, as a parameter of the job. The checks of its fields raise ValueError, which a submission
    reports."""

    path: Annotated[str, AfterValidator(_path)]
    """Below the folder of attachments in the settings; absolute, or relative to it."""
    sha256: Annotated[str, AfterValidator(_sha256)]
    """The digest of the file when the message was submitted, as 64 hexadecimal digits."""
    media_type: Annotated[str, AfterValidator(_media_type)] = "application/octet-stream"
    name: Annotated[str, AfterValidator(_file_name)] = ""
    """Its name in the mail; by default that of the file."""

    @property
    def shown_name(self) -> str:
        """The name that recipients see: the attachment's own, else that of the file if it can be shown."""
        last = Path(self.path).name
        return self.name or (last if last.isprintable() and len(last) <= 150 else "attachment")


def read(root: Path, attachment: Attachment, *, most_bytes: int) -> bytes:
    """Return the content of the file.

    A link is followed only to a file below ``root``, and the digest decides in the end. Raises CannotAttach
    when the file is missing, longer than ``most_bytes``, outside of ``root`` or has another digest; OSError
    when the system fails.
    """
    shown = f"the attachment {attachment.path[-200:]!r}"
    try:
        real = (root / attachment.path).resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        raise CannotAttach(f"{shown} is not there (any more); put it back and retry this job") from None
    if not real.is_relative_to(root.resolve()):
        raise CannotAttach(f"{shown} does not lie below {root}; put it there and submit again")
    # O_NONBLOCK: a named pipe without a writer must not hold the stage up before it is refused.
    with os.fdopen(os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise CannotAttach(f"{shown} is no regular file; put a regular file there and retry this job")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise CannotAttach(
            f"{shown} is larger than the {most_bytes} bytes left for attachments; send a link instead"
        )
    if hashlib.sha256(content).hexdigest() != attachment.sha256:
        raise CannotAttach(f"{shown} has changed since the mail was submitted; submit the mail again")
    return content
