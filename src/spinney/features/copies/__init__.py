"""A consistent copy of a whole store, and its check."""
