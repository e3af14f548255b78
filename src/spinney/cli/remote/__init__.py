"""The counterparts of ``spinney.control`` by which commands work through a server (``spinney --server URL …``).

``RemoteControl`` has the parts of ``Control`` that commands use, with the same names and signatures, made of the
verbs of ``spinney.client``; a test compares the two. What no server does is refused in one sentence.
"""

from spinney.cli.remote.client import RetryingClient, open_client
from spinney.cli.remote.control import RemoteControl

__all__ = ["RemoteControl", "RetryingClient", "open_client"]
