"""Nodes as operators see them: their state and load, and the orders drain, resume and slots.

``sql``         nodes with their load, and the orders for them
``recent_sql``  what a node runs now and has run lately
``commands``    the list of nodes and the three orders
``cli``         the commands ``nodes``, ``drain``, ``resume`` and ``slots``
``page``        the page of nodes and external workers
``node_page``   the page of one node, with a picture of its slots

An order is stored by the name of the node, not by its row, so it outlasts restarts and holds for every incarnation of
that name. The claim reads it in its own transaction: no claim contradicts an order from the moment it is committed,
whether the node has heard of it or not. The node reads its orders by itself (``spinney.node.services.orders``) and then
gives back what it has not begun.

Nodes run the jobs of everybody, so orders take an operator without limits. A caller with limits sees nodes without what
they do for others.

Specified by ``tests/contract/test_fleet.py`` (orders and every claim), ``tests/node/test_fleet.py`` (nodes at work),
``tests/cli/test_nodes.py`` (the commands), ``tests/server/pages/test_operator_pages.py`` (the list) and
``tests/server/pages/test_node_and_retention.py`` (the page of a node).
"""
