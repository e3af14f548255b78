"""Identifiers are ARKs; this package has their form, the names that are minted for them, and the minters.

Nothing in this package is stored. A ``LocalMinter`` makes an ARK from a number that a table of the inventory
gives for a key, the same for ever: a crash wastes nothing, since the key gets its number again. An
``EzidMinter`` calls a service, which mints a new ARK each time: the caller must store the answer at once,
under the key; a crash in between, or an answer that was lost, wastes one ARK.

``arks``     the canonical form of ARKs
``minters``  the protocol of every minter, and the local one
``ezid``     a minter that asks an EZID service
``noid``     names from numbers by a template, with a check character
``anvl``     the lines that ERC and EZID use

Specified by ``tests/apps/ingest/identifiers``.
"""

from spinney.apps.ingest.identifiers.ezid import EzidMinter as EzidMinter
from spinney.apps.ingest.identifiers.ezid import MintFailed as MintFailed
from spinney.apps.ingest.identifiers.minters import LocalMinter as LocalMinter
from spinney.apps.ingest.identifiers.minters import Minter as Minter
