"""The twins of ``spinney.control`` by which commands work through a server (``spinney --server URL …``).

``Afar`` has the parts of ``Control`` that commands use, with the same names and signatures, made of the verbs of
``spinney.client``; a test compares the two. What no server does is refused in one sentence.
"""

from spinney.cli.afar.connecting import Patient, connected
from spinney.cli.afar.control import Afar

__all__ = ["Afar", "Patient", "connected"]
