"""Who did what, as people read it. Every verb writes its entry by ``spinney.store.sql.audit``."""
