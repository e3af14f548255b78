"""Applications: what one declares, how it submits to its store, and how one is loaded by its name.

``application``  ``Spinney``: job types, queues, locks and schedules, and submission
``loader``       the application that ``module:attribute`` names

Specified by ``tests/test_app.py``.
"""
