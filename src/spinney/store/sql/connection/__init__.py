"""The databases themselves: connections to SQLite and PostgreSQL, writers' turns, wake-ups, and the schema's
state.
"""
