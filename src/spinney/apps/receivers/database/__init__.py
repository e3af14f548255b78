"""The database of one receiver: an SQLite file with what was detected, and in which files."""

from spinney.apps.receivers.database.receiver_database import Detected, ReceiverDatabase

__all__ = ["Detected", "ReceiverDatabase"]
