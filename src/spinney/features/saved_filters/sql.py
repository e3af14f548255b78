"""Filters of the list of jobs that users have saved under a name, as rows of the store."""

from collections.abc import Mapping

from spinney.model.errors import Refused
from spinney.store.sql.records import upsert
from spinney.store.sql.session import SqlPart

SAVED_MAX = 50
"""How many saved filters a user may have."""


class SqlSavedFilters(SqlPart):
    """Filters by owner and name. They change nothing for anybody else, and so are not in the audit."""

    def all(self, owner: str) -> Mapping[str, str]:
        """Return a user's saved filters: name to query string, by name."""
        with self._session.look() as tx:
            return dict(
                tx.all("select name, query from saved_filters where owner = ? order by name", (owner,))
            )

    def save(self, owner: str, name: str, query: str) -> None:
        """Save a filter, in place of one of the same name. Raises Refused when the user has ``SAVED_MAX`` others."""
        with self._session.write() as tx:
            others = "select count(*) from saved_filters where owner = ? and name <> ?"
            if tx.value(others, (owner, name)) >= SAVED_MAX:
                raise Refused(f"you have {SAVED_MAX} saved filters; remove one before you save another")
            values = {"owner": owner, "name": name, "query": query}
            upsert(tx, "saved_filters", "owner, name", values)

    def remove(self, owner: str, name: str) -> None:
        """Remove a saved filter, if it is there."""
        with self._session.write() as tx:
            tx.run("delete from saved_filters where owner = ? and name = ?", (owner, name))
