"""The audit log as people read it: lists, its head, verification, export.

Every change by an operator writes its entry in its own transaction (``spinney.store.sql.audit``).
"""
