"""Minters of ARKs: the protocol of every minter, and the local one, which needs no service."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.identifiers import arks, noid

_NAAN = re.compile(r"[0-9bcdfghjkmnpqrstvwxz]+", re.ASCII)
_SHOULDER = re.compile(r"[0-9A-Za-z=~*+@_$]+", re.ASCII)


class Minter(Protocol):
    """Mints ARKs.

    ``key`` identifies the thing for ever (a job's id). A minter returns the same ARK for the same key where it
    can; where it cannot, its documentation says so, and its caller stores each answer at once. Raises NotAdmitted
    when another attempt would have the same result, another error when it might not.
    """

    def mint(self, key: str, about: Mapping[str, str]) -> str:
        """Return an ARK in its canonical form (``arks.canonical``); ``about`` has who, what, when, target."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMinter:
    """Mints ``ark:/naan/shoulder…`` from numbers, always the same ARK for the same key.

    NAAN, shoulder, template and order must stay the same while there are names of that shoulder: the numbers
    continue, and another template could make a name from a new number that was given before. A new template
    needs a new shoulder. By convention a shoulder consists of letters and one digit, such as ``fk4``.
    """

    naan: str
    shoulder: str
    """The shoulder without the NAAN: ``fk4``."""
    template: str
    """A NOID mask without a prefix: ``zeedeedk``, ``reedeedk``."""
    number: Callable[[str, str], int]
    """Returns the number for this minter's name and a key: from 0, always the same for a key, distinct for others."""
    order: bytes = field(default=b"", repr=False)
    """The key of the names' order (``noid.nth``); without one, ``z`` counts up."""

    def __post_init__(self) -> None:
        if not _NAAN.fullmatch(self.naan):
            raise NotAdmitted(f"'{shown(self.naan)}' is no NAAN; give one like 12345")
        if not _SHOULDER.fullmatch(self.shoulder):
            raise NotAdmitted(f"'{shown(self.shoulder)}' is no shoulder; give one like fk4, without the NAAN")
        if noid.template(self.template).prefix:
            raise NotAdmitted(f"template '{shown(self.template)}' has a prefix; the shoulder is the prefix")

    @property
    def name(self) -> str:
        """The name that separates its numbers from those of other minters."""
        return f"{self.naan}/{self.shoulder}"

    def mint(self, key: str, about: Mapping[str, str]) -> str:
        """Return the ARK of a key. Raises NotAdmitted when the template has no more names."""
        pattern = noid.template(f"{self.shoulder}.{self.template}")
        name = noid.nth(pattern, self.number(self.name, key), authority=self.naan, key=self.order)
        return arks.canonical(f"ark:/{self.naan}/{name}")
