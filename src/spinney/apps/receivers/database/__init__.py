"""The database of one receiver: an SQLite file with what was detected, and in which files.

``receiver_database`` writes it, for which it needs NumPy · ``snapshots`` reading, without · ``schema`` the tables."""
