"""Thinning of old results: of those older than a limit only the changes of status are kept.

Most results say what the one before said, and only the newer ones are shown one by one."""

from sqlalchemy import delete, select

from spinney.apps.monitor.inventory.schema import history
from spinney.tables.database import Database

STEP = 5000
"""The most rows that one transaction removes, so that results do not wait for it."""


def thin(database: Database, before_us: int) -> int:
    """Remove one step of the results before a time that repeat the status before them, and return how many;
    the caller repeats it until none is left. First results and changes stay for ever."""
    repeated = (
        select(history.c.id)
        .where(history.c.at_us < before_us, history.c.before == history.c.status)
        .order_by(history.c.id)
        .limit(STEP)
    )
    with database.write() as connection:
        return connection.execute(delete(history).where(history.c.id.in_(repeated))).rowcount
