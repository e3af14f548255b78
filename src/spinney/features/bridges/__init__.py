"""Bridges to the databases of other systems: who is at work, how far behind, and its links (``docs/bridges.md``)."""
