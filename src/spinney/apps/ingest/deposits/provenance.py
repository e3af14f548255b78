"""The origin and owner of a stored version, in the message of the version in the storage.

A version is stored before it is recorded in the inventory. When its job is cancelled or fails in between, only the
message shows its owner.
"""

import re
from dataclasses import asdict, dataclass
from typing import Self

_MESSAGE = re.compile(
    r"(?P<bid>bid-\S+) (?P<jid>jid-\S+)\n"
    r"submitter (?P<submitter>.+)\nowner (?P<owner>.+)\ncollection (?P<collection>.+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin and owner of a version; values without line breaks."""

    bid: str
    jid: str
    submitter: str
    owner: str
    collection: str

    def message(self) -> str:
        """Return the message of the version."""
        return "{bid} {jid}\nsubmitter {submitter}\nowner {owner}\ncollection {collection}".format(
            **asdict(self)
        )

    @classmethod
    def of(cls, message: str) -> Self | None:
        """Parse a message; None: another program wrote the version, or an early release of this service, so
        that the owner is unknown."""
        match = _MESSAGE.fullmatch(message)
        return None if match is None else cls(**match.groupdict())
