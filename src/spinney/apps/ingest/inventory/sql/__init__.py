"""The database of the inventory: its tables, their upgrades, and how it is reached."""
