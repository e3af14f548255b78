"""An operator's stop with a reason, on one job or many. The claim itself asks
``spinney.store.sql.registry.hold_coverage``.
"""
