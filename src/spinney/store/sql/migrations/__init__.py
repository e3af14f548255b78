"""Making a store and bringing an older one up to date, with Alembic; the revisions are in ``versions``."""
