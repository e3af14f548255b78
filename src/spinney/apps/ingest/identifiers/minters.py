"""Minters of ARKs: the protocol of every minter, and the local one, which needs no service.

An ARK is an identifier that never changes, as in ``ark:/12345/fk4abc``: the NAAN ``12345`` is the number of the
organisation, the shoulder ``fk4`` a prefix that the organisation reserves for one minter, and the rest is minted.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from spinney.apps.ingest.identifiers import arks, noid
from spinney.files.paths import NotAdmitted, shown

_NAAN = re.compile(r"[0-9bcdfghjkmnpqrstvwxz]+", re.ASCII)
_SHOULDER = re.compile(r"[0-9A-Za-z=~*+@_$]+", re.ASCII)


class Minter(Protocol):
    """Mints ARKs.

    ``key`` identifies, permanently, the object that gets the ARK (it is the id of the object's job). A minter should
    return the same ARK for the same key. One that cannot says so in its docstring, and its callers store each ARK at
    once. ``mint`` raises NotAdmitted for an error that another attempt would repeat, and other errors for those that
    may pass.
    """

    def mint(self, key: str, about: Mapping[str, str]) -> str:
        """Return an ARK in its canonical form (``arks.canonical``). ``about``: the metadata that a service keeps with
        it, under ``who``, ``what``, ``when`` and ``target`` (a URL)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMinter:
    """Turns the number of a key into ``ark:/naan/shoulder…``, always the same ARK for the same key.

    Template and order must not change once a shoulder is in use: the numbers continue, and another template could turn
    a new number into an ARK that exists already. A new template needs a new shoulder. By convention a shoulder consists
    of letters and one digit, such as ``fk4``.
    """

    naan: str
    shoulder: str
    """The shoulder without the NAAN: ``fk4``."""
    template: str
    """A NOID mask without a prefix, such as ``zeedeedk`` or ``reedeedk`` (see ``noid``)."""
    number: Callable[[str, str], int]
    """Called with ``name`` and a key; returns the number of the key: 0, 1, 2…, always the same for one key, another for
    every other key."""

    def __post_init__(self) -> None:
        if not _NAAN.fullmatch(self.naan):
            raise NotAdmitted(f"'{shown(self.naan)}' is no NAAN; give one like 12345")
        if not _SHOULDER.fullmatch(self.shoulder):
            raise NotAdmitted(f"'{shown(self.shoulder)}' is no shoulder; give one like fk4, without the NAAN")
        if noid.template(self.template).prefix:
            raise NotAdmitted(f"template '{shown(self.template)}' has a prefix; the shoulder is the prefix")

    @property
    def name(self) -> str:
        """The name under which this minter's numbers are counted."""
        return f"{self.naan}/{self.shoulder}"

    def mint(self, key: str, about: Mapping[str, str]) -> str:
        """Return the ARK of a key. Raises NotAdmitted when the template has no names left."""
        pattern = noid.template(f"{self.shoulder}.{self.template}")
        name = noid.nth(pattern, self.number(self.name, key), authority=self.naan)
        return arks.canonical(f"ark:/{self.naan}/{name}")
