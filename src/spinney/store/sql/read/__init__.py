"""Queries for people are made here: lists, counts and filters, by the shortest access path.

``job_queries``       single jobs, lists, trees, attempts, data and results
``filter_queries``    the jobs that match a filter, in the order of their ids
``access_paths``      which index or narrow table has the fewest rows to read for a filter
``state_counts``      exact numbers of jobs by state, although completed ones are counted nowhere
``duration_samples``  how long stages wait and run, measured on a sample

Each query is one snapshot on the reading connection, which ends at once: it takes no lock, never delays a writer, and
keeps PostgreSQL from vacuuming for no longer than it runs. The order and the numbers must be the same whatever access
path is chosen. Nothing here changes a row; verbs on many jobs use ``filter_queries`` to find them, and check each again
in their own transaction.

Specified by ``tests/contract/test_job_queries.py``, ``tests/contract/test_filters.py``,
``tests/contract/test_access_scope.py``, ``tests/contract/test_statistics.py`` (what is returned) and
``tests/store/test_filter_queries.py`` (the same on every path).
"""
