"""Who mints ARKs: what every minter promises, and the one that needs no service."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.identifiers import arks, noid

_NAAN = re.compile(r"[0-9bcdfghjkmnpqrstvwxz]+", re.ASCII)
_SHOULDER = re.compile(r"[0-9A-Za-z=~*+@_$]+", re.ASCII)


class Minter(Protocol):
    """Gives ARKs to things.

    ``key`` names the thing for ever (a job's id). A minter that can answers the same key with the same
    ARK; one that cannot says so, and its caller keeps each answer the moment it has it. Raises NotAdmitted
    when another attempt would meet the same, something else when it might not.
    """

    def mint(self, key: str, about: Mapping[str, str]) -> str:
        """An ARK in its one form (``arks.canonical``); ``about`` has who, what, when, target."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMinter:
    """Mints ``ark:/naan/shoulder…`` from numbers; the same ARK for the same key, whatever happens.

    NAAN, shoulder, template and order must stay as they are while there are names of that shoulder: the
    numbers go on, and another template could make of a new one a name that was given before. A new
    template needs a new shoulder. By custom a shoulder is letters with one digit behind, such as ``fk4``.
    """

    naan: str
    shoulder: str
    """Without the NAAN: ``fk4``."""
    template: str
    """A NOID mask without a prefix: ``zeedeedk``, ``reedeedk``."""
    number: Callable[[str, str], int]
    """Of this minter's name and a key: from 0 on, the same for the same key, no two keys alike."""
    order: bytes = field(default=b"", repr=False)
    """Which order names come in (``noid.nth``); without one, ``z`` counts up."""

    def __post_init__(self) -> None:
        if not _NAAN.fullmatch(self.naan):
            raise NotAdmitted(f"'{shown(self.naan)}' is no NAAN; give one like 12345")
        if not _SHOULDER.fullmatch(self.shoulder):
            raise NotAdmitted(f"'{shown(self.shoulder)}' is no shoulder; give one like fk4, without the NAAN")
        if noid.template(self.template).prefix:
            raise NotAdmitted(f"template '{shown(self.template)}' has a prefix; the shoulder is the prefix")

    @property
    def name(self) -> str:
        """By which its numbers are kept apart from those of others."""
        return f"{self.naan}/{self.shoulder}"

    def mint(self, key: str, about: Mapping[str, str]) -> str:
        """The ARK of a key; raises NotAdmitted when the template has no more names."""
        pattern = noid.template(f"{self.shoulder}.{self.template}")
        made = noid.nth(pattern, self.number(self.name, key), authority=self.naan, key=self.order)
        return arks.canonical(f"ark:/{self.naan}/{made}")
