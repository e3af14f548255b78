"""The database of the inventory: its tables, their upgrades, and its connections."""
