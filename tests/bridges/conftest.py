"""The MongoDB-compatible server for all bridges that need one."""

from bridges.mongo import db, mongo_server, own_server

__all__ = ["db", "mongo_server", "own_server"]
