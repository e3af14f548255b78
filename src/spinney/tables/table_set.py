"""An application's tables: their declaration, and how they are opened.

It imports neither SQLAlchemy nor a driver, so that declaring tables costs a command nothing; ``open``
does."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spinney.model.errors import UsageError
from spinney.model.values.store_urls import database_file, is_postgres
from spinney.tables.declaration import TableDeclaration

if TYPE_CHECKING:
    from spinney.tables.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSet(TableDeclaration):
    """The tables that belong to one application and are upgraded together.

    Several sets, and a store, may share one PostgreSQL database; a set's tables begin with its ``prefix``, so that
    they do not meet those of others, and its revision is in the table ``PREFIX_version``."""

    def beside(self, store: str) -> str:
        """Return the URL for tables beside a store: a file ``STORE.NAME.db`` next to the file of the store, or a schema
        of the set's name in the same PostgreSQL database. A file of its own has its own write lock, so that the
        application does not delay claims of jobs, nor they it."""
        file = database_file(store)
        if file is not None:
            return f"sqlite:///{file.with_name(f'{file.stem}.{self.name}.db')}"
        place, _, query = store.partition("?")
        others = [setting for setting in query.split("&") if setting and not setting.startswith("schema=")]
        return f"{place}?{'&'.join([*others, f'schema={self.name}'])}"

    def open(self, url: str) -> "Database":
        """Return the database at ``sqlite:///file`` or ``postgresql://user@host/database?schema=name``. It connects on
        first use. Raises UsageError for any other URL."""
        from spinney.tables.database import open_sqlite  # SQLAlchemy takes longer to import than all the rest

        file = database_file(url)
        if file is not None:
            return open_sqlite(self, file)
        if not is_postgres(url):
            scheme = url.partition(":")[0]
            raise UsageError(
                f"{self.article} {self.name} is named by sqlite:///file or postgresql://user@host/database, "
                f"not by '{scheme[:20]}:…'"
            )
        try:
            from spinney.tables.postgres import open_postgres  # its driver is an extra
        except ImportError as error:
            raise UsageError(
                f"{self.article} {self.name} on PostgreSQL needs its driver; install it with: "
                f"pip install 'spinney[postgresql]'"
            ) from error
        return open_postgres(self, url)
