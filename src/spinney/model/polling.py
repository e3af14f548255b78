"""How often somebody looks who is woken as well."""

POLL_S = 0.2
"""How often nodes look at the store, whatever wakes them beside."""
