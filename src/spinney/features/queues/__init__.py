"""Queues as operators see and set them: limits, order, sharing, default types, pins and bars.

``sql``       the settings of operators over those that applications declare
``commands``  the same with the rights of a caller
``cli``       the commands ``queues`` and ``queue``
``page``      the list with its charts, and the page of one queue

There are two tables: ``queues`` has what applications declare (written when a node starts, or by
``CreateQueue``), and ``queue_settings`` what operators set. What an operator sets wins over a declaration,
field by field, until it is set back to what is declared. Order and sharing cannot be set, since jobs are
stored in that order. A change increments the version of the registry (``Registry.touch``), so the next
transaction of every node uses it; jobs that a node has already been given are run. A lower limit takes no
slot away: no more are granted until enough runs have ended.

A queue that nobody has declared, set or named does not exist, so that a mistyped name makes none.

Specified by ``tests/contract/test_queue_admin.py`` (settings, and what claims make of them),
``tests/node/test_queueing.py`` (real nodes), ``tests/cli/test_queues.py`` (the commands),
``tests/server/api/test_resources.py`` (the API) and ``tests/server/pages/test_operator_pages.py`` (the
pages).
"""
