"""The version of this package: read when it is built, and shown by nodes, servers and ``spinney --version``."""

VERSION = "0.1.0"
