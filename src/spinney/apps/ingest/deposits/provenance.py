"""Who brought a stored version, and whose it is, as the message of the version in the storage tells it.

A version is stored before it is recorded in the inventory. Where its object ends between the two, cancelled or failed,
the message is all that tells whose it is.
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
    """Values without line breaks."""

    bid: str
    jid: str
    submitter: str
    owner: str
    collection: str

    def message(self) -> str:
        """The message of the version."""
        return "{bid} {jid}\nsubmitter {submitter}\nowner {owner}\ncollection {collection}".format(
            **asdict(self)
        )

    @classmethod
    def of(cls, message: str) -> Self | None:
        """Read it again; None: another program wrote the version, or this service before it noted whose it is."""
        match = _MESSAGE.fullmatch(message)
        return None if match is None else cls(**match.groupdict())
