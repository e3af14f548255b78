"""A claim decides which jobs a node gets next, fairly and within limits, in one short transaction.

``claims``       the claim itself: slots, queues, shares and jobs, in the order in which they are served
``eligibility``  the lanes and slots that the claim may use
``candidates``   the jobs that a queue offers, in the fair order of its shares
``lane_heads``   the most urgent priority of each lane
``limits``       the slots that each limited queue occupies, those of this claim included
``rotation``     which queue and share were served last

``SqlStore.flush_and_claim`` makes a ``Claim`` after it has written a node's records, in the same transaction, so that a
slot that has just become free is counted as free. The number of leases, limits and quotas are counted from ``leases``
in that transaction, under the right to write; nothing is kept in counters. A claim searches in ``ready`` and
``leases``, looks into ``jobs`` only for candidates, and its cost must not grow with the number of pending jobs or
shares. What is remembered between claims (``rotation``) serves fairness only and may be lost.

Specified by ``tests/contract/test_claims.py``, ``tests/contract/test_shares.py``, ``tests/contract/test_look_ahead.py``
and ``tests/contract/test_holds.py`` (which jobs), ``tests/store/test_plans.py`` and ``tests/store/test_hold_plans.py``
(at what cost).
"""
