"""How long jobs are kept, by type and state. What removes them is ``spinney.store.sql.transitions.removal``."""
