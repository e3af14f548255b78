"""Identifiers: ARKs, the names that are minted for them, and the minters.

Nothing in this package is stored. A ``LocalMinter`` makes an ARK from a number that a table of the inventory
gives for a key, the same for ever: a crash wastes nothing, since the key gets its number again. An
``EzidMinter`` calls a service, which mints a new ARK each time: the caller must store the answer at once,
under the key; a crash in between, or an answer that was lost, wastes one ARK.

``arks`` the parts of ARKs, their canonical form and equality · ``noid`` templates, check characters,
numbers into names · ``scatter`` an order that looks random and repeats nothing · ``minters`` the
protocol and the local minter · ``ezid`` the EZID service · ``anvl`` the lines that ERC and EZID use.
"""

from spinney.apps.ingest.identifiers.arks import Ark
from spinney.apps.ingest.identifiers.ezid import EzidMinter, MintFailed
from spinney.apps.ingest.identifiers.minters import LocalMinter, Minter

__all__ = ["Ark", "EzidMinter", "LocalMinter", "MintFailed", "Minter"]
