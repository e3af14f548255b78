"""Applications: what one declares, how it submits to its store, and how one is loaded by its name.

``application``  ``Spinney``: job types, queues, locks and schedules, and submission
``app_store``    the store of an application, opened when it is first needed
``loader``       the application that ``module:attribute`` names

Specified by ``tests/test_app.py``.
"""
