"""Filters of the list of jobs that a user has saved under a name, for the same user in every browser.

``sql`` keeps them as query strings by owner and name, at most ``SAVED_MAX`` for each; ``page`` has the forms beside the
list of jobs. They change nothing for anybody else, so they are in no audit, and a saved filter is read with the rights
of the moment like any other address.

Specified by ``tests/server/pages/test_lists.py`` and ``tests/browser/test_lists.py``.
"""
