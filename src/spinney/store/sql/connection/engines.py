"""SQLAlchemy on a connection of the store's own, for migrations.

No other code imports it, because importing SQLAlchemy takes longer than most commands.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool


@contextmanager
def transaction(url: str, connect: Callable[[], Any], *, begin: str | None = None) -> Iterator[Connection]:
    """Run a transaction on a new connection (``connect``), in the dialect of ``url``.

    ``begin``: the statement that opens it, where the driver opens none. The connection is closed at the end.
    Raises the driver's own errors, and not SQLAlchemy's around them, so that callers explain them as
    everywhere else.
    """
    engine = create_engine(url, creator=connect, poolclass=NullPool)
    if begin is not None:
        event.listen(engine, "begin", lambda c: c.exec_driver_sql(begin))
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        if error.orig is None:
            raise
        raise error.orig from error
    finally:
        engine.dispose()
