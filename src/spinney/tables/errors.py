"""The errors of an application's tables. Every message says what to do next."""

from spinney.model.errors import SpinneyError


class TablesUnusable(SpinneyError):
    """The tables cannot be used as they are; the message names the cause and the remedy."""


class TablesAway(TablesUnusable):
    """The database does not answer now, or its disk is full. Whether the transaction was committed may be unknown, so
    the caller repeats it."""
