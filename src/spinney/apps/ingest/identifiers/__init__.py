"""Identifiers: ARKs, the names that are minted for them, and who mints.

Nothing here keeps anything. A ``LocalMinter`` is a function of a number that a table of another room
gives for a key, the same for ever: a crash wastes nothing, since the key meets its number again. An
``EzidMinter`` asks a service, which mints anew each time: what it answers must be kept at once, under
the key, by the caller; a crash in between, or an answer that was lost, wastes one ARK.

``arks`` their parts, their one form, which of them are the same · ``noid`` templates, check characters,
numbers into names · ``scatter`` an order that looks like none and repeats nothing · ``minters`` the
protocol and the local one · ``ezid`` the service · ``anvl`` the lines that ERC and EZID write.
"""

from spinney.apps.ingest.identifiers.arks import Ark
from spinney.apps.ingest.identifiers.ezid import EzidMinter, MintFailed
from spinney.apps.ingest.identifiers.minters import LocalMinter, Minter

__all__ = ["Ark", "EzidMinter", "LocalMinter", "MintFailed", "Minter"]
