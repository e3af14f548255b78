"""Creation and upgrades of a store's schema, with Alembic; the revisions are in ``versions``."""
