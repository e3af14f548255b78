"""The poll interval of nodes, which are also woken."""

POLL_S = 0.2
"""How often nodes poll the store, in seconds, independent of wake-ups."""
