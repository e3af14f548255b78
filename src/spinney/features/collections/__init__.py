"""The assignment of a tree of settled jobs to another collection.

``sql``       the change of the root, and bounded steps for the jobs below it
``commands``  the command with its rights
``cli``       the command ``relabel``

Holds, rights and filters refer to a job by its collection. So only settled trees are assigned, and only as a whole: an
open job may be held or charged by its collection at that very moment. The root is changed first and the jobs below it
follow in steps; an interrupted call is repeated, and continues.

Specified by ``tests/contract/test_collections.py`` (the rules, for trees of any size), ``tests/cli/test_jobs.py`` (the
command) and ``tests/service/test_rights.py`` (who may).
"""
